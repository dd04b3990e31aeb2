// Package table reads a table of projects and their domains, as spreadsheets and databases write it (CSV), and makes
// projects of it that files can declare.
//
// It promises that
//   - the whole table is read, and every problem comes with the line and the name of the column;
//   - a Project without a problem is valid in itself: its names, status, labels and domains pass the rules of catalog,
//     and no other project of the table has its slug or one of its domains;
//   - the time grows with the table, whatever is wrong with it.
//
// The first row has the headings: slug, and if needed name, domain, primary, description and status. Every other heading
// is the name of a label. Rows with the same slug are one project, and each may add a domain. An empty cell says nothing.
// Headings are read without regard to case. If asked for, a row without a slug has that of its name. A line such as sep=; before them, line ends of CR alone, and rows that lack
// their last empty cells are what Excel writes. Values are trimmed and in Unicode's normal form C; domains are canonical.
//
// It needs a reader, and the declarations of the folder that is to receive the projects (Against). encoding/csv knows the
// format. It does not open or write files, gives no ids, and knows no settings, mail or keys: those are not in a table.
//
// A Table is for one goroutine.
package table
