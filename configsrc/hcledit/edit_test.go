package hcledit_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/hcledit"
	"fingerpost/configsrc/hclfile"
)

type path = hcledit.BlockPath

// edited asserts the result of an edit, in LF, in CRLF and with a byte order mark.
func edited(t *testing.T, name, before, after string, edit func(src []byte) ([]byte, error)) {
	t.Helper()
	crlf := func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }
	mark := func(s string) string { return "\xef\xbb\xbf" + s }
	same := func(s string) string { return s }
	for kind, as := range map[string]func(string) string{"LF": same, "CRLF": crlf, "BOM": mark, "BOM and CRLF": func(s string) string { return mark(crlf(s)) }} {
		if !strings.Contains(before, "\n") && strings.Contains(kind, "CRLF") {
			continue // a file without a line end has no line ending
		}
		src := []byte(as(before))
		got, err := edit(bytes.Clone(src))
		if err != nil {
			t.Errorf("%s, %s: %v", name, kind, err)
		} else if string(got) != as(after) {
			t.Errorf("%s, %s:\n--- got\n%s\n--- want\n%s", name, kind, got, as(after))
		}
	}
}

func TestSetAttribute(t *testing.T) {
	f := func(name, before string, at path, attr, expr, after string) {
		t.Helper()
		edited(t, name, before, after, func(src []byte) ([]byte, error) { return hcledit.SetAttribute(src, at, attr, expr) })
	}
	p := path{"project", "a"}
	f("replace", "project \"a\" {\n\tname   =  \"A\"   # why\n}\n", p, "name", `"B"`, "project \"a\" {\n\tname   =  \"B\"   # why\n}\n")
	f("equal value", "project \"a\" {\n  name = (\"\\u0041\") # why\n}\n", p, "name", `"A"`, "project \"a\" {\n  name = (\"\\u0041\") # why\n}\n")
	f("add", "project \"a\" {\n  name = \"A\"\n}\n", p, "status", `"ACTIVE"`, "project \"a\" {\n  name   = \"A\"\n  status = \"ACTIVE\"\n}\n")
	f("add aligned", "project \"a\" {\n  description = \"x\"\n  name        = \"A\" # why\n\n  domain \"b\" {}\n}\n", p, "status", `"ACTIVE"`,
		"project \"a\" {\n  description = \"x\"\n  name        = \"A\" # why\n  status      = \"ACTIVE\"\n\n  domain \"b\" {}\n}\n")
	f("add where nothing is aligned", "project \"a\" {\n  description = \"x\"\n  name = \"A\"\n}\n", p, "id", `4`,
		"project \"a\" {\n  description = \"x\"\n  name = \"A\"\n  id = 4\n}\n")
	f("add after a block comment", "project \"a\" {\n  name = \"A\" /* a\n b */\n}\n", p, "id", `4`,
		"project \"a\" {\n  name = \"A\" /* a\n b */\n  id   = 4\n}\n")
	f("add to an empty block", "project \"a\" {}\n", p, "name", `"A"`, "project \"a\" {\n  name = \"A\"\n}\n")
	f("add to an empty open block", "project \"a\" {\n}\n", p, "name", `"A"`, "project \"a\" {\n  name = \"A\"\n}\n")
	f("add below a comment on the brace", "project \"a\" { # why\n  domain \"b\" {}\n}\n", p, "name", `"A"`, "project \"a\" { # why\n  name = \"A\"\n  domain \"b\" {}\n}\n")
	f("open one line up", "project \"a\" { name = \"A\" } # why\n", p, "id", `4`, "project \"a\" {\n  name = \"A\"\n  id   = 4\n} # why\n")
	f("open with a comment", "project \"a\" { /* c */ name = \"A\" }", p, "id", `4`, "project \"a\" {\n  /* c */ name = \"A\"\n  id           = 4\n}")
	f("nested one line", "project \"a\" {\n\tdomain \"B.example\" { primary = true }\n}\n", path{"project", "a", "domain", "b.example"}, "active", "false",
		"project \"a\" {\n\tdomain \"B.example\" {\n\t\tprimary = true\n\t\tactive  = false\n\t}\n}\n")
	f("replace within one line", "project \"a\" { name = \"A\" }", p, "name", `"B"`, "project \"a\" { name = \"B\" }")
	f("no final line feed", "project \"a\" {\n  name = \"A\"\n}", p, "name", `"B"`, "project \"a\" {\n  name = \"B\"\n}")

	// Comments stay in their column.
	aligned := "project \"a\" {\n  name = %s\n  status = \"DRAFT\"         # b\n}\n"
	f("comment in a column", fmt.Sprintf(aligned, "\"A\"               # a"), p, "name", `"Longer"`, fmt.Sprintf(aligned, "\"Longer\"          # a"))
	f("comment in a column, less", fmt.Sprintf(aligned, "\"Longer\"          # a"), p, "name", `"Ä"`, fmt.Sprintf(aligned, "\"Ä\"               # a"))
	f("comment in no column", fmt.Sprintf(aligned, "\"A\"  # a"), p, "name", `"Longer"`, fmt.Sprintf(aligned, "\"Longer\" # a"))

	heredoc := "<<-EOT\n  one\n  two\nEOT"
	f("heredoc", "template \"a\" {\n  name = \"A\"\n}\n", path{"template", "a"}, "body_text", heredoc,
		"template \"a\" {\n  name      = \"A\"\n  body_text = <<-EOT\n    one\n    two\n  EOT\n}\n")
	f("heredoc into one line", "template \"a\" { body_text = \"x\" }\n", path{"template", "a"}, "body_text", heredoc,
		"template \"a\" {\n  body_text = <<-EOT\n    one\n    two\n  EOT\n}\n")
	f("heredoc before a comment", "template \"a\" {\n  body_text = \"x\" # why\n}\n", path{"template", "a"}, "body_text", heredoc,
		"template \"a\" {\n  body_text = (<<-EOT\n    one\n    two\n  EOT\n  ) # why\n}\n")
	f("heredoc to quotes", "template \"a\" {\n  body_text = <<-EOT\n    one\n  EOT\n  name = \"A\"\n}\n", path{"template", "a"}, "body_text", `"x"`,
		"template \"a\" {\n  body_text = \"x\"\n  name = \"A\"\n}\n")
	f("heredoc to heredoc", "template \"a\" {\n  body_text = <<EOT\none\nEOT\n\n  name = \"A\"\n}\n", path{"template", "a"}, "body_text", heredoc,
		"template \"a\" {\n  body_text = <<EOT\none\ntwo\nEOT\n\n  name = \"A\"\n}\n")
	f("keeps the form", "template \"a\" {\n  body_text = <<-TEXT\n\t  one\n\n\t    $${x}\n    TEXT\n}\n", path{"template", "a"}, "body_text", `"one\n\n  $${y}\n"`,
		"template \"a\" {\n  body_text = <<-TEXT\n\t  one\n\n\t    $${y}\n    TEXT\n}\n")
	f("keeps trimsuffix", "template \"a\" {\n  body_text = trimsuffix(<<-T\n      one\n      T\n      , \"\\n\") # why\n}\n", path{"template", "a"}, "body_text", `"one\ntwo"`,
		"template \"a\" {\n  body_text = trimsuffix(<<-T\n      one\n      two\n      T\n      , \"\\n\") # why\n}\n")
	f("trimsuffix to a final line feed", "template \"a\" {\n  body_text = trimsuffix(<<T\none\nT\n, \"\\n\") # why\n}\n", path{"template", "a"}, "body_text", `"one\ntwo\n"`,
		"template \"a\" {\n  body_text = (<<T\none\ntwo\nT\n  ) # why\n}\n")
	f("the marker occurs", "template \"a\" {\n  body_text = <<T\none\nT\n}\n", path{"template", "a"}, "body_text", `"one\nT\n"`,
		"template \"a\" {\n  body_text = <<T2\none\nT\nT2\n}\n")
	f("trimsuffix", "template \"a\" {\n  name = \"A\"\n}\n", path{"template", "a"}, "body_text", hcledit.Literal("one\n  two"),
		"template \"a\" {\n  name = \"A\"\n  body_text = trimsuffix(<<-EOT\n    one\n      two\n  EOT\n  , \"\\n\")\n}\n")
	f("flat heredoc", "template \"a\" {\n  name = \"A\"\n}\n", path{"template", "a"}, "body_text", hcledit.Literal("  one\n  two\n"),
		"template \"a\" {\n  name      = \"A\"\n  body_text = <<EOT\n  one\n  two\nEOT\n}\n")
	f("heredoc next to a comment in parentheses", "template \"a\" {\n  body_text = ( /* why */ \"x\")\n}\n", path{"template", "a"}, "body_text", heredoc,
		"template \"a\" {\n  body_text = ( /* why */ (<<-EOT\n    one\n    two\n  EOT\n  ))\n}\n")
	f("same text", "template \"a\" {\n  body_text = <<EOT\none\nEOT\n}\n", path{"template", "a"}, "body_text", `"one\n"`,
		"template \"a\" {\n  body_text = <<EOT\none\nEOT\n}\n")
	f("no attributes but a comment that lies", "sealing {\n  # recipients = []\n}\n", path{"sealing"}, "recipients", `["x"]`,
		"sealing {\n  recipients = [\"x\"]\n  # recipients = []\n}\n")
	f("an expression", "project \"a\" {\n  name = var.x\n}\n", p, "name", `"B"`, "project \"a\" {\n  name = \"B\"\n}\n")
	f("sealed", "project \"a\" {\n  smtp_config {\n    password = sealed(\"eA==\") # s\n  }\n}\n", path{"project", "a", "smtp_config"}, "password", `sealed("eQ==")`,
		"project \"a\" {\n  smtp_config {\n    password = sealed(\"eQ==\") # s\n  }\n}\n")
}

