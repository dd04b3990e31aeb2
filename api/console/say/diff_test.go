package say_test

import (
	"fmt"
	"strings"
	"testing"

	"fingerpost/api/console/say"
)

// shown writes a diff with its marked words in brackets.
func shown(diff string) string {
	lines, _ := say.DiffLines(diff, 1000)
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.Kind + ":")
		for _, p := range l.Parts {
			if p.Changed {
				b.WriteString("[" + p.Text + "]")
			} else {
				b.WriteString(p.Text)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestDiffMarks(t *testing.T) {
	for _, c := range []struct{ name, diff, want string }{
		{"one word", "-  name = \"Acme\"\n+  name = \"Acme Shop\"\n",
			"del:  name = \"Acme\"\nadd:  name = \"Acme[ Shop]\"\n"},
		{"two words", "-a = 1, b = 2, c = 3\n+a = 5, b = 2, c = 6\n",
			"del:a = [1], b = 2, c = [3]\nadd:a = [5], b = 2, c = [6]\n"},
		{"nothing in common", "-status = \"ACTIVE\"\n+port, 25\n", "del:status = \"ACTIVE\"\nadd:port, 25\n"},
		{"pairs in order", "-one = 1\n-two = 2\n+one = 3\n+two = 4\n",
			"del:one = [1]\ndel:two = [2]\nadd:one = [3]\nadd:two = [4]\n"},
		{"more added than removed", "-one = 1\n+one = 2\n+two = 2\n", "del:one = [1]\nadd:one = [2]\nadd:two = 2\n"},
		{"added alone", " same\n+new\n", "same:same\nadd:new\n"},
		{"a file and a hunk", "--- a/acme.hcl\n+++ b/acme.hcl\n@@ -1 +1 @@\n-x\n+x y\n",
			"file:a/acme.hcl\nfile:b/acme.hcl\nhunk:@@ -1 +1 @@\ndel:x\nadd:x[ y]\n"},
		{"a removed line that looks like a file", "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n--- x\n+++ y\n",
			"file:a/f\nfile:b/f\nhunk:@@ -1,2 +1,2 @@\ndel:-- x\nadd:++ y\n"},
		{"letters of all kinds", "-name = \"Café Zürich\"\n+name = \"Café Bern\"\n",
			"del:name = \"Café [Zürich]\"\nadd:name = \"Café [Bern]\"\n"},
		{"bytes that are no text", "-a \xff b\n+a \xfe b\n", "del:a [\xff] b\nadd:a [\xfe] b\n"},
		{"empty", "", ""},
	} {
		if got := shown(c.diff); got != c.want {
			t.Errorf("%s:\n%swant\n%s", c.name, got, c.want)
		}
	}
}

// TestDiffBounds: of a long diff there is the beginning, and long lines are compared without a table.
func TestDiffBounds(t *testing.T) {
	var b strings.Builder
	for i := range 12_000 {
		fmt.Fprintf(&b, "-line %d\n", i)
	}
	if lines, all := say.DiffLines(b.String(), 400); len(lines) != 400 || all != 12_000 {
		t.Errorf("%d lines of %d", len(lines), all)
	}
	long := strings.Repeat("word, ", 50_000)
	lines, _ := say.DiffLines("-begin a "+long+"x end\n+begin a "+strings.ToUpper(long)+"x end\n", 10)
	if p := lines[0].Parts; len(p) != 1 && (len(p) != 3 || p[0].Text != "begin a ") {
		t.Errorf("a long line has %d parts", len(p))
	}
}

// FuzzDiffLines: no text is lost, whatever it is, and marks come only in pairs of removed and added lines.
func FuzzDiffLines(f *testing.F) {
	f.Add("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a b c\n+a d c\n")
	f.Add("-\n+\n\\ no line end\n")
	f.Fuzz(func(t *testing.T, diff string) {
		lines, all := say.DiffLines(diff, 1<<30)
		if len(lines) != all {
			t.Fatalf("%d lines of %d", len(lines), all)
		}
		i := 0
		for l := range strings.Lines(diff) {
			l = strings.TrimRight(l, "\n")
			if text := lines[i].Text(); !strings.HasSuffix(l, text) || len(l)-len(text) > 4 {
				t.Fatalf("%q became %q", l, text)
			}
			for _, p := range lines[i].Parts {
				if p.Changed && lines[i].Kind != "add" && lines[i].Kind != "del" {
					t.Fatalf("a mark in a line of the kind %s", lines[i].Kind)
				}
			}
			i++
		}
	})
}
