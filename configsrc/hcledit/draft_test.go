package hcledit_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"fingerpost/configsrc/hcledit"
	"fingerpost/configsrc/hclfile"
)

// TestDraftIsEditsInTurn asserts that several edits in one Draft come to the same bytes as the same edits one after the
// other, each on the parsed result of those before it.
func TestDraftIsEditsInTurn(t *testing.T) {
	s := &scribble{Rand: rand.New(rand.NewPCG(7, 8))}
	for i := range rounds(t, 1500) {
		src := s.file()
		if i%2 == 0 {
			src, _ = hclfile.Format(src)
		}
		steps := s.steps(src)
		one := src
		for _, step := range steps {
			var err error
			if one, err = step.Alone(one); err != nil {
				t.Fatalf("%d: %+v: %v\n%s", i, step, err, one)
			}
		}
		all, err := hcledit.Together(src, steps)
		if !formatted(src) { // an edit formats its block, by which the next one indents
			one, all = noBlanks(one), noBlanks(all)
		}
		if err != nil || !bytes.Equal(one, all) {
			t.Fatalf("%d: %+v: %v\n--- before\n%s\n--- one after the other\n%q\n--- together\n%q", i, steps, err, src, one, all)
		}
	}
}

// steps are edits of one file's projects in the order in which RewriteProject makes them.
func (s *scribble) steps(src []byte) (steps []hcledit.Step) {
	r, _ := hclfile.Decode("s.hcl", src, hclfile.Options{})
	for _, p := range r.Declared.Projects {
		at := path{"project", p.Project.Slug}
		add := func(op string, at path, name, text string) {
			steps = append(steps, hcledit.Step{Op: op, At: at, Name: name, Text: text})
		}
		sometimes := func(f func()) {
			if s.IntN(2) == 0 {
				f()
			}
		}
		sometimes(func() { add("set", at, "name", hcledit.Literal(s.pick("x", "a\nb", "other"))) })
		if s.IntN(3) > 0 {
			add("set", at, "description", hcledit.Literal(s.pick("x", "a\nb\n", "y z")))
		} else if p.Project.Description != nil {
			add("unset", at, "description", "")
		}
		sometimes(func() { add("set", at, "status", `"ACTIVE"`) })
		sometimes(func() { add("set", at, "uuid", `"2f1c8a6e-1111-4222-8333-123456789abc"`) })
		for _, d := range p.Domains {
			if s.IntN(3) == 0 {
				add("remove", append(slices.Clone(at), "domain", d.Name), "", "")
			}
		}
		for _, d := range p.Domains {
			domain := append(slices.Clone(at), "domain", d.Name)
			if slices.ContainsFunc(steps, func(x hcledit.Step) bool { return x.Op == "remove" && slices.Equal(x.At, domain) }) {
				continue
			}
			sometimes(func() { add("set", domain, "active", s.pick("true", "false")) })
			sometimes(func() { add("set", domain, "uuid", fmt.Sprintf(`"2f1c8a6e-1111-4222-8333-%012d"`, s.IntN(1e9))) })
			sometimes(func() { add("rename", domain, "", fmt.Sprintf("r%d.example", s.IntN(1e9))) })
		}
		for range s.IntN(3) {
			add("insert", at, "", fmt.Sprintf(s.pick("domain \"i%d.example\" {}", "# new\ndomain \"i%d.example\" {\n  active = false\n}"), s.IntN(1e9)))
		}
	}
	return steps
}
