package judge_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"fingerpost/configsrc/hclfile"
	"fingerpost/configsrc/judge"
	"fingerpost/resolver/catalog"
)

// A world is a table with the bytes of its files.
type world struct {
	table *judge.Table
	bytes map[string][]byte
	rows  map[string]*catalog.FileRow
}

// change judges new contents of files, "" for one that is gone, puts the accepted ones into the table, and returns the
// candidates.
func (w *world) change(files map[string]string) []*judge.Candidate {
	var all []*judge.Candidate
	for path, text := range files {
		c := &judge.Candidate{Path: path, Prev: w.table.File(path), Gone: text == ""}
		if c.Bytes = []byte(text); !c.Gone {
			c.Decode(path, nil, hclfile.Rules{})
		}
		if !c.Gone || c.Prev != nil {
			all = append(all, c)
		}
	}
	judge.SortByPath(all)
	of := &judge.Case{Table: w.table, Candidates: all, Display: func(path string) string { return path },
		Row: func(path string) (*catalog.FileRow, error) { return w.rows[path], nil },
		Locate: func(path string) (*hclfile.Result, error) {
			if c := judge.Positions(path, []byte(files[path])); files[path] != "" {
				return c, nil
			}
			return judge.Positions(path, w.bytes[path]), nil
		}}
	of.Run()
	for _, c := range all {
		switch {
		case c.Out():
		case c.Gone:
			w.table.Drop(c.Path)
		default:
			w.rows[c.Path], w.bytes[c.Path] = &catalog.FileRow{Refs: c.Refs}, c.Bytes
			w.table.Put(judge.NewFile(c.Path, w.rows[c.Path], false))
		}
	}
	return all
}

func newWorld() *world {
	return &world{judge.NewTable(), map[string][]byte{}, map[string]*catalog.FileRow{}}
}

// TestClaimsAreUnique makes many changes of a few files that fight for a few names, and looks after each one that no
// claim of the accepted files has two owners, and that a rejected file has a reason.
func TestClaimsAreUnique(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	w, rejected := newWorld(), 0
	for step := range 500 {
		files := map[string]string{}
		for range 1 + r.IntN(3) {
			var text strings.Builder
			for range r.IntN(3) {
				slug := fmt.Sprintf("p%d", r.IntN(4))
				if strings.Contains(text.String(), `"`+slug+`"`) {
					continue
				}
				fmt.Fprintf(&text, "project %q {\n  name = \"P\"\n  domain \"%c.example\" {}\n}\n", slug, 'a'+rune(r.IntN(4)))
			}
			files[fmt.Sprintf("f%d.hcl", r.IntN(4))] = text.String()
		}
		for _, c := range w.change(files) {
			if !c.Rejected {
				continue
			}
			rejected++
			if !c.Diags.HasErrors() && !c.Cross.HasErrors() {
				t.Fatalf("step %d: %s was rejected without a reason:\n%s", step, c.Path, c.Bytes)
			}
		}
		owners := map[judge.Claim]string{}
		for path, f := range w.table.Files {
			for _, cl := range f.Claims {
				if other := owners[cl]; other != "" {
					t.Fatalf("step %d: %s and %s have the same claim:\n%s\n%s", step, path, other, w.bytes[path], w.bytes[other])
				}
				if owners[cl] = path; w.table.Owner(cl) != f {
					t.Fatalf("step %d: the table does not know that %s has one of its claims", step, path)
				}
			}
		}
	}
	if rejected < 100 {
		t.Errorf("only %d files were rejected", rejected)
	}
}

// TestConflict: the earlier path wins, and the other file's diagnostic names both places.
func TestConflict(t *testing.T) {
	t.Parallel()
	text := func(slug string) string {
		return fmt.Sprintf("project %q {\n  name = \"P\"\n  domain \"shop.example\" {}\n}\n", slug)
	}
	all := newWorld().change(map[string]string{"b.hcl": text("two"), "a.hcl": text("one")})
	if all[0].Rejected || !all[1].Rejected || len(all[1].Cross) != 1 {
		t.Fatalf("a.hcl: %v, b.hcl: %v with %v", all[0].Rejected, all[1].Rejected, all[1].Cross)
	}
	const want = `domain "shop.example" is declared in a.hcl:3 already`
	if d := all[1].Cross[0]; d.File != "b.hcl" || d.Start.Line != 3 || d.Summary != want {
		t.Errorf("%s:%d: %s, want b.hcl:3: %s", d.File, d.Start.Line, d.Summary, want)
	}
}

