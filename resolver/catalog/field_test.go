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
		maybe  *bool
		labels []Label
		locale Locales
	}
	fields := func(v noun) []Field {
		return []Field{{Value: &v.on}, {Value: &v.n}, {Value: &v.s, OneOf: []string{v.s}}, {Value: &v.opt}, {Value: &v.secret}, {Value: &v.maybe}, {Value: &v.labels}, {Value: &v.locale}}
	}
	base := noun{true, 1, "a", text("o"), Secret{Source: SecretEnv, Ref: "A"}, new(bool), []Label{{Name: "a", Value: "b"}}, Locales{{Tag: "de", SubjectTemplate: "a"}}}
	same := base
	same.opt, same.maybe, same.labels = text("o"), new(bool), []Label{{Name: "a", Value: "b"}}
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
		func(v *noun) { v.maybe = nil },
		func(v *noun) { v.maybe = &v.on },
		func(v *noun) { v.labels = nil },
		func(v *noun) { v.locale = nil },
		func(v *noun) { v.locale = Locales{{Tag: "fr", SubjectTemplate: "a"}} },
		func(v *noun) { v.locale = Locales{{Tag: "de", SubjectTemplate: "b"}} },
		func(v *noun) { v.labels = []Label{{Name: "a", Value: "c"}} },
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

// TestFieldLabels: every field of a noun that people edit has a name for them.
func TestFieldLabels(t *testing.T) {
	for kind, fields := range map[Kind][]Field{KindProject: new(Project).AllFields(), KindDomain: new(Domain).AllFields(),
		KindServiceSettings: new(ServiceSettings).Fields(), KindAuthSettings: new(AuthSettings).Fields(),
		KindSMTPConfig: new(SMTPConfig).Fields(), KindTemplate: new(Template).AllFields()} {
		for _, f := range fields {
			if _, null := f.Value.(**bool); f.Label == "" || null && f.Unset == "" {
				t.Errorf("%s.%s has no label, or nothing that says what null means", kind, f.Name)
			}
		}
	}
}
