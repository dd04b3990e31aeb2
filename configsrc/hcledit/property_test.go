package hcledit_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"fingerpost/configsrc/hcledit"
	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// scribble writes a sound file as many hands would have: comments everywhere, tabs, blank lines, heredocs, one-line
// blocks.
type scribble struct {
	*rand.Rand
	b strings.Builder
}

func (s *scribble) pick(options ...string) string { return options[s.IntN(len(options))] }

func (s *scribble) line(indent, text string) {
	s.b.WriteString(indent + text + s.pick("", "", "", "  # why", " // {", " /* } */", "  ", "\t") + "\n")
	s.b.WriteString(s.pick("", "", "", "\n", indent+"# a = 1\n", "  \n", indent+"/* two\n lines = 2 */\n"))
}

func (s *scribble) value() string {
	return s.pick(`"x"`, `"a \" b"`, `( "x" )`, `"$${x} {{y}}"`, `"# no comment"`)
}

func (s *scribble) text(indent string) string {
	return s.pick(`"plain"`, "<<-EOT\n"+indent+"  one # 1\n\n"+indent+"    two }\n"+indent+"EOT", "<<E_1\nkey \"x\" {\n  # no\nE_1", "trimsuffix(<<EOT\nq = \"\nEOT\n"+indent+", \"\\n\")")
}

// file returns a file that decodes without errors.
func (s *scribble) file() []byte {
	s.b.Reset()
	s.b.WriteString(s.pick("", "# head\n", "# head\n\n", "\n\n", "/* head\n*/\n"))
	for i := range 1 + s.IntN(4) {
		switch s.IntN(4) {
		case 0:
			s.line("", fmt.Sprintf("project \"p%d\" {", i))
			in := s.pick("  ", "\t", "    ")
			s.line(in, "name"+s.pick(" = ", "=", "   = ")+s.value())
			if s.IntN(2) == 0 {
				s.line(in, "description = "+s.value())
			}
			for j := range s.IntN(3) {
				s.line(in, fmt.Sprintf("domain \"d%d.p%d.example\" %s", j, i, s.pick("{}", "{ active = true }", "{ verified = \"pending\" }", "{ /* c */ }", "{\n"+in+"}")))
			}
			if s.IntN(2) == 0 {
				s.line(in, "service_settings {"+s.pick("}", " mail_enabled = true }", "\n"+in+"  sms_enabled = true\n"+in+"}"))
			}
			s.line("", "}")
		case 1:
			s.line("", fmt.Sprintf("template T%d {", i))
			s.line("  ", "name             = "+s.value())
			s.b.WriteString("  body_text = " + s.text("  ") + "\n")
			s.line("  ", "subject_template = "+s.value())
			if s.IntN(2) == 0 {
				s.line("  ", "locale \"de\" {")
				s.b.WriteString("    body_html = " + s.text("    ") + "\n")
				s.line("    ", "subject_template = "+s.value())
				s.line("  ", "}")
			}
			s.line("", "}")
		case 2:
			s.line("", fmt.Sprintf("key \"k%d\" {", i))
			s.line("\t", fmt.Sprintf("id = \"abcdef%d\"", i))
			s.line("\t", "hash = \"sha256:"+strings.Repeat("0a", 32)+"\"")
			s.line("\t", "allow = [\"read\", \"mail\"]")
			s.line("", "}")
		case 3:
			s.line("", fmt.Sprintf("login \"l%d\" {", i))
			s.line("  ", "issuer = \"https://login.example/\"")
			s.line("  ", "client_id = "+s.value())
			for range s.IntN(3) {
				s.line("  ", "rule {")
				s.line("    ", "claim = \"groups\"")
				s.line("    ", "value = "+s.value())
				s.line("    ", "allow = [\"read\", // not \"write\"\n\"mail\"]")
				s.line("  ", "}")
			}
			s.line("", "}")
		}
	}
	src := s.b.String()
	if s.IntN(4) == 0 {
		src = strings.TrimRight(src, "\n")
	}
	if s.IntN(3) == 0 {
		src = strings.ReplaceAll(src, "\n", "\r\n")
	}
	if s.IntN(6) == 0 {
		src = "\xef\xbb\xbf" + src
	}
	return []byte(src)
}