// TestTooManyWebhooks: the file that brings one too many is rejected, by whichever path it comes.
func TestTooManyWebhooks(t *testing.T) {
	t.Parallel()
	hooks := func(prefix string, n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "webhook \"%s%d\" {\n  url = \"https://crm.example/\"\n  secret = env(\"A\")\n}\n", prefix, i)
		}
		return b.String()
	}
	w := newWorld()
	f := func(files map[string]string, rejected string) {
		t.Helper()
		for _, c := range w.change(files) {
			if c.Rejected != (c.Path == rejected) || c.Rejected && !strings.Contains(fmt.Sprint(c.Cross), "webhooks in all files") {
				t.Errorf("%s is rejected: %v, %v", c.Path, c.Rejected, c.Cross)
			}
		}
	}
	f(map[string]string{"a.hcl": hooks("a", 60), "b.hcl": hooks("b", 60), "c.hcl": hooks("c", 40)}, "b.hcl")
	f(map[string]string{"b.hcl": hooks("b", 1)}, "b.hcl")
	f(map[string]string{"a.hcl": hooks("a", 61)}, "a.hcl")
	f(map[string]string{"a.hcl": hooks("a", 30), "c.hcl": hooks("c", 30)}, "")
}

// TestTooManyLogins is TestTooManyWebhooks for logins, which count on their own.
func TestTooManyLogins(t *testing.T) {
	t.Parallel()
	logins := func(prefix string, n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "login \"%s%d\" {\n  issuer = \"https://a.example/\"\n  client_id = \"a\"\n}\n", prefix, i)
			fmt.Fprintf(&b, "webhook \"%s%d\" {\n  url = \"https://crm.example/\"\n  secret = env(\"A\")\n}\n", prefix, i)
		}
		return b.String()
	}
	w := newWorld()
	f := func(files map[string]string, rejected string) {
		t.Helper()
		for _, c := range w.change(files) {
			if c.Rejected != (c.Path == rejected) || c.Rejected && !strings.Contains(fmt.Sprint(c.Cross), "would be 21 logins in all files") {
				t.Errorf("%s is rejected: %v, %v", c.Path, c.Rejected, c.Cross)
			}
		}
	}
	f(map[string]string{"a.hcl": logins("a", 12), "b.hcl": logins("b", 9), "c.hcl": logins("c", 8)}, "b.hcl")
	f(map[string]string{"a.hcl": logins("a", 13)}, "a.hcl")
	f(map[string]string{"a.hcl": logins("a", 1), "b.hcl": logins("b", 9)}, "")
}

// TestTooManyInbounds is TestTooManyWebhooks for inbound blocks.
func TestTooManyInbounds(t *testing.T) {
	t.Parallel()
	blocks := func(prefix string, n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "inbound \"%s%d\" {\n  format = \"json\"\n  secret = env(\"A\")\n}\n", prefix, i)
		}
		return b.String()
	}
	for _, c := range newWorld().change(map[string]string{"a.hcl": blocks("a", 12), "b.hcl": blocks("b", 9), "c.hcl": blocks("c", 8)}) {
		if c.Rejected != (c.Path == "b.hcl") || c.Rejected && !strings.Contains(fmt.Sprint(c.Cross), "would be 21 inbounds in all files") {
			t.Errorf("%s is rejected: %v, %v", c.Path, c.Rejected, c.Cross)
		}
	}
}

// TestCopies: of two new files with the same project, the same one wins on every node: never one that looks like a copy,
// the one named after the project before others, else the earlier path.
func TestCopies(t *testing.T) {
	t.Parallel()
	const text = "project \"acme\" {\n  name = \"P\"\n  domain \"shop.example\" {}\n}\n"
	f := func(winner, other, otherText string) {
		t.Helper()
		for _, c := range newWorld().change(map[string]string{winner: text, other: otherText}) {
			if c.Rejected != (c.Path == other) {
				t.Errorf("%s against %s: %s is rejected: %v", winner, other, c.Path, c.Rejected)
			}
			if looks := c.Rejected && strings.Contains(c.Cross[0].Detail, "looks like a copy"); c.Rejected && looks != judge.LooksLikeCopy(other) {
				t.Errorf("%s against %s: %+v", winner, other, c.Cross)
			}
		}
	}
	for _, name := range []string{"acme (Ada's conflicted copy 2026-11-28).hcl", "acme copy.hcl", "acme copy 2.hcl", "Copy of acme.hcl",
		"acme - Copy.hcl", "acme - Copy (2).hcl", "acme (1).hcl", "acme(1).hcl", "acme.LOCAL.123.hcl", "acme_REMOTE_4711.hcl",
		"acme.sync-conflict-20261128-120000-ABCDEFG.hcl", "acme.orig.hcl", "acme (case conflict).hcl", "acme - Kopie.hcl"} {
		f("acme.hcl", name, text)
		f("zebra.hcl", name, text) // also where the path alone would decide otherwise
		f("z/acme.hcl", "a/"+name, text)
	}
	for _, name := range []string{"copyright.hcl", "photocopy.hcl", "acme.local.hcl", "local.hcl", "original.hcl", "base.hcl", "a-1.hcl"} {
		if judge.LooksLikeCopy(name) {
			t.Errorf("%s does not look like a copy", name)
		}
	}
	f("acme.hcl", "aaa.hcl", text)
	f("z/acme.hcl", "a/beta.hcl", text)
	f("a.hcl", "b.hcl", text)
	// A file with several projects: each is claimed by the file of its name.
	f("acme.hcl", "aaa.hcl", "project \"aaa\" {\n  name = \"A\"\n}\n"+text)
}