func TestRemoveAttribute(t *testing.T) {
	f := func(name, before string, at path, attr, after string) {
		t.Helper()
		edited(t, name, before, after, func(src []byte) ([]byte, error) { return hcledit.RemoveAttribute(src, at, attr) })
	}
	p := path{"project", "a"}
	f("line", "project \"a\" {\n  # name\n  name = \"A\" # n\n  id = 1\n}\n", p, "name", "project \"a\" {\n  # name\n  id = 1\n}\n")
	f("comment above", "project \"a\" {\n  id = 1\n\n  # until the\n  # rebranding\n  description = \"old\" # n\n\n  uuid = \"\"\n}\n", p, "description",
		"project \"a\" {\n  id = 1\n\n  uuid = \"\"\n}\n")
	f("comment above, apart", "project \"a\" {\n  id = 1\n  # about a\n\n  description = \"old\"\n}\n", p, "description",
		"project \"a\" {\n  id = 1\n  # about a\n}\n")
	f("heredoc", "project \"a\" {\n  name = <<E\nx\nE\n  id = 1\n}\n", p, "name", "project \"a\" {\n  id = 1\n}\n")
	f("last", "project \"a\" {\n  name = \"A\"\n}", p, "name", "project \"a\" {\n}")
	f("one line", "project \"a\" { name = \"A\" }\n", p, "name", "project \"a\" {}\n")
	f("one line with a comment", "project \"a\" { name = \"A\" /* c */ }\n", p, "name", "project \"a\" { /* c */ }\n")
	f("absent", "project \"a\" {}\n", p, "name", "project \"a\" {}\n")
	f("between blank lines", "project \"a\" {\n  id = 1\n\n  name = \"A\"\n\n  status = \"ACTIVE\"\n}\n", p, "name",
		"project \"a\" {\n  id = 1\n\n  status = \"ACTIVE\"\n}\n")
}

