package template

import "strings"

// An Op is what a pair of double braces does.
type Op uint8

// The value of a variable, and the tags of a condition.
const (
	Value Op = iota // {{name}}
	If              // {{#if name}}: what follows is there if the variable is there and not empty
	Else            // {{else}}
	End             // {{/if}}
)

// maxConditions bounds how deep conditions nest.
const maxConditions = 4

// opOf reads what stands between double braces as a tag of a condition. op is Value for anything else.
func opOf(s string) (op Op, name string) {
	words := strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == '\t' })
	switch {
	case len(words) == 1 && words[0] == "else":
		return Else, ""
	case len(words) == 1 && words[0] == "/if":
		return End, ""
	case len(words) == 2 && words[0] == "#if":
		if name = placeholderName(words[1]); name != "" {
			return If, name
		}
	}
	return Value, ""
}

// blockAdvice says what to write instead of a block, a helper or a partial of Handlebars or Mustache that stands between
// double braces. It is "" for what is none of them.
func blockAdvice(s string) string {
	const only = "{{#if name}}…{{else}}…{{/if}} is the only block"
	if bare := strings.Trim(s, "~"); bare != s {
		if op, _ := opOf(bare); op != Value || placeholderName(bare) != "" {
			return "~ is not known: write the braces without it"
		}
		s = bare
	}
	words := strings.Fields(s)
	if len(words) == 0 {
		return ""
	}
	first := words[0]
	name := placeholderName(strings.TrimLeft(first, "#/"))
	switch {
	case first == "else":
		return "{{else}} stands alone: write {{else}}{{#if name}}…{{/if}}{{/if}} for a second condition"
	case first == "#if":
		return "a condition asks whether one variable is there and not empty, as {{#if name}} does: compare in the " +
			"caller, and give the result as a variable"
	case first == "#unless" || first == "/unless", strings.HasPrefix(first, "^"):
		return only + ": write {{#if name}}{{else}}…{{/if}}"
	case first == "#each" || first == "/each", first == "#list" || first == "/list":
		return "there are no loops, " + only + ": write each line once, with a condition around those that may be " +
			"missing, or give the finished list as one variable"
	case strings.HasPrefix(first, ">"):
		return "there are no partials: write its text here"
	case strings.HasPrefix(first, "!"):
		return "there are no comments in double braces: leave it out, or write <!-- … --> in HTML"
	case first == "#" || first == "/" || first == "^":
		return only + ": write its tags without blanks after { and #"
	case strings.HasPrefix(first, "#") && len(words) == 1 && name != "", strings.HasPrefix(first, "/") && name != "":
		return "there are no sections, " + only + ": for what is there or not, write {{#if name}}…{{/if}}"
	case strings.HasPrefix(first, "#"):
		return "there are no helpers, " + only + ": make the text in the caller, and give it as a variable"
	}
	return ""
}

// conditions reports tags of conditions that do not belong together, and conditions that nest too deep.
func (l *lint) conditions(holes []hole) {
	type condition struct {
		at   int // its {{#if}}
		then int // its {{else}}; -1: none was there yet
	}
	var open []condition
	for i, h := range holes {
		switch h.op {
		case If:
			if len(open) == maxConditions {
				l.add(h.start, h.end, "%s stands in %d other conditions, and no more are allowed", h.text(), maxConditions)
			}
			open = append(open, condition{i, -1})
		case Else, End:
			if len(open) == 0 {
				l.add(h.start, h.end, "%s stands outside of a condition: begin it with {{#if name}}", h.text())
				continue
			}
			last := &open[len(open)-1]
			if h.op == End {
				open = open[:len(open)-1]
			} else if last.then >= 0 {
				l.add(h.start, h.end, "this is the second {{else}} of %s", holes[last.at].text())
			} else {
				last.then = i
			}
		}
	}
	for _, c := range open {
		h := holes[c.at]
		l.add(h.start, h.end, "%s is never closed; end it with {{/if}}", h.text())
	}
}

// text names what stands in the braces, for a problem.
func (h *hole) text() string {
	switch {
	case h.op == Else:
		return "{{else}}"
	case h.op == End:
		return "{{/if}}"
	case len(h.name) > 64:
		return "this"
	case h.op == If:
		return "{{#if " + h.name + "}}"
	}
	return "{{" + h.name + "}}"
}

// An element is a start tag within a condition whose end tag was not there yet.
type element struct {
	name       string
	start, end int // the tag
}

// A branch is what stands between two tags of a condition.
type branch struct {
	condition string // {{#if name}}
	open      []element
	broken    bool // one problem was found, and the next ones would follow from it
}

// voidElements have no end tag.
var voidElements = map[string]bool{"area": true, "base": true, "basefont": true, "bgsound": true, "br": true, "col": true,
	"embed": true, "frame": true, "hr": true, "image": true, "img": true, "input": true, "keygen": true, "link": true,
	"meta": true, "param": true, "source": true, "track": true, "wbr": true}

// op walks over the tag of a condition in text. Elements begin and end in one branch, so that whatever is left out, the
// others stay as they are.
func (m *markup) op(h *hole) {
	if m.inConditional {
		m.refuseOne(h, inComment)
		return
	}
	if h.op != If && len(m.branches) > 0 {
		last := &m.branches[len(m.branches)-1]
		left := len(last.open) > 0
		if left && !last.broken {
			e := last.open[0]
			m.lint.add(e.start, e.end, "<%s> is not closed before the %s of its condition, which stands around whole elements",
				e.name, h.text())
		}
		last.open, last.broken = nil, left || last.broken
		if h.op == End {
			m.branches = m.branches[:len(m.branches)-1]
		}
	}
	if h.op == If {
		m.branches = append(m.branches, branch{condition: h.text()})
	}
}

// opens notes a start tag.
func (m *markup) opens(name string, start, end int) {
	if len(m.branches) == 0 || m.inConditional || voidElements[name] {
		return
	}
	if strings.Contains(name, ":") && strings.HasSuffix(m.src[start:end], "/>") { // VML
		return
	}
	last := &m.branches[len(m.branches)-1]
	last.open = append(last.open, element{name, start, end})
}

// closes notes an end tag.
func (m *markup) closes(name string, start, end int) {
	if len(m.branches) == 0 || m.inConditional || voidElements[name] {
		return
	}
	last := &m.branches[len(m.branches)-1]
	n := len(last.open)
	switch {
	case last.broken:
	case n > 0 && last.open[n-1].name == name:
		last.open = last.open[:n-1]
	case n > 0:
		m.lint.add(start, end, "</%s> comes before the end of <%s>; within %s each element must have its end tag", name,
			last.open[n-1].name, last.condition)
		last.broken = true
	default:
		m.lint.add(start, end, "</%s> ends an element that begins outside of %s; a condition stands around whole elements",
			name, last.condition)
		last.broken = true
	}
}