// blocks lists the paths of the blocks of a file.
func blocksOf(d *catalog.Declared) (all []path) {
	for _, p := range d.Projects {
		all = append(all, path{"project", p.Project.Slug})
		for _, dom := range p.Domains {
			all = append(all, path{"project", p.Project.Slug, "domain", dom.Name})
		}
	}
	for _, t := range d.Templates {
		all = append(all, path{"template", t.Code})
	}
	for _, k := range d.Keys {
		all = append(all, path{"key", k.Name})
	}
	for _, w := range d.Webhooks {
		all = append(all, path{"webhook", w.Name})
	}
	for _, l := range d.Logins {
		all = append(all, path{"login", l.Name})
	}
	for _, b := range d.Inbounds {
		all = append(all, path{"inbound", b.Name})
	}
	return all
}

// TestRandomEdits makes many edits in many files and asserts for each that the bytes that it is not about are as before.
// That the result says what was meant is checked by the edits themselves; that they never refuse is checked here.
func TestRandomEdits(t *testing.T) {
	s := &scribble{Rand: rand.New(rand.NewPCG(5, 6))}
	for i := range rounds(t, 3000) {
		src := s.file()
		if i%2 == 0 {
			src, _ = hclfile.Format(src)
		}
		for range 6 {
			r, ds := hclfile.Decode("s.hcl", src, hclfile.Options{})
			if ds.HasErrors() {
				t.Fatalf("%d: %s\n%s", i, text(ds), src)
			}
			blocks := blocksOf(r.Declared)
			if len(blocks) == 0 {
				break
			}
			at := blocks[s.IntN(len(blocks))]
			after, what, err := s.edit(src, at)
			if err != nil {
				t.Fatalf("%d: %s: %v\n%s", i, what, err, src)
			}
			msg := untouched(src, after, what)
			if msg == "" {
				msg = formatKept(src, after, at)
			}
			if msg != "" {
				t.Fatalf("%d: %s: %s\n--- before\n%q\n--- after\n%q", i, what, msg, src, after)
			}
			if bytes.Contains(src, []byte("\r\n")) && bytes.Count(after, []byte("\n")) != bytes.Count(after, []byte("\r\n")) {
				t.Fatalf("%d: %s mixes line endings: %q", i, what, after)
			}
			src = after
		}
	}
}

func noBlanks(src []byte) []byte {
	return bytes.ReplaceAll(bytes.ReplaceAll(src, []byte(" "), nil), []byte("\t"), nil)
}

func (s *scribble) edit(src []byte, at path) (after []byte, what string, err error) {
	attrs := map[string][]string{"project": {"name", "description", "status"}, "domain": {"primary", "active"}, "template": {"name", "body_text", "body_html"}, "key": {"id", "expires_at"},
		"login": {"label", "client_secret", "scopes"}, "inbound": {"format"}}
	typ := at[len(at)-2]
	name := attrs[typ][s.IntN(len(attrs[typ]))]
	switch s.IntN(5) {
	case 0, 1:
		value := s.value()
		switch {
		case name == "status":
			value = `"ACTIVE"`
		case typ == "domain":
			value = s.pick("true", "false")
			name = "active"
		case name == "client_secret":
			value = s.pick(`env("A")`, `file("a")`)
		case name == "scopes":
			value = `["openid", "groups"]`
		case name == "id":
			value = fmt.Sprintf(`"x%08d"`, s.IntN(1e8))
		case name == "expires_at":
			value = `"2030-01-01T00:00:00"`
		case strings.HasPrefix(name, "body") && s.IntN(2) == 0:
			value = hcledit.Literal(s.pick("a\nb\n", "a\n\n  b", " a\n b\n", "EOT\nx\n"))
		}
		after, err = hcledit.SetAttribute(src, at, name, value)
		return after, "set", err
	case 2:
		after, err = hcledit.AppendBlock(src, fmt.Sprintf("# new\nkey \"n%d\" {\n  id    = \"n%08d\"\n  hash  = \"sha256:%s\"\n  allow = [\"read\"]\n}", s.Int64(), s.IntN(1e8), strings.Repeat("1b", 32)))
		return after, "append", err
	case 3:
		if typ == "domain" {
			after, err = hcledit.RenameLabel(src, at, fmt.Sprintf("r%d.example", s.IntN(1e9)))
			return after, "rename", err
		}
		if typ == "project" {
			after, err = hcledit.InsertBlock(src, at, fmt.Sprintf("domain \"i%d.example\" {}", s.IntN(1e9)))
			return after, "insert", err
		}
	}
	after, err = hcledit.RemoveBlock(src, at[0], at[1:]...)
	return after, "remove", err
}

