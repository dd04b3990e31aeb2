package table

import (
	"cmp"
	"encoding/csv"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/hostname"
)

// The columns that are not labels.
const (
	slugColumn        = "slug"
	nameColumn        = "name"
	domainColumn      = "domain"
	primaryColumn     = "primary"
	descriptionColumn = "description"
	statusColumn      = "status"
)

const noHeading = "column without a heading"

var known = []string{slugColumn, nameColumn, domainColumn, primaryColumn, descriptionColumn, statusColumn}

// A column is one column of the table; the zero column has no heading, and its cells must be empty.
type column struct {
	heading string
	label   bool
}

// headings reads the first row; nil: without a slug column the other rows mean nothing.
func (t *Table) headings(r *csv.Reader, record []string) []column {
	columns := make([]column, len(record))
	at := map[string]int{}
	for i, cell := range record {
		line, _ := r.FieldPos(i)
		heading := strings.ToLower(clean(cell)) // names of labels are in lower case, too
		columns[i] = column{heading, !slices.Contains(known, heading)}
		first, twice := at[heading]
		switch {
		case heading == "":
			continue
		case twice:
			t.problem(line, heading, "columns %d and %d both have this heading", first+1, i+1)
		case !columns[i].label:
		case catalog.CheckLabelName(heading) != "":
			t.problem(line, heading, "is neither one of %s nor the name of a label: %s%s",
				strings.Join(known, ", "), catalog.CheckLabelName(heading), meant(heading))
		default:
			t.Labels = append(t.Labels, heading)
		}
		at[heading] = i
	}
	_, there := at[slugColumn]
	_, named := at[nameColumn]
	if !there && !(named && t.o.SlugFromName) {
		line, _ := r.FieldPos(0)
		hint := ""
		if named {
			hint = "; --slug-from name makes slugs of the names"
		}
		t.problem(line, slugColumn, "the table has no column with this heading%s", hint)
		return nil
	}
	return columns
}

func meant(heading string) string {
	if near := hclfile.Nearest(heading, known); near != "" {
		return "; did you mean " + hclfile.Quoted(near) + "?"
	}
	return ""
}

// clean returns a cell without the spaces around it. It makes cells equal that differ only in how Excel has encoded an accent.
func clean(cell string) string {
	return norm.NFC.String(strings.ToValidUTF8(strings.TrimSpace(cell), "\ufffd"))
}

// row reads a row below the headings. One without any value is skipped.
func (t *Table) row(r *csv.Reader, columns []column, record []string) {
	start, _ := r.FieldPos(0)
	if !slices.ContainsFunc(record, func(cell string) bool { return strings.TrimSpace(cell) != "" }) {
		return
	}
	// Excel leaves out the empty cells at the end of a row, or adds some.
	for len(record) > len(columns) && strings.TrimSpace(record[len(record)-1]) == "" {
		record = record[:len(record)-1]
	}
	if len(record) > len(columns) {
		t.problem(start, "", "the row has %d values, the headings are %d: should a value with a separator stand in quotes?",
			len(record), len(columns))
		return
	}
	row := row{Table: t, line: start, cells: map[string]value{}}
	before := len(t.Problems)
	for i, cell := range record {
		line, _ := r.FieldPos(i)
		switch text := clean(cell); {
		case !utf8.ValidString(cell):
			t.problem(line, columns[i].name(), "is not valid UTF-8: save the table in UTF-8")
		case text == "":
		case columns[i].heading == "":
			t.problem(line, "", "%s stands in column %d, which has no heading", hclfile.Quoted(text), i+1)
		default:
			row.cells[columns[i].heading] = value{text, line}
		}
	}
	p := row.project()
	for _, c := range columns {
		if v, said := row.cells[c.heading]; said {
			row.say(p, c, v)
		}
	}
	row.domain(p)
	if len(t.Problems) > before {
		p.Bad = true
	}
}

func (c column) name() string {
	return cmp.Or(c.heading, noHeading)
}

// A row is a row below the headings, with the cells that have a value by their headings.
type row struct {
	*Table
	line  int
	cells map[string]value
}

