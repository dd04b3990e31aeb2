package transfer

import (
	"slices"
	"testing"

	"fingerpost/api/client"
	"fingerpost/resolver/catalog"
)

// TestDiffLabels: a plan shows each label that differs as a field of its own.
func TestDiffLabels(t *testing.T) {
	have := catalog.Project{Labels: []catalog.Label{{Name: "gone", Value: "1"}, {Name: "plan", Value: "gold"}, {Name: "same", Value: "x"}}}
	want := catalog.Project{Labels: []catalog.Label{{Name: "new", Value: ""}, {Name: "plan", Value: "free"}, {Name: "same", Value: "x"}}}
	fields := func(have, want *catalog.ProjectConfig, full bool) (list []FieldChange) {
		changes, _ := compareProject(&client.Project{ProjectConfig: *have, Mail: true, Full: full}, want, view{})
		for _, c := range changes {
			list = append(list, c.Fields...)
		}
		return list
	}
	f := func(full bool, changes ...FieldChange) {
		t.Helper()
		if got := fields(&catalog.ProjectConfig{Project: have}, &catalog.ProjectConfig{Project: want}, full); !slices.Equal(got, changes) {
			t.Errorf("%v: %+v", full, got)
		}
	}
	f(true, FieldChange{Field: "labels.gone", Old: "1"}, FieldChange{Field: "labels.new", New: ""}, FieldChange{Field: "labels.plan", Old: "gold", New: "free"})
	f(false)
	no := false
	was := catalog.ProjectConfig{Domains: []catalog.Domain{{Name: "a.example"}}}
	is := catalog.ProjectConfig{Domains: []catalog.Domain{{Name: "a.example", Certificates: &no}}}
	if got := fields(&was, &is, true); !slices.Equal(got, []FieldChange{{Field: "certificates", New: false}}) {
		t.Errorf("%+v", got)
	}
}
