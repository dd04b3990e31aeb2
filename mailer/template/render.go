package template

import (
	"html"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"fingerpost/resolver/catalog"
)

// Limits on what is rendered, in bytes.
const (
	MaxValueBytes    = 16 << 10 // of one variable
	MaxRenderedBytes = 1 << 20  // of subject and bodies together
)

// A Template is a catalog.Template, prepared to be rendered any number of times, from any goroutine.
type Template struct {
	subject, html, text part
	variables           []variable // in the order of their first use
}

// A part is a subject or a body.
type part []piece

// A piece is text and the variable after it.
type piece struct {
	text     string
	variable int // its index; -1 at the end of a part, if none follows
}

// A variable is how a template uses one name.
type variable struct {
	name    string
	subject bool // used in the subject
	body    bool // used in a body
	link    bool // its value begins an address, see Segment
	rest    bool // its value follows a scheme, see Segment
}

// Rendered is a mail's content with the values filled in. HTML is "" if the template has none. Text is always there,
// except for HTML without any words.
type Rendered struct {
	Subject, HTML, Text string
}

// Parse parses a template, and makes a text part from the HTML if there is none. The problems are those that saving it
// reports too: on subjectTemplate, bodyHtml, bodyText, or "" if there is no body.
func Parse(t *catalog.Template) (*Template, catalog.Problems) {
	texts, ps := split(t)
	if len(ps) > 0 {
		return nil, ps
	}
	if t.BodyText == "" {
		var err error
		if texts.text, err = plainSegments(texts.html); err != nil {
			ps.Addf("bodyHtml", "%v", err)
			return nil, ps
		}
	}
	parsed, index := &Template{}, map[string]int{}
	parsed.subject = parsed.part(index, texts.subject, func(v *variable) { v.subject = true })
	parsed.html = parsed.part(index, texts.html, func(v *variable) { v.body = true })
	parsed.text = parsed.part(index, texts.text, func(v *variable) { v.body = true })
	return parsed, nil
}

// part replaces each name of the segments by its variable, and records there how it is used.
func (t *Template) part(index map[string]int, segments []Segment, note func(*variable)) part {
	p := make(part, len(segments))
	for i, s := range segments {
		p[i] = piece{s.Text, -1}
		if s.Name == "" {
			continue
		}
		at, known := index[s.Name]
		if !known {
			at = len(t.variables)
			index[s.Name] = at
			t.variables = append(t.variables, variable{name: s.Name})
		}
		v := &t.variables[at]
		v.link = v.link || s.Link
		v.rest = v.rest || s.Rest
		note(v)
		p[i].variable = at
	}
	return p
}

// WithProjectName returns the variables with the project's name added, unless they have one. given is not changed.
func WithProjectName(given map[string]string, name string) map[string]string {
	if _, set := given[catalog.ProjectNameVariable]; set {
		return given
	}
	all := make(map[string]string, len(given)+1)
	maps.Copy(all, given)
	all[catalog.ProjectNameVariable] = name
	return all
}

// Variables lists the names that the template uses, in the order of their first use in subject, HTML and text.
func (t *Template) Variables() []string {
	names := make([]string, len(t.variables))
	for i, v := range t.variables {
		names[i] = v.name
	}
	return names
}

// Missing lists the names that the template uses and vars lacks, in the order of their first use. It is never nil.
func (t *Template) Missing(vars map[string]string) []string {
	names := []string{}
	for _, v := range t.variables {
		if _, there := vars[v.name]; !there {
			names = append(names, v.name)
		}
	}
	return names
}