// formatKept says what is wrong with the form of an edited file: where fmt had nothing to change, it has nothing to
// change now; elsewhere no byte changes outside the file's own block that the edit is in, and the blank lines around it.
func formatKept(before, after []byte, at path) string {
	if formatted(before) {
		if !formatted(after) && len(bytes.TrimSpace(after)) > 0 { // a file that holds nothing goes
			return "fmt would change the result"
		}
		return ""
	}
	file, _ := hclsyntax.ParseConfig(before, "", hcl.InitialPos)
	head, tail := 0, len(before)
	for _, b := range file.Body.(*hclsyntax.Body).Blocks {
		touched := b.Type == at[0] && b.Labels[0] == at[1]
		if end := b.CloseBraceRange.End.Byte; !touched && tail == len(before) {
			head = end
		}
		if touched {
			tail = len(before) - 1
		} else if tail == len(before)-1 {
			tail = b.TypeRange.Start.Byte
			break
		}
	}
	if !bytes.HasPrefix(after, before[:head]) {
		return "bytes before the block changed"
	}
	if tail < len(before)-1 && !bytes.Contains(after, before[tail:]) {
		return "bytes behind the block changed"
	}
	return ""
}

func formatted(src []byte) bool {
	out, ds := hclfile.Format(src)
	return !ds.HasErrors() && bytes.Equal(out, src)
}

// untouched says what an edit changed that it should not have. All edits change one place: what stands before and after
// it is equal, but for blanks, which the formatter moves.
func untouched(before, after []byte, what string) string {
	if what == "append" && !bytes.HasPrefix(after, before) {
		return "bytes before the new block changed"
	}
	before, after = noBlanks(before), noBlanks(after)
	head := 0
	for head < len(before) && head < len(after) && before[head] == after[head] {
		head++
	}
	tail := 0
	for tail < len(before)-head && tail < len(after)-head && before[len(before)-1-tail] == after[len(after)-1-tail] {
		tail++
	}
	gone, come := string(before[head:len(before)-tail]), string(after[head:len(after)-tail])
	switch what {
	case "insert":
		if strings.TrimSpace(gone) != "" {
			return "something went: " + gone
		}
	case "remove":
		if strings.TrimSpace(come) != "" {
			return "something came: " + come
		}
	case "rename":
		if strings.ContainsAny(gone+come, "\n={}") {
			return "more than the label changed: " + gone
		}
	case "set":
		// Opening a block up moves the comment in it; what looks like one in a value may go.
		for _, known := range []string{"#1", "#nocomment", "#no"} {
			gone = strings.ReplaceAll(gone, known, "")
		}
		if strings.Contains(come, "/*c*/") {
			gone = strings.ReplaceAll(gone, "/*c*/", "")
		}
		if strings.ContainsAny(gone, "#/") {
			return "a comment went: " + gone
		}
	}
	return ""
}
