package table

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// A Table is what a table declares.
type Table struct {
	Projects []*Project // in the order of their first rows
	Labels   []string   // the headings that are names of labels
	Problems []Problem  // by line

	o       Options
	bySlug  map[string]*Project
	domains map[string]claim // by canonical name
}

// A Project is one project of a table, without identity.
type Project struct {
	Project catalog.Project
	Domains []catalog.Domain
	Line    int  // of its first row
	Bad     bool // it has a problem

	said    map[string]value // by column
	primary *claim           // its primary domain
}

// A claim is a row's domain.
type claim struct {
	project *Project
	name    string
	line    int
}

// A value is what the first row with a value in a column says.
type value struct {
	text string
	line int
}

// A Problem is one thing that is wrong with a table.
type Problem struct {
	Line    int
	Column  string // its heading; "" for the whole row
	Message string
}

func (p Problem) String() string {
	if p.Column == "" {
		return fmt.Sprintf("line %d: %s", p.Line, p.Message)
	}
	return fmt.Sprintf("line %d, %s: %s", p.Line, p.Column, p.Message)
}

// Options say how a table is read.
type Options struct {
	SlugFromName bool // a row without a slug has that of its name, as catalog.SlugOf makes it
}

// Read reads a table. The error is the reader's; what is wrong with the table is in Problems.
func Read(from io.Reader, o Options) (*Table, error) {
	t := &Table{o: o, bySlug: map[string]*Project{}, domains: map[string]claim{}}
	in := bufio.NewReader(lineEnds{bufio.NewReader(from)})
	bom, _ := in.Peek(3)
	switch {
	case bytes.HasPrefix(bom, []byte("\xff\xfe")), bytes.HasPrefix(bom, []byte("\xfe\xff")):
		t.problem(1, "", "the table is in UTF-16: save it in UTF-8")
		return t, nil
	case string(bom) == "\xef\xbb\xbf":
		_, _ = in.Discard(len(bom)) // they have been read
	}
	first, err := firstLine(in)
	if err != nil {
		return nil, err
	}
	named := separatorLine.FindSubmatch(first)
	if named != nil { // a blank line in its place keeps the numbers of lines right
		if first, err = firstLine(in); err != nil {
			return nil, err
		}
		first = append([]byte("\n"), first...)
	}
	r := csv.NewReader(io.MultiReader(bytes.NewReader(first), in))
	r.Comma = separator(first)
	if named != nil && strings.ContainsAny(string(named[1]), separators) {
		r.Comma = rune(named[1][0])
	}
	r.TrimLeadingSpace = r.Comma != '\t' // it would skip empty values between tabs
	r.FieldsPerRecord, r.ReuseRecord = -1, true
	if err := t.read(r); err != nil {
		return nil, err
	}
	for _, p := range t.Projects {
		t.complete(p)
	}
	slices.SortStableFunc(t.Problems, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	return t, nil
}

// problem adds a problem of a row. A heading that cannot be the name of a column is quoted: it may hold anything.
func (t *Table) problem(line int, column, format string, args ...any) {
	if column != "" && column != noHeading && !slices.Contains(known, column) && catalog.CheckLabelName(column) != "" {
		column = hclfile.Quoted(column)
	}
	t.Problems = append(t.Problems, Problem{line, column, fmt.Sprintf(format, args...)})
}

const separators = ",;\t"

// separatorLine is a line before the headings that tells Excel the separator.
var separatorLine = regexp.MustCompile(`(?i)^\s*"?sep=(.)"?[,;\t]*\r?\n`)

// lineEnds makes a CR that stands alone a line end: Excel's "CSV (Macintosh)" has no other.
type lineEnds struct{ in *bufio.Reader }

func (l lineEnds) Read(p []byte) (int, error) {
	n, err := l.in.Read(p)
	for i := range n {
		if p[i] != '\r' {
			continue
		}
		next := byte(0)
		if i+1 < n {
			next = p[i+1]
		} else if more, _ := l.in.Peek(1); len(more) > 0 {
			next = more[0]
		}
		if next != '\n' {
			p[i] = '\n'
		}
	}
	return n, err
}

// firstLine reads up to the end of the first line that is not blank.
func firstLine(in *bufio.Reader) (text []byte, err error) {
	for err == nil && len(bytes.TrimSpace(text)) == 0 {
		var line []byte
		line, err = in.ReadBytes('\n')
		text = append(text, line...)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return text, err
}

// separator returns the separator that stands most often in the line, outside of quotes.
func separator(line []byte) rune {
	count := map[rune]int{}
	quoted := false
	for _, c := range string(line) {
		if c == '"' {
			quoted = !quoted
		} else if !quoted {
			count[c]++
		}
	}
	best := ','
	for _, c := range separators[1:] {
		if count[c] > count[best] {
			best = c
		}
	}
	return best
}

// read reads all rows. After a row whose quotes do not match it goes on with the next line.
func (t *Table) read(r *csv.Reader) error {
	var columns []column
	for {
		record, err := r.Read()
		var bad *csv.ParseError
		switch {
		case errors.Is(err, io.EOF):
			if columns == nil && len(t.Problems) == 0 {
				t.problem(1, "", "the table is empty: its first row has the headings, such as slug,name,domain")
			}
			return nil
		case errors.As(err, &bad):
			t.problem(bad.StartLine, "", "the quotes do not match: a value that holds a quote or a separator stands in quotes, "+
				"and each quote in it is doubled")
			if columns == nil {
				return nil
			}
		case err != nil:
			return err
		case columns == nil:
			if columns = t.headings(r, record); columns == nil {
				return nil
			}
		default:
			t.row(r, columns, record)
		}
	}
}

// Against adds a problem for each slug and domain of the table that a file of the folder declares already. file is its
// path in messages.
func (t *Table) Against(file string, declared *catalog.Declared) {
	was := len(t.Problems)
	for i := range declared.Projects {
		other := &declared.Projects[i]
		if p := t.bySlug[other.Project.Slug]; p != nil {
			p.Bad = true
			t.problem(p.Line, slugColumn, "%s is declared in %s already", hclfile.Quoted(p.Project.Slug), file)
		}
		for k := range other.Domains {
			c, claimed := t.domains[other.Domains[k].Name]
			if claimed && c.project.Project.Slug != other.Project.Slug {
				c.project.Bad = true
				t.problem(c.line, domainColumn, "%s belongs to project %s in %s already", hclfile.Quoted(c.name),
					hclfile.Quoted(other.Project.Slug), file)
			}
		}
	}
	if len(t.Problems) > was {
		slices.SortStableFunc(t.Problems, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	}
}
