package hclfile_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"fingerpost/configsrc/hclfile"
)

// TestReparse makes edits and compares the tree of the result with that of a parse of all of it, positions and all. It is
// no test where the whole is parsed, so it also counts how often that was needed.
func TestReparse(t *testing.T) {
	s := &scribble{Rand: rand.New(rand.NewPCG(7, 8))}
	made, edited := 0, 0
	for i := range rounds(t, 4000) {
		src := s.file()
		r, ds := hclfile.Decode("s.hcl", src, hclfile.Options{})
		if ds.HasErrors() {
			t.Fatalf("%d: %s\n%s", i, text(ds), src)
		}
		blocks := blocksOf(r.Declared)
		if len(blocks) == 0 {
			continue
		}
		var steps []hclfile.Step
		at := blocks[s.IntN(len(blocks))]
		for range 1 + s.IntN(3) {
			steps = append(steps, s.step(at))
		}
		differ, ok, err := hclfile.Reparse(src, steps)
		if err != nil {
			continue // steps that exclude each other
		}
		if differ != "" {
			t.Fatalf("%d: %+v: %s\n%q", i, steps, differ, src)
		}
		if made++; ok {
			edited++
		}
	}
	t.Logf("%d of %d without a parse of the whole", edited, made)
	if edited < made/3 {
		t.Errorf("only %d of %d edits could do without a parse of the whole", edited, made)
	}
}

// step is an edit of a block.
func (s *scribble) step(at path) hclfile.Step {
	name := s.pick("name", "description", "active", "id", "body_text")
	switch s.IntN(6) {
	case 0:
		return hclfile.Step{Op: "unset", At: at, Name: name}
	case 1:
		return hclfile.Step{Op: "remove", At: at}
	case 2:
		return hclfile.Step{Op: "insert", At: at, Text: "domain \"new.example\" {\n  # first\n  active = false\n}"}
	case 3:
		return hclfile.Step{Op: "rename", At: at, Text: s.pick("a", "bbbbbbbbbbbbbbbbbbbb")}
	}
	return hclfile.Step{Op: "set", At: at, Name: name, Text: s.pick(`"y"`, "true", "-12", `["a", "b"]`, hclfile.Literal("a\n  b # c\n"), hclfile.Literal("no\nend"), `env("A")`, "null")}
}

// TestReparseAnything puts text that no edit makes into files, anywhere: what the parser would not read as it was meant
// to be where it stands, above all what begins or ends something.
func TestReparseAnything(t *testing.T) {
	s := &scribble{Rand: rand.New(rand.NewPCG(9, 10))}
	parts := []string{"}", "{", "\n", "\r\n", "\"", "/*", "*/", "#", "//", "<<E_1\n", "E_1\n", "EOT\n", "<<-EOT\n", "a = 1\n", "name = \"z\"\n", "(", ")", "[", "]", ",", "$${", "${", "%{", "~}",
		" ", "\t", "\r", "\xef\xbb\xbf", "domain \"q\" {}\n", "domain \"q\" {\n", "x {\n}\n", "é\u0301", "<<<<<<< a\n", "\\", "."}
	edited := 0
	for i := range rounds(t, 20000) {
		src := s.file()
		from := s.IntN(len(src) + 1)
		to := min(len(src), from+s.pickInt(0, 0, 1, 2, 10, 100))
		var b strings.Builder
		for range s.IntN(4) {
			b.WriteString(s.pick(parts...))
		}
		if s.IntN(2) == 0 { // whole lines, which are parsed alone more often
			from = 1 + strings.LastIndexByte(string(src[:from]), '\n')
			if n := strings.IndexByte(string(src[to:]), '\n'); n >= 0 {
				to += n + 1
			}
			b.WriteString(s.pick("", "\n"))
		}
		differ, ok := hclfile.ReparseSplice(src, from, to, b.String())
		if differ != "" {
			t.Fatalf("%d: %q for [%d:%d]: %s\n%q", i, b.String(), from, to, differ, src)
		}
		if ok {
			edited++
		}
	}
	t.Logf("%d without a parse of the whole", edited)
	if edited < rounds(t, 20000)/50 {
		t.Errorf("only %d could do without a parse of the whole", edited)
	}
}

func (s *scribble) pickInt(options ...int) int { return options[s.IntN(len(options))] }