func TestAppendAndInsertBlock(t *testing.T) {
	f := func(name, before, block, after string) {
		t.Helper()
		edited(t, name, before, after, func(src []byte) ([]byte, error) { return hcledit.AppendBlock(src, block) })
	}
	const key = "key \"k\" {\n  id = \"abcdef\"\n}\n"
	f("empty", "", key, key)
	f("after a block", "defaults {}\n", key, "defaults {}\n\n"+key)
	f("after a blank line", "defaults {}\n\n", key, "defaults {}\n\n"+key)
	f("no final line feed", "defaults {\n}", key, "defaults {\n}\n\n"+key)
	f("after an open comment", "defaults {\n} # end", key, "defaults {\n} # end\n\n"+key)
	f("after a comment", "# head\n", key, "# head\n\n"+key)
	f("blanks only", "\n", key, "\n"+key)
	f("with a comment", "defaults {}\n", "\n\n# new\nsealing {}", "defaults {}\n\n# new\nsealing {}\n")

	g := func(name, before string, at path, block, after string) {
		t.Helper()
		edited(t, name, before, after, func(src []byte) ([]byte, error) { return hcledit.InsertBlock(src, at, block) })
	}
	p := path{"project", "a"}
	g("one line", "project \"a\" {\n  name = \"A\"\n}\n", p, `domain "b.example" {}`, "project \"a\" {\n  name = \"A\"\n\n  domain \"b.example\" {}\n}\n")
	g("tabs", "project \"a\" {\n\tname = \"A\"\n}\n", p, "template \"T\" {\n  name = \"T\"\n}", "project \"a\" {\n\tname = \"A\"\n\n\ttemplate \"T\" {\n\t\tname = \"T\"\n\t}\n}\n")
	g("empty", "project \"a\" {}\n", p, `domain "b.example" {}`, "project \"a\" {\n  domain \"b.example\" {}\n}\n")
	g("blank line before the brace", "project \"a\" {\n  name = \"A\"\n\n}\n", p, `domain "b.example" {}`, "project \"a\" {\n  name = \"A\"\n\n  domain \"b.example\" {}\n}\n")
	g("comment at the end", "project \"a\" {\n  name = \"A\"\n  # more to come\n  /* x */ }\n", p, `domain "b.example" {}`,
		"project \"a\" {\n  name = \"A\"\n  # more to come\n\n  domain \"b.example\" {}\n  /* x */ }\n")
	g("heredocs", "project \"a\" {\n  name = \"A\"\n}\n", p, "template \"T\" {\n  body_text = <<-E\n    x\n\n    y\n  E\n  body_html = <<E\n x\nE\n}",
		"project \"a\" {\n  name = \"A\"\n\n  template \"T\" {\n    body_text = <<-E\n      x\n\n      y\n    E\n    body_html = <<E\n x\nE\n  }\n}\n")
}

