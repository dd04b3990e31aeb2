package transfer

import (
	"slices"
	"testing"

	"fingerpost/resolver/catalog"
)

// TestDiffLabels: a plan shows each label that differs as a field of its own.
func TestDiffLabels(t *testing.T) {
	have := catalog.Project{Labels: []catalog.Label{{Name: "gone", Value: "1"}, {Name: "plan", Value: "gold"}, {Name: "same", Value: "x"}}}
	want := catalog.Project{Labels: []catalog.Label{{Name: "new", Value: ""}, {Name: "plan", Value: "free"}, {Name: "same", Value: "x"}}}
	f := func(names []string, changes ...FieldChange) {
		t.Helper()
		if got := diffFields(have.Fields(), want.Fields(), names); !slices.Equal(got, changes) {
			t.Errorf("%v: %+v", names, got)
		}
	}
	f(nil, FieldChange{Field: "labels.gone", Old: "1"}, FieldChange{Field: "labels.new", New: ""}, FieldChange{Field: "labels.plan", Old: "gold", New: "free"})
	f([]string{"name"})
	no := false
	was, is := catalog.Domain{}, catalog.Domain{Certificates: &no}
	if got := diffFields(was.Fields(), is.Fields(), nil); !slices.Equal(got, []FieldChange{{Field: "certificates", New: false}}) {
		t.Errorf("%+v", got)
	}
}
