package transfer

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"fingerpost/configsrc/hcledit"
	"fingerpost/resolver/catalog"
)

// marks are how changes begin a line, and colours are for terminals.
var (
	marks   = map[string]string{Added: "+", Changed: "~", Removed: "-"}
	colours = map[string]string{Added: "\x1b[32m", Changed: "\x1b[33m", Removed: "\x1b[31m"}
)

const colourOff = "\x1b[0m"

// WriteChanges prints changes for people. Those of a project are consecutive, below its name:
//
//	  project "acme"
//	    ~ name: "Acme Shop" → "Acme Store"
//	    + domain "new.acme.example"
//	        primary = true
//	    ~ auth_settings
//	        ~ jwt_secret: changed (secret)
//	- project "gone"
func WriteChanges(w io.Writer, changes []Change, coloured bool) error {
	p := changePrinter{w: bufio.NewWriter(w), coloured: coloured}
	project := ""
	for i := range changes {
		c := &changes[i]
		switch {
		case c.Project == "":
			p.object("", c)
		case c.Kind == catalog.KindProject && c.Action != Changed:
			p.object("", c)
		default:
			if c.Project != project {
				fmt.Fprintf(p.w, "  project %s\n", hcledit.Quote(c.Project))
			}
			if c.Kind == catalog.KindProject {
				p.fields("    ", c)
			} else {
				p.object("    ", c)
			}
		}
		project = c.Project
	}
	return p.w.Flush()
}

type changePrinter struct {
	w        *bufio.Writer
	coloured bool
}

// line prints a line that begins with an action's mark.
func (p *changePrinter) line(indent, action, text string) {
	mark := marks[action]
	if p.coloured {
		mark, text = colours[action]+mark, text+colourOff
	}
	fmt.Fprintf(p.w, "%s%s %s\n", indent, mark, text)
}

func (p *changePrinter) object(indent string, c *Change) {
	p.line(indent, c.Action, c.Title())
	p.fields(indent+"    ", c)
}

func (p *changePrinter) fields(indent string, c *Change) {
	for _, f := range c.Fields {
		switch {
		case c.Action == Added && f.Secret:
			fmt.Fprintf(p.w, "%s%s = (secret)\n", indent, f.Field)
		case c.Action == Added:
			fmt.Fprintf(p.w, "%s%s = %s\n", indent, f.Field, f.shown(f.New))
		case f.Secret:
			p.line(indent, Changed, f.Field+": changed (secret)")
		default:
			p.line(indent, Changed, fmt.Sprintf("%s: %s → %s", f.Field, f.shown(f.Old), f.shown(f.New)))
		}
	}
}

// mostShown is how many characters of a text are printed.
const mostShown = 80

// shown formats a value for people: text in quotes, long text by its size, and an element of a list as it is.
func (f *FieldChange) shown(v any) string {
	s, ok := v.(string)
	switch {
	case ok && f.whole:
		return s
	case v == nil:
		return "none"
	case !ok:
		return fmt.Sprint(v)
	case strings.Contains(strings.TrimSuffix(s, "\n"), "\n"):
		lines := strings.Count(strings.TrimSuffix(s, "\n"), "\n") + 1
		return fmt.Sprintf("(%s, %s)", catalog.Count(lines, "line"), catalog.Count(len(s), "byte"))
	}
	if r := []rune(s); len(r) > mostShown {
		return hcledit.Quote(string(r[:mostShown])) + fmt.Sprintf("… (%s)", catalog.Count(len(s), "byte"))
	}
	return hcledit.Quote(s)
}