// Unused lists the names in vars that the template does not use, sorted, without the project's name, which the caller
// may not have given. It is never nil.
func (t *Template) Unused(vars map[string]string) []string {
	names := []string{}
	for name := range vars {
		used := slices.ContainsFunc(t.variables, func(v variable) bool { return v.name == name })
		if !used && name != catalog.ProjectNameVariable {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Render fills in the values: HTML-escaped in the HTML, unchanged in subject and text, except that carriage returns
// become line feeds. It does not look for placeholders in values. Problems are on variables.NAME, or on variables for
// all of them together, and show no value; with any problem the Rendered is zero.
func (t *Template) Render(vars map[string]string) (Rendered, catalog.Problems) {
	ps := t.check(vars)
	for _, name := range t.Missing(vars) {
		ps.Addf("variables."+name, "is required: the template uses {{%s}}", name)
	}
	if len(ps) > 0 {
		return Rendered{}, ps
	}
	return t.render(vars)
}

// A Preview is a mail as it would be sent. The placeholder of a missing variable stays.
type Preview struct {
	Rendered
	Missing, Unused []string
}

// Preview is Render for a preview: missing variables are listed and are no problem.
func (t *Template) Preview(vars map[string]string) (Preview, catalog.Problems) {
	if ps := t.check(vars); len(ps) > 0 {
		return Preview{}, ps
	}
	rendered, ps := t.render(vars)
	if len(ps) > 0 {
		return Preview{}, ps
	}
	return Preview{Rendered: rendered, Missing: t.Missing(vars), Unused: t.Unused(vars)}, nil
}

// check finds the values that are not allowed where the template uses them, and those beyond the limits.
func (t *Template) check(vars map[string]string) (ps catalog.Problems) {
	given := len(vars)
	if _, named := vars[catalog.ProjectNameVariable]; named {
		given--
	}
	if given > catalog.MaxVariables {
		ps.Addf("variables", "there are %d, %d are allowed", given, catalog.MaxVariables)
		return ps
	}
	for name, value := range vars {
		if len(value) > MaxValueBytes {
			ps.Addf("variables."+name, "has %d bytes, %d are allowed", len(value), MaxValueBytes)
		}
	}
	slices.SortFunc(ps, func(a, b catalog.Problem) int { return strings.Compare(a.Path, b.Path) })
	for _, v := range t.variables {
		if value, there := vars[v.name]; there && len(value) <= MaxValueBytes {
			v.check(&ps, value)
		}
	}
	return ps
}

func (v variable) check(ps *catalog.Problems, value string) {
	path := "variables." + v.name
	switch {
	case !utf8.ValidString(value):
		ps.Addf(path, "must be UTF-8 text")
		return
	case v.subject && strings.ContainsFunc(value, catalog.BreaksLine):
		ps.Addf(path, "must not hold control characters or line breaks: it stands in the subject")
	case v.body && strings.ContainsFunc(value, badInBody):
		ps.Addf(path, "must not hold control characters other than tabs and line breaks")
	}
	if v.link && !isLink(value) {
		ps.Addf(path, "begins a link (href, src, action or the like), so it must be an http, https, mailto or tel "+
			"address, such as https://acme.example/")
	}
	if v.rest && hasScheme.MatchString(value) {
		ps.Addf(path, "begins with a scheme, and the template has one before it: give the address without it, or remove "+
			"the one in front of {{%s}}", v.name)
	}
}

// hasScheme finds a value that is a whole address. host:port is none.
var hasScheme = regexp.MustCompile(`(?i)^\s*([a-z][a-z0-9+.-]*://|(https?|mailto|tel):)`)

func badInBody(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t' }

// isLink reports whether a value may begin an address. The mail reader handles what comes after the scheme.
func isLink(value string) bool {
	scheme, rest, ok := strings.Cut(value, ":")
	if !ok {
		return false
	}
	switch strings.ToLower(scheme) {
	case "http", "https":
		host, ok := strings.CutPrefix(rest, "//")
		return ok && host != ""
	case "mailto", "tel":
		return rest != ""
	}
	return false
}

// render fills in values that were checked, and {{name}} for a missing one.
func (t *Template) render(vars map[string]string) (Rendered, catalog.Problems) {
	values := make([]string, 2*len(t.variables))
	plain, escaped := values[:len(t.variables)], values[len(t.variables):]
	for i, v := range t.variables {
		value, there := vars[v.name]
		if !there {
			value = "{{" + v.name + "}}"
		}
		// Without & < > " and ' a value can end neither text nor a quoted attribute.
		escaped[i] = html.EscapeString(value)
		plain[i] = strings.ReplaceAll(strings.ReplaceAll(value, "\r\n", "\n"), "\r", "\n")
	}
	subject, html, text := t.subject.size(plain), t.html.size(escaped), t.text.size(plain)
	var ps catalog.Problems
	if subject > catalog.MaxSubjectBytes {
		ps.Addf("variables", "make a subject of %d bytes, %d are allowed", subject, catalog.MaxSubjectBytes)
	}
	if all := subject + html + text; all > MaxRenderedBytes {
		ps.Addf("variables", "make a mail of %d bytes, %d are allowed", all, MaxRenderedBytes)
	}
	if len(ps) > 0 {
		return Rendered{}, ps
	}
	return Rendered{t.subject.fill(plain, subject), t.html.fill(escaped, html), t.text.fill(plain, text)}, nil
}

// size returns how many bytes fill will make, before anything of that size is allocated.
func (p part) size(values []string) (n int) {
	for _, piece := range p {
		n += len(piece.text)
		if piece.variable >= 0 {
			n += len(values[piece.variable])
		}
	}
	return n
}

func (p part) fill(values []string, size int) string {
	var b strings.Builder
	b.Grow(size)
	for _, piece := range p {
		b.WriteString(piece.text)
		if piece.variable >= 0 {
			b.WriteString(values[piece.variable])
		}
	}
	return b.String()
}
