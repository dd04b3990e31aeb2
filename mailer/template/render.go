package template

import (
	"html"
	"iter"
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
	variables           []string       // in the order of their first use
	index               map[string]int // of variables
	// fromHTML: the text part is made of the HTML of each mail, because that has conditions, and marks of them between the
	// rows of a table would not stay there when it is parsed.
	fromHTML bool
}

// A part is a subject or a body.
type part []piece

// A piece is text and what follows it.
type piece struct {
	text     string
	op       Op
	variable int // the index of the variable of a Value or an If; -1 if there is none
	next     int // after an Else, and after an If that does not hold: the index of the piece that follows
	use      use
}

// A use is how a mail uses the value of a variable.
type use struct {
	subject, body bool // it stands there
	link          bool // it begins an address, see Segment
	rest          bool // it follows a scheme, see Segment
	colour        bool // it is a colour, see Segment
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
	fromHTML := t.BodyText == "" && slices.ContainsFunc(texts.html, func(s Segment) bool { return s.Op != Value })
	if t.BodyText == "" && !fromHTML {
		var err error
		if texts.text, err = plainSegments(texts.html); err != nil {
			ps.Addf("bodyHtml", "%v", err)
			return nil, ps
		}
	}
	parsed := &Template{index: map[string]int{}, fromHTML: fromHTML}
	parsed.subject = parsed.part(texts.subject, use{subject: true})
	parsed.html = parsed.part(texts.html, use{body: true})
	parsed.text = parsed.part(texts.text, use{body: true})
	return parsed, nil
}

// part replaces each name of the segments by its variable, and records how it is used.
func (t *Template) part(segments []Segment, in use) part {
	p := make(part, len(segments))
	var open []int // pieces that begin a branch
	for i, s := range segments {
		p[i] = piece{text: s.Text, op: s.Op, variable: -1, use: in}
		p[i].use.link, p[i].use.rest, p[i].use.colour = s.Link, s.Rest, s.Colour
		if s.Name != "" {
			p[i].variable = t.variable(s.Name)
		}
		if s.Op == Else || s.Op == End {
			p[open[len(open)-1]].next = i + 1
			open = open[:len(open)-1]
		}
		if s.Op == If || s.Op == Else {
			open = append(open, i)
		}
	}
	return p
}

// variable returns the index of a variable.
func (t *Template) variable(name string) int {
	at, known := t.index[name]
	if !known {
		at = len(t.variables)
		t.index[name] = at
		t.variables = append(t.variables, name)
	}
	return at
}

// taken yields the pieces that stand in a mail: conditions hold for the variables of vars that are not empty.
func (t *Template) taken(p part, vars map[string]string) iter.Seq[*piece] {
	return func(yield func(*piece) bool) {
		for i := 0; i < len(p); {
			if !yield(&p[i]) {
				return
			}
			if p[i].op == Else || p[i].op == If && vars[t.variables[p[i].variable]] == "" {
				i = p[i].next
			} else {
				i++
			}
		}
	}
}

// uses returns how a mail with these variables uses each of them; nil for a variable that it does not use.
func (t *Template) uses(vars map[string]string) []*use {
	all := make([]*use, len(t.variables))
	for _, p := range []part{t.subject, t.html, t.text} {
		for piece := range t.taken(p, vars) {
			if piece.op != Value || piece.variable < 0 {
				continue
			}
			u, more := &all[piece.variable], piece.use
			if *u == nil {
				*u = new(use)
			}
			(*u).subject, (*u).body = (*u).subject || more.subject, (*u).body || more.body
			(*u).link, (*u).rest, (*u).colour = (*u).link || more.link, (*u).rest || more.rest, (*u).colour || more.colour
		}
	}
	return all
}

// WithProject returns the variables that a mail of a project has: those that the caller gives, the project's name
// unless they have one, and its labels. Names that begin with catalog.LabelVariable are the labels' alone. given is not changed.
func WithProject(given map[string]string, p *catalog.Project) map[string]string {
	all := make(map[string]string, len(given)+len(p.Labels)+1)
	for name, value := range given {
		if !strings.HasPrefix(name, catalog.LabelVariable) {
			all[name] = value
		}
	}
	if _, set := given[catalog.ProjectNameVariable]; !set {
		all[catalog.ProjectNameVariable] = p.Name
	}
	for _, l := range p.Labels {
		all[catalog.LabelVariable+l.Name] = l.Value
	}
	return all
}

// byService reports whether a variable is one that the service adds.
func byService(name string) bool {
	return name == catalog.ProjectNameVariable || name == catalog.UnsubscribeVariable ||
		strings.HasPrefix(name, catalog.LabelVariable)
}

