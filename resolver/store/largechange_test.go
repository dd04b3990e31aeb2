package store_test

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/store"
)

// address is how %+v shows a pointer within a struct.
var address = regexp.MustCompile(`0x[0-9a-f]+`)

func sameDump(t *testing.T, got, want *store.Store) {
	t.Helper()
	a, b := dump(t, got), dump(t, want)
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || address.ReplaceAllString(a[i], "") != address.ReplaceAllString(b[i], "") {
			t.Fatalf("from line %d on:\ngot  %.2000q\nwant %.2000q", i, a[min(i, len(a)):], b[min(i, len(b)):])
		}
	}
}

// TestLargeChangeIsStoredLean bounds the allocations of a large change per file to what a change of 100,000 files can
// afford.
func TestLargeChangeIsStoredLean(t *testing.T) {
	const files = 400
	s := open(t, t.TempDir(), store.Options{})
	turn := func(n int) *catalog.Change {
		c := change()
		for i := range files {
			slug := fmt.Sprintf("p%03d", i)
			p := block(slug, slug+".example", "*."+slug+".example")
			p.Project.Name = fmt.Sprintf("turn %d", n)
			f := file(slug+".hcl", declare(p))
			f.Bytes = []byte(p.Project.Name)
			c.Files = append(c.Files, f)
		}
		return c
	}
	n := 0
	var changes []*catalog.Change
	for range 5 {
		changes = append(changes, turn(len(changes)))
	}
	allocs := testing.AllocsPerRun(len(changes)-1, func() {
		if _, err := s.Apply(changes[n], 1, noon.Add(time.Duration(n)*time.Hour), func(*store.Effect) error { return nil }); err != nil {
			t.Fatal(err)
		}
		n++
	})
	// Each object is decoded and encoded once; the rest are Pebble's searches, the names in the effect, and the changed
	// project's fields for the audit trail.
	if perFile := allocs / files; perFile > 58 && !testrig.Race {
		t.Errorf("%.1f allocations a file", perFile)
	}
}

// TestEffectOfManyHasNoNames changes more projects than an Effect names.
func TestEffectOfManyHasNoNames(t *testing.T) {
	t.Parallel()
	s := open(t, "", store.Options{})
	projects := func(from, to int) (list []catalog.ProjectConfig) {
		for i := from; i < to; i++ {
			slug := fmt.Sprintf("p%04d", i)
			list = append(list, block(slug, slug+".example"))
		}
		return list
	}
	e := apply(t, s, noon, file("few.hcl", declare(projects(0, 4096)...)))
	if e.Many || len(e.Projects) != 4096 || len(e.Domains) != 4096 || e.Projects[7].Domains[0] != "p0007.example" {
		t.Errorf("many %v, %d projects, %d domains", e.Many, len(e.Projects), len(e.Domains))
	}
	e = apply(t, s, noon, file("many.hcl", declare(projects(4096, 8193)...)))
	if !e.Many || len(e.Projects) != 0 || len(e.Domains) != 0 || s.Counts().Projects != 8193 {
		t.Errorf("many %v, %d projects, %d domains", e.Many, len(e.Projects), len(e.Domains))
	}
	e = apply(t, s, noon, gone("many.hcl"))
	if !e.Many || len(e.Projects) != 0 || s.Counts().Projects != 4096 {
		t.Errorf("gone: many %v, %d projects, %d are left", e.Many, len(e.Projects), s.Counts().Projects)
	}
}