// project returns the row's project, which may be new. A row without a slug has one of its own, which is not kept.
func (r *row) project() *Project {
	slug, said := r.cells[slugColumn]
	name, isNamed := r.cells[nameColumn]
	switch {
	case said:
	case r.o.SlugFromName && isNamed:
		if slug = (value{catalog.SlugOf(name.text), name.line}); slug.text == "" {
			r.problem(name.line, nameColumn, "%s gives no slug: write one", hclfile.Quoted(name.text))
			return newProject("", r.line)
		}
	default:
		r.problem(r.line, slugColumn, "is missing: it says to which project the row belongs")
		return newProject("", r.line)
	}
	p := r.bySlug[slug.text]
	if p == nil {
		p = newProject(slug.text, slug.line)
		r.bySlug[slug.text] = p
		r.Projects = append(r.Projects, p)
	}
	return p
}

func newProject(slug string, line int) *Project {
	return &Project{Project: catalog.Project{Slug: slug, Name: slug, Status: catalog.StatusDraft}, Line: line,
		said: map[string]value{}}
}

// say gives the project a value, which may not differ from that of another row.
func (r *row) say(p *Project, c column, v value) {
	switch c.heading {
	case slugColumn, domainColumn, primaryColumn:
		return
	case statusColumn:
		v.text = strings.ToUpper(v.text)
	}
	if first, said := p.said[c.heading]; said {
		if first.text != v.text {
			r.problem(v.line, c.heading, "%s differs from %s on line %d: the rows of one slug are one project",
				hclfile.Quoted(v.text), hclfile.Quoted(first.text), first.line)
		}
		return
	}
	p.said[c.heading] = v
	switch {
	case c.label:
		p.Project.Labels = append(p.Project.Labels, catalog.Label{Name: c.heading, Value: v.text})
	case c.heading == nameColumn:
		p.Project.Name = v.text
	case c.heading == statusColumn:
		p.Project.Status = v.text
	default:
		p.Project.Description = &v.text
	}
}

var booleans = map[string]bool{"true": true, "yes": true, "1": true, "false": false, "no": false, "0": false}

// domain adds the row's domain to the project.
func (r *row) domain(p *Project) {
	cell, said := r.cells[domainColumn]
	first, isPrimary := r.primary()
	if !said {
		if isPrimary {
			r.problem(first.line, primaryColumn, "says something about a domain, and the row has none")
		}
		return
	}
	name, err := hostname.ParseDomain(cell.text)
	if err != nil {
		r.problem(cell.line, domainColumn, "%s %v", hclfile.Quoted(cell.text), err)
		return
	}
	c := claim{p, name, cell.line}
	if other, taken := r.domains[name]; taken {
		other.project.Bad = true
		of := "this project"
		if other.project != p {
			of = "project " + hclfile.Quoted(other.project.Project.Slug)
		}
		r.problem(cell.line, domainColumn, "%s belongs to %s already, by line %d", hclfile.Quoted(name), of, other.line)
		return
	}
	r.domains[name] = c
	p.Domains = append(p.Domains, catalog.Domain{Name: name, Active: true, Primary: isPrimary})
	switch {
	case !isPrimary:
	case p.primary == nil:
		p.primary = &c
	default:
		r.problem(first.line, primaryColumn, "%s is the primary domain already, by line %d: a project has one",
			hclfile.Quoted(p.primary.name), p.primary.line)
	}
}

// primary reads whether the row's domain is the primary one.
func (r *row) primary() (v value, is bool) {
	v, said := r.cells[primaryColumn]
	if !said {
		return v, false
	}
	is, ok := booleans[strings.ToLower(v.text)]
	if !ok {
		r.problem(v.line, primaryColumn, "%s is not one of true, false, yes, no, 1, 0", hclfile.Quoted(v.text))
	}
	return v, is
}

// complete checks a project whose rows have all been read.
func (t *Table) complete(p *Project) {
	catalog.SortLabels(p.Project.Labels)
	for _, problem := range p.Project.Validate() {
		if problem.Warning {
			continue
		}
		p.Bad = true
		column := strings.TrimPrefix(problem.Path, "labels.")
		v, said := p.said[column]
		switch {
		case said:
			t.problem(v.line, column, "%s %s", hclfile.Quoted(v.text), problem.Message)
		case column == slugColumn:
			t.problem(p.Line, column, "%s %s", hclfile.Quoted(p.Project.Slug), problem.Message)
		case column != nameColumn: // an unsaid name is the slug, which has its own problem
			t.problem(p.Line, column, "%s", problem.Message)
		}
	}
}
