package store_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/store"
)

// TestRememberedChanges makes the same random changes to a store that remembers records and to one that reads them all,
// and compares what comes of them. Blocks change, come, go, and move between files, domains between projects.
func TestRememberedChanges(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	got, want := open(t, "", store.Options{}), open(t, "", store.Options{})
	files := map[string]*catalog.Declared{} // by path
	turn := func() []catalog.FileChange {
		changed := map[string]bool{}
		slugs, hosts := rng.Perm(12), rng.Perm(40)
		for range 1 + rng.IntN(3) {
			path := fmt.Sprintf("f%d.hcl", rng.IntN(6))
			changed[path] = true
			if rng.IntN(8) == 0 {
				delete(files, path)
				continue
			}
			d := &catalog.Declared{}
			for range rng.IntN(3) {
				p := block(fmt.Sprintf("p%d", slugs[0]))
				slugs = slugs[1:]
				p.Project.Name = fmt.Sprint("Name ", rng.IntN(3))
				for range rng.IntN(4) {
					x := domain(&p, fmt.Sprintf("h%d.example", hosts[0]))
					x.Primary = rng.IntN(2) == 0
					p.Domains, hosts = append(p.Domains, x), hosts[1:]
				}
				for code := range rng.IntN(3) {
					x := template(&p, fmt.Sprint("code", code))
					x.SubjectTemplate = fmt.Sprint("Hello ", rng.IntN(3))
					p.Templates = append(p.Templates, x)
				}
				d.Projects = append(d.Projects, p)
			}
			files[path] = d
		}
		// What another file of the change, or one that is left alone, declares too goes there.
		for path := range changed {
			if d := files[path]; d != nil {
				for other, o := range files {
					if other != path && overlap(d, o) {
						changed[other] = true
						delete(files, other)
					}
				}
			}
		}
		var out []catalog.FileChange
		for path := range maps.Keys(changed) {
			if d := files[path]; d != nil {
				out = append(out, file(path, d))
			} else {
				out = append(out, gone(path))
			}
		}
		return out
	}
	for i := range 400 {
		at, change := noon.Add(time.Duration(i)*time.Minute), turn()
		if rng.IntN(20) == 0 { // it comes to them in another way
			third := open(t, "", store.Options{})
			if err := third.Import(want); err != nil {
				t.Fatal(err)
			}
			apply(t, third, at, change...)
			if err := errors.Join(got.Import(third), want.Import(third), third.Close()); err != nil {
				t.Fatal(err)
			}
			sameDump(t, got, want)
			continue
		}
		want.ForgetRecent()
		a, b := apply(t, got, at, change...), apply(t, want, at, change...)
		if !reflect.DeepEqual(effects(a), effects(b)) || got.Counts() != want.Counts() {
			t.Fatalf("change %d: effect %+v, counts %+v; want %+v, %+v", i, a, got.Counts(), b, want.Counts())
		}
		sameDump(t, got, want)
	}
}

// overlap reports whether two files declare the same project or domain.
func overlap(a, b *catalog.Declared) bool {
	has := map[string]bool{}
	for _, p := range a.Projects {
		has[p.Project.Slug] = true
		for _, d := range p.Domains {
			has[d.Name] = true
		}
	}
	for _, p := range b.Projects {
		if has[p.Project.Slug] {
			return true
		}
		for _, d := range p.Domains {
			if has[d.Name] {
				return true
			}
		}
	}
	return false
}

// effects are those of a change by what they are about: what goes is removed in no order.
func effects(e *store.Effect) map[string]int {
	m := map[string]int{}
	for _, p := range e.Projects {
		m[fmt.Sprintf("%+v", p)]++
	}
	for _, d := range e.Domains {
		m[fmt.Sprintf("%+v", d)]++
	}
	return m
}
