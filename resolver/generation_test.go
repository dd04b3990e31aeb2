package resolver_test

import (
	"fmt"
	"testing"

	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// Whoever watches the node is told of each generation once, with what it changed and by whom, and of no part of a load.
func TestGenerationsAreTold(t *testing.T) {
	t.Parallel()
	var told []string
	r := open(t, resolver.Options{OnGeneration: func(g resolver.Generation) {
		var by []string
		for _, a := range g.By {
			by = append(by, string(a.Door)+" "+a.Actor)
		}
		counts := map[string]int{}
		for noun, objects := range g.Changed {
			counts[noun] = len(objects)
		}
		told = append(told, fmt.Sprintf("%d %v %v %q %q", g.Number, g.Loaded, counts, g.Only, by))
	}})
	want := func(texts ...string) {
		t.Helper()
		if fmt.Sprint(told) != fmt.Sprint(texts) {
			t.Errorf("told\n%q\nwant\n%q", told, texts)
		}
		told = nil
	}
	a, b := block("a", "a.example", "b.example"), block("b")
	if err := r.Fill(&catalog.Change{Files: []catalog.FileChange{file("b.hcl", b)}}); err != nil {
		t.Fatal(err)
	}
	want()
	apply(t, r, file("a.hcl", a))
	want(`1 true map[] "" ["file "]`)
	ada, bob := file("a.hcl", a), file("b.hcl", b)
	ada.By, bob.By = &catalog.Author{Door: catalog.DoorAPI, Actor: "Ada", RequestID: "1"}, &catalog.Author{Door: catalog.DoorGit, Actor: "Bob"}
	apply(t, r, ada)
	want(`2 false map[] "" ["api Ada"]`)
	a.Domains = a.Domains[:1]
	ada = file("a.hcl", a)
	ada.By = &catalog.Author{Door: catalog.DoorAPI, Actor: "Ada"}
	apply(t, r, ada)
	want(`3 false map[domain:1] "domain.delete b.example" ["api Ada"]`)
	a.Project.Name, b.Domains = "A", block("b", "c.example", "d.example").Domains
	ada, bob = file("a.hcl", a), file("b.hcl", b)
	ada.By, bob.By = &catalog.Author{Door: catalog.DoorAPI, Actor: "Ada"}, &catalog.Author{Door: catalog.DoorGit, Actor: "Bob"}
	apply(t, r, ada, bob)
	want(`4 false map[domain:2 project:1] "" ["api Ada" "git Bob"]`)

	// A file that was touched with the pull, or before, is no change that somebody has saved.
	pulled := block("b", "c.example", "d.example")
	pulled.Project.Name = "Pulled"
	bob = file("b.hcl", pulled)
	bob.By = &catalog.Author{Door: catalog.DoorGit, Actor: "Bob"}
	touched := catalog.FileChange{Path: "a.hcl", Row: &catalog.FileRow{Stamp: catalog.Stamp{Size: 1, ModTime: noon.Add(1)}}}
	apply(t, r, touched, bob)
	want(`5 false map[project:1] "project.update b" ["git Bob"]`)

	a.Project.Name = "B" // as an edge gets it
	if _, err := r.Apply(&catalog.Change{Files: []catalog.FileChange{file("a.hcl", a)},
		Position: &catalog.Position{Epoch: "1", Generation: 9}}); err != nil {
		t.Fatal(err)
	}
	want(`9 false map[project:1] "" ["cluster "]`)
}
