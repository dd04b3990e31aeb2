package resolver_test

import (
	"fmt"
	"testing"

	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// TestServedDomain: a domain is found with its project, as the last change has left it.
func TestServedDomain(t *testing.T) {
	t.Parallel()
	r := open(t, resolver.Options{})
	a, b := block("a", "a.example", "*.a.example"), block("b", "b.example")
	apply(t, r, file("a.hcl", a), file("b.hcl", b))
	is := func(want ...string) {
		t.Helper()
		var all []string
		if err := r.EachDomain(func(d *catalog.Domain) bool {
			found, p, err := r.ServedDomain(d.Name)
			if err != nil || found.ID != d.ID || p.ID != d.ProjectID {
				t.Errorf("%s: %+v, %+v, %v", d.Name, found, p, err)
			}
			all = append(all, d.Name+" "+p.Slug)
			return true
		}); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(all) != fmt.Sprint(want) {
			t.Errorf("%v, want %v", all, want)
		}
	}
	is("a.example a", "*.a.example a", "b.example b")
	apply(t, r, file("a.hcl", block("a", "*.a.example")), file("b.hcl", block("b", "b.example", "a.example")))
	is("a.example b", "*.a.example a", "b.example b")
	if _, _, err := r.ServedDomain("x.a.example"); !catalog.IsNotFound(err) {
		t.Errorf("a name below a wildcard: %v", err)
	}
}

// TestNoteDomain: what happens to a domain without a change of its record is an entry of its project's trail.
func TestNoteDomain(t *testing.T) {
	t.Parallel()
	r := open(t, resolver.Options{})
	p := block("a", "a.example")
	apply(t, r, file("a.hcl", p))
	r.NoteDomain("domain.lost", p.Project.ID, "a.example", catalog.Author{Door: "dns"},
		catalog.FieldChange{Field: "reason", After: "no server has it"})
	page, err := r.Audit(catalog.AuditQuery{ProjectID: p.Project.ID, Action: "domain.lost", Limit: 10})
	if err != nil || page.Total != 1 {
		t.Fatalf("%+v, %v", page, err)
	}
	if e := page.Entries[0]; e.Object != "a.example" || e.Door != "dns" || e.Actor != "" || e.Generation != r.Generation() ||
		fmt.Sprint(e.Changes) != "[{reason false <nil> no server has it}]" {
		t.Errorf("%+v", e)
	}
}