// Variables lists the names that the template uses, those of conditions too, in the order of their first use in subject,
// HTML and text.
func (t *Template) Variables() []string { return slices.Clone(t.variables) }

// Missing lists the names that a mail with vars needs and vars lacks, in the order of their first use: what a condition
// leaves out needs nothing. It is never nil.
func (t *Template) Missing(vars map[string]string) []string {
	names := []string{}
	for i, use := range t.uses(vars) {
		if _, there := vars[t.variables[i]]; !there && use != nil {
			names = append(names, t.variables[i])
		}
	}
	return names
}

// Unused lists the names in vars that the template does not use, sorted, without those that the service adds. It is
// never nil.
func (t *Template) Unused(vars map[string]string) []string {
	names := []string{}
	for name := range vars {
		if _, used := t.index[name]; !used && !byService(name) {
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
		if label, is := strings.CutPrefix(name, catalog.LabelVariable); is {
			ps.Addf("variables."+name, "is required: the template uses {{%s}}, and the project has no label %q", name, label)
		} else {
			ps.Addf("variables."+name, "is required: the template uses {{%s}}", name)
		}
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
	given := 0
	for name := range vars {
		if !byService(name) {
			given++
		}
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
	for i, use := range t.uses(vars) {
		name := t.variables[i]
		if value, there := vars[name]; there && use != nil && len(value) <= MaxValueBytes {
			use.check(&ps, name, value)
		}
	}
	return ps
}

// check finds what is wrong with the value of a variable that is used like this.
func (v *use) check(ps *catalog.Problems, name, value string) {
	path := "variables." + name
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
			"the one in front of {{%s}}", name)
	}
	if v.colour && !isColour(value) {
		ps.Addf(path, "stands as a colour, so the project's label %q must be #rgb, #rrggbb or the name of a colour in CSS",
			strings.TrimPrefix(name, catalog.LabelVariable))
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
	for i, name := range t.variables {
		value, there := vars[name]
		if !there {
			value = "{{" + name + "}}"
		}
		// Without & < > " and ' a value can end neither text nor a quoted attribute.
		escaped[i] = html.EscapeString(value)
		plain[i] = strings.ReplaceAll(strings.ReplaceAll(value, "\r\n", "\n"), "\r", "\n")
	}
	var ps catalog.Problems
	textPart, err := t.textPart(vars)
	if err != nil {
		ps.Addf("variables", "choose parts of the HTML that cannot be sent: it %v", err)
		return Rendered{}, ps
	}
	subject, html, text := t.size(t.subject, vars, plain), t.size(t.html, vars, escaped), t.size(textPart, vars, plain)
	if subject > catalog.MaxSubjectBytes {
		ps.Addf("variables", "make a subject of %d bytes, %d are allowed", subject, catalog.MaxSubjectBytes)
	}
	if all := subject + html + text; all > MaxRenderedBytes {
		ps.Addf("variables", "make a mail of %d bytes, %d are allowed", all, MaxRenderedBytes)
	}
	if len(ps) > 0 {
		return Rendered{}, ps
	}
	return Rendered{t.fill(t.subject, vars, plain, subject), t.fill(t.html, vars, escaped, html),
		t.fill(textPart, vars, plain, text)}, nil
}

// textPart returns the text part, made of what the conditions leave of the HTML if there is no other.
func (t *Template) textPart(vars map[string]string) (part, error) {
	if !t.fromHTML {
		return t.text, nil
	}
	var left []Segment
	for piece := range t.taken(t.html, vars) {
		s := Segment{Text: piece.text}
		if piece.op == Value && piece.variable >= 0 {
			s.Name = t.variables[piece.variable]
		}
		left = append(left, s)
	}
	segments, err := plainSegments(left)
	if err != nil {
		return nil, err
	}
	made := make(part, len(segments))
	for i, s := range segments {
		made[i] = piece{text: s.Text, variable: -1}
		if s.Name != "" {
			made[i].variable = t.index[s.Name]
		}
	}
	return made, nil
}

// size returns how many bytes fill will make, before anything of that size is allocated.
func (t *Template) size(p part, vars map[string]string, values []string) (n int) {
	for piece := range t.taken(p, vars) {
		n += len(piece.text)
		if piece.op == Value && piece.variable >= 0 {
			n += len(values[piece.variable])
		}
	}
	return n
}

func (t *Template) fill(p part, vars map[string]string, values []string, size int) string {
	var b strings.Builder
	b.Grow(size)
	for piece := range t.taken(p, vars) {
		b.WriteString(piece.text)
		if piece.op == Value && piece.variable >= 0 {
			b.WriteString(values[piece.variable])
		}
	}
	return b.String()
}