func TestRemoveBlock(t *testing.T) {
	f := func(name, before, after string, at ...string) {
		t.Helper()
		edited(t, name, before, after, func(src []byte) ([]byte, error) { return hcledit.RemoveBlock(src, at[0], at[1:]...) })
	}
	f("only one", "key \"a\" {}\n", "", "key", "a")
	f("with its comment", "# head\n\n# about a\n# more\nkey \"a\" {} # x\n\nkey \"b\" {}\n", "# head\n\nkey \"b\" {}\n", "key", "a")
	f("not the header", "# head\nkey \"a\" {}\n\nkey \"b\" {}\n", "# head\n\nkey \"b\" {}\n", "key", "a")
	f("not the header below a blank", "\n# head\nkey \"a\" {}\n", "\n# head\n", "key", "a")
	f("last", "key \"a\" {}\n\nkey \"b\" {\n  id = \"x\"\n}\n", "key \"a\" {}\n", "key", "b")
	f("last without line feed", "key \"a\" {}\n\n/* b\n is */\nkey \"b\" {\n  id = \"x\"\n}", "key \"a\" {}\n", "key", "b")
	f("first", "key \"a\" {}\n\nkey \"b\" {}\n", "key \"b\" {}\n", "key", "a")
	f("between", "key \"a\" {}\nkey \"b\" {}\nkey \"c\" {}\n", "key \"a\" {}\nkey \"c\" {}\n", "key", "b")
	f("comment of another", "key \"a\" {} # about a\nkey \"b\" {}\n", "key \"a\" {} # about a\n", "key", "b")
	f("nested", "project \"p\" {\n  name = \"P\"\n\n  domain \"a.example\" {}\n  # old\n  domain \"B.example\" {\n    active = false\n  }\n}\n",
		"project \"p\" {\n  name = \"P\"\n\n  domain \"a.example\" {}\n}\n", "project", "p", "domain", "b.example")
	f("the longest of aligned lines", "project \"p\" {\n  name = \"P\"\n\n  domain \"a.example\" {}      # a\n  domain \"longer.example\" {} # b\n  domain \"c.example\" {}      # c\n}\n",
		"project \"p\" {\n  name = \"P\"\n\n  domain \"a.example\" {} # a\n  domain \"c.example\" {} # c\n}\n", "project", "p", "domain", "longer.example")
	f("where nothing is formatted", "project \"p\" {\n  name =   \"P\"\n\n  domain \"a.example\" {}   # a\n  domain \"b.example\" {} # b\n}\n",
		"project \"p\" {\n  name =   \"P\"\n\n  domain \"a.example\" {}   # a\n}\n", "project", "p", "domain", "b.example")
	f("nested, after a blank line", "project \"p\" {\n  name = \"P\"\n\n  domain \"a.example\" {}\n}\n", "project \"p\" {\n  name = \"P\"\n}\n", "project", "p", "domain", "a.example")
	f("text that looks like a comment", "template \"t\" {\n  body_text = <<E\n# no\nE\n}\nkey \"b\" {}\n", "template \"t\" {\n  body_text = <<E\n# no\nE\n}\n", "key", "b")
}

