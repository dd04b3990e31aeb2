package catalog

import "testing"

// TestSameFields compares values of every type.
func TestSameFields(t *testing.T) {
	text := func(s string) *string { return &s }
	type noun struct {
		on     bool
		n      int
		s      string
		opt    *string
		secret Secret
	}
	fields := func(v noun) []Field {
		return []Field{{Value: &v.on}, {Value: &v.n}, {Value: &v.s, OneOf: []string{v.s}}, {Value: &v.opt}, {Value: &v.secret}}
	}
	base := noun{true, 1, "a", text("o"), Secret{Source: SecretEnv, Ref: "A"}}
	same := base
	same.opt = text("o")
	if !SameFields(fields(base), fields(same)) || !SameFields(fields(noun{}), fields(noun{})) {
		t.Error("equal nouns differ")
	}
	for i, change := range []func(*noun){
		func(v *noun) { v.on = false },
		func(v *noun) { v.n = 2 },
		func(v *noun) { v.s = "b" },
		func(v *noun) { v.opt = nil },
		func(v *noun) { v.opt = text("p") },
		func(v *noun) { v.secret.Ref = "B" },
		func(v *noun) { v.secret.Source = SecretFile },
	} {
		other := base
		change(&other)
		if SameFields(fields(base), fields(other)) || SameFields(fields(other), fields(base)) {
			t.Errorf("change %d is not seen", i)
		}
	}
	if SameFields(fields(base), fields(base)[:4]) {
		t.Error("fewer fields are the same")
	}
}
