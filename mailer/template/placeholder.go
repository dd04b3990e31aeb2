package template

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"fingerpost/resolver/catalog"
)

// A Segment is a piece of a template's subject or body: text, and the placeholder or the tag of a condition that follows
// it.
type Segment struct {
	Text string // unchanged bytes
	Op   Op     // what follows Text
	Name string // the variable of a Value or an If; "" for a Value only at the end of the part, if none follows
	// the value begins an address (href, src, action …), so it must be a web, mail or telephone one (mailer/README.md)
	Link bool
	// the value follows a scheme alone (http:// and the like), so it must not bring one of its own
	Rest bool
	// the value is a colour in a style or in bgcolor, so it must be a label of the project that is one
	Colour bool
}

// ParsePlain splits a subject or a plain text into segments. Placeholders are {{name}}, spaces inside allowed, and
// conditions {{#if name}}…{{else}}…{{/if}}; anything else in double braces is a problem. catalog.Problems are on path,
// carry their byte range, and begin with line and column. The segments are valid only if there are no problems.
func ParsePlain(path, text string) ([]Segment, catalog.Problems) {
	l := lint{text: text}
	holes := l.holes(spoilt(text, false))
	l.conditions(holes)
	return segments(text, holes), l.problems(path)
}

// ParseHTML is ParsePlain for HTML. It also reports placeholders in contexts where escaping does not keep a value plain
// text: in scripts, style sheets, names of tags and attributes, values without quotes, and attributes whose value is
// code, HTML, CSS or a list of addresses; and conditions in tags and comments, and around parts of elements.
func ParseHTML(path, text string) ([]Segment, catalog.Problems) {
	l := lint{text: text}
	holes := l.holes(spoilt(text, true))
	l.conditions(holes)
	if len(holes) > 0 {
		newMarkup(&l, holes).content(0, len(text))
	}
	return segments(text, holes), l.problems(path)
}

func segments(text string, holes []hole) []Segment {
	if text == "" {
		return nil
	}
	all := make([]Segment, 0, len(holes)+1)
	at := 0
	for _, h := range holes {
		all = append(all, Segment{Text: text[at:h.start], Op: h.op, Name: h.name, Link: h.link, Rest: h.rest,
			Colour: h.colour})
		at = h.end
	}
	if at < len(text) {
		all = append(all, Segment{Text: text[at:]})
	}
	return all
}

// A hole is a pair of double braces with its content: text[start:end], braces included.
type hole struct {
	start, end int
	op         Op
	name       string // "" for {{else}}, {{/if}}, and for what is neither a placeholder nor a tag of a condition
	link, rest bool   // see Segment
	colour     bool   // likewise
	refused    bool   // refused because of its context
}

// valid reports whether the braces hold a placeholder or a tag of a condition.
func (h *hole) valid() bool { return h.name != "" || h.op != Value }

// A lint collects the problems of a text.
type lint struct {
	text  string
	found []finding
}

type finding struct {
	start, end int
	message    string
}

func (l *lint) add(start, end int, format string, args ...any) {
	l.found = append(l.found, finding{start, end, fmt.Sprintf(format, args...)})
}

// maxFindings bounds the findings of one text. Nobody reads more, and half a megabyte of braces must not become a
// hundred megabytes of problems.
const maxFindings = 100

// problems sorts the findings by position and gives each its line and column.
func (l *lint) problems(path string) (ps catalog.Problems) {
	slices.SortStableFunc(l.found, func(a, b finding) int { return cmp.Compare(a.start, b.start) })
	at, line, column := 0, 1, 1
	for i, f := range l.found {
		between := l.text[at:f.start]
		if n := strings.Count(between, "\n"); n > 0 {
			line, column = line+n, 1
			between = between[strings.LastIndexByte(between, '\n')+1:]
		}
		column += utf8.RuneCountInString(between)
		at = f.start
		if i == maxFindings {
			f.message = fmt.Sprintf("from here on %d more problems are not shown", len(l.found)-i)
		}
		ps = append(ps, catalog.Problem{Path: path, Start: f.start, End: f.end, Message: fmt.Sprintf(
			"line %d, column %d: %s", line, column, f.message)})
		if i == maxFindings {
			break
		}
	}
	return ps
}

// holes finds all double braces, and reports those without a valid name, and all spoilt placeholders.
func (l *lint) holes(spoilt []spoiltPlaceholder) (all []hole) {
	for _, s := range spoilt {
		seen := l.text[s.start:s.end]
		if len(seen) > 64 {
			seen = "this"
		}
		l.add(s.start, s.end, "%s is a spoilt placeholder; write {{%s}}, with plain braces and nothing between them",
			strings.Join(strings.Fields(seen), " "), s.name)
	}
	for at := 0; ; {
		open := strings.Index(l.text[at:], "{{")
		if open < 0 {
			return all
		}
		open += at
		for len(spoilt) > 0 && spoilt[0].end <= open {
			spoilt = spoilt[1:]
		}
		h, closed := l.holeAt(open)
		switch {
		case len(spoilt) > 0 && spoilt[0].start < h.end: // reported already
			h = hole{start: open, end: max(open+2, spoilt[0].end)}
		case !closed:
			l.add(open, h.end, "{{ is never closed; a placeholder is {{name}}, on one line")
		case !h.valid():
			l.refuseBraces(open, h.end)
		}
		all = append(all, h)
		at = h.end
	}
}

// refuseBraces reports double braces that hold no placeholder and no tag of a condition.
func (l *lint) refuseBraces(open, end int) {
	inside := strings.Trim(l.text[open:end], "{}")
	if name := meant(inside); name != "" {
		l.add(open, end, "what stands in double braces must be a name and nothing else; write {{%s}}", name)
	} else if advice := blockAdvice(inside); advice != "" {
		l.add(open, end, "%s", advice)
	} else {
		helpers := ""
		if len(strings.Fields(inside)) > 1 {
			helpers = "; there are no helpers, so the caller makes the text"
		}
		l.add(open, end, "what stands in double braces must be a name of letters, digits, underscores and dots, such "+
			"as {{userName}}%s", helpers)
	}
}

// holeAt reads from double braces to the closing ones. They are not closed if the line or the text ends first, or
// others are opened.
func (l *lint) holeAt(open int) (h hole, closed bool) {
	h.start = open
	begin := open + 2
	for begin < len(l.text) && l.text[begin] == '{' {
		begin++
	}
	for i := begin; i < len(l.text); i++ {
		rest := l.text[i:]
		switch {
		case strings.HasPrefix(rest, "}}"):
			h.end = i + 2
			if begin == open+2 {
				if h.op, h.name = opOf(l.text[begin:i]); h.op == Value {
					h.name = placeholderName(l.text[begin:i])
				}
				return h, true
			}
			// As many as were opened: {{{a}}} is one mistake.
			for h.end < len(l.text) && l.text[h.end] == '}' && h.end-i < begin-open {
				h.end++
			}
			return h, true
		case rest[0] == '\n', strings.HasPrefix(rest, "{{"):
			h.end = i
			return h, false
		}
	}
	h.end = len(l.text)
	return h, false
}

// placeholderName returns the name between double braces, or "" if it is invalid.
func placeholderName(s string) string {
	s = strings.Trim(s, " \t")
	for i := range len(s) {
		switch c := s[i]; {
		case isLetter(c), c == '_', i > 0 && (c == '.' || c >= '0' && c <= '9'):
		default:
			return ""
		}
	}
	return s
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