func TestRenameLabel(t *testing.T) {
	f := func(name, before, after, label string, at ...string) {
		t.Helper()
		edited(t, name, before, after, func(src []byte) ([]byte, error) { return hcledit.RenameLabel(src, at, label) })
	}
	f("slug", "project /* x */ \"a\" { # y\n  name = \"A\"\n}\n", "project /* x */ \"b\" { # y\n  name = \"A\"\n}\n", "b", "project", "a")
	f("bare", "project a {}\n", "project \"b\" {}\n", "b", "project", "a")
	f("domain", "project \"a\" {\n  domain \"X.example\" {}\n}\n", "project \"a\" {\n  domain \"y.example\" {}\n}\n", "y.example", "project", "a", "domain", "x.example")
	f("same", "project a {}\n", "project a {}\n", "a", "project", "a")
}

// TestEditRefusals asserts that what cannot be done right is not done.
func TestEditRefusals(t *testing.T) {
	const src = "project \"a\" {\n  name = \"A\"\n}\nproject \"b\" {}\nkey \"k\" {}\nkey \"k\" {}\n"
	f := func(want error, edit func([]byte) ([]byte, error)) {
		t.Helper()
		got, err := edit([]byte(src))
		if !errors.Is(err, want) || got != nil {
			t.Errorf("want %v, got %v and %q", want, err, got)
		}
	}
	set := func(expr string, at ...string) func([]byte) ([]byte, error) {
		return func(src []byte) ([]byte, error) { return hcledit.SetAttribute(src, at, "name", expr) }
	}
	f(hcledit.ErrNoBlock, set(`"x"`, "project", "c"))
	f(hcledit.ErrNoBlock, set(`"x"`))
	f(hcledit.ErrNoBlock, set(`"x"`, "project"))
	f(hcledit.ErrNoBlock, set(`"x"`, "project", "a", "smtp_config"))
	f(hcledit.ErrNoBlock, set(`"x"`, "key", "k"))
	for _, expr := range []string{"", `"x`, "\"x\"\nstatus = \"ACTIVE\"", "1 # c", "<<E\nx\n", "]", "1 }", `"x" }` + "\nkey \"z\" {"} {
		f(hcledit.ErrVerify, set(expr, "project", "a"))
	}
	f(hcledit.ErrVerify, func(src []byte) ([]byte, error) { return hcledit.SetAttribute(src, path{"project", "a"}, "a b", "1") })
	f(hcledit.ErrExists, func(src []byte) ([]byte, error) { return hcledit.AppendBlock(src, `project "a" {}`) })
	f(hcledit.ErrExists, func(src []byte) ([]byte, error) { return hcledit.RenameLabel(src, path{"project", "a"}, "b") })
	f(hcledit.ErrVerify, func(src []byte) ([]byte, error) { return hcledit.AppendBlock(src, "name = 1") })
	f(hcledit.ErrVerify, func(src []byte) ([]byte, error) { return hcledit.AppendBlock(src, "project {") })
	f(hcledit.ErrVerify, func(src []byte) ([]byte, error) { return hcledit.AppendBlock(src, "# nothing") })
	f(hcledit.ErrBroken, func([]byte) ([]byte, error) { return hcledit.AppendBlock([]byte("project {"), "key \"z\" {}") })
	f(hcledit.ErrNoBlock, func(src []byte) ([]byte, error) { return hcledit.RemoveBlock(src, "key", "z") })
}

// TestLiteralRoundTrip writes random strings both ways into a file and reads them back.
func TestLiteralRoundTrip(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	parts := []string{"a", " ", "  ", "\n", "\n", "\t", "\"", "\\", "$", "$$", "${", "$${", "%{", "%%{", "{{x}}", "EOT", "EOT\n", " EOT2 \n", "#", "//", "\r", "\r\n", "\x00", "ü", "日本", "\u202e", "🦊", "\\n", "'", "<<EOT\n", "\u200d", "\ufeff"}
	for i := range testrig.Size(t, 3000, 80) {
		var b strings.Builder
		for range rnd.IntN(12) {
			b.WriteString(parts[rnd.IntN(len(parts))])
		}
		want := b.String()
		for what, write := range map[string]func(string) string{"Quote": hcledit.Quote, "Literal": hcledit.Literal} {
			for _, eol := range []string{"\n", "\r\n"} {
				src := []byte(strings.ReplaceAll("template \"T\" {\n  name = \"T\"\n  subject_template = \"s\"\n}\n", "\n", eol))
				src, err := hcledit.SetAttribute(src, path{"template", "T"}, "body_text", write(want))
				if err != nil {
					t.Fatalf("%d, %s: %q: %v", i, what, want, err)
				}
				r, _ := hclfile.Decode("t.hcl", src, hclfile.Options{})
				if got := r.Declared.Templates[0].BodyText; got != want {
					t.Fatalf("%d, %s: %q became %q by\n%s", i, what, want, got, src)
				}
			}
		}
	}
}
