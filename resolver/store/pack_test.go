package store_test

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/store"
)

// everything declares each kind of object, with what a record may hold and leave out.
func everything() *catalog.Declared {
	p := block("full", "full.example", "*.full.example")
	text := "über alles"
	service, auth := catalog.NewServiceSettings(), catalog.NewAuthSettings()
	p.Project.Description = &text
	p.SMTP = &catalog.SMTPConfig{ID: 9, Host: "smtp.full.example", Port: 587, Password: catalog.Secret{Source: catalog.SecretEnv, Ref: "PW"}}
	p.Templates = append(p.Templates, template(&p, "WELCOME"))
	return &catalog.Declared{
		Projects:  []catalog.ProjectConfig{p, block("empty")},
		Templates: []catalog.Template{template(nil, "LOGIN_ALERT")},
		Keys: []catalog.Key{
			{Name: "all", ID: "AAAAAAAA", Allow: catalog.MayResolve},
			{Name: "none", ID: "BBBBBBBB", Allow: catalog.MayRead, Projects: []string{}, ExpiresAt: noon.Add(time.Nanosecond)},
			{Name: "one", ID: "CCCCCCCC", Projects: []string{"full"}},
		},
		Defaults: &catalog.Defaults{Service: &service, Auth: &auth},
		Sealing:  &catalog.Sealing{Recipients: []string{"age1x"}, Require: true},
	}
}

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

func TestPackedIsAsGoodAsDeclared(t *testing.T) {
	plain, packed := open(t, "", store.Options{}), open(t, "", store.Options{})
	apply(t, plain, noon, file("a.hcl", everything()), file("b.hcl", declare(block("other", "other.example"))))
	pack := func(f catalog.FileChange) catalog.FileChange {
		f.Packed, f.Declared = store.Pack(f.Declared), nil
		return f
	}
	e := apply(t, packed, noon, pack(file("a.hcl", everything())), pack(file("b.hcl", declare(block("other", "other.example")))))
	if !e.Keys || !e.Defaults || !e.Sealing || len(e.Domains) != 3 || len(e.Projects) != 3 {
		t.Errorf("effect %+v", e)
	}
	sameDump(t, packed, plain)
	// What a packed file no longer declares goes, and what moved to another one stays.
	less := everything()
	moved := less.Projects[0]
	less.Projects, less.Keys = less.Projects[1:], less.Keys[:1]
	files := func() []catalog.FileChange {
		return []catalog.FileChange{file("a.hcl", less), file("c.hcl", declare(moved)), gone("b.hcl")}
	}
	apply(t, plain, noon.Add(time.Hour), files()...)
	next := files()
	next[0], next[1] = pack(next[0]), pack(next[1])
	apply(t, packed, noon.Add(time.Hour), next...)
	sameDump(t, packed, plain)
	if getProject(t, packed, "other") != nil || getProject(t, packed, "full") == nil {
		t.Error("the wrong project is gone")
	}
}

func TestApplyRestsBeforeItCommits(t *testing.T) {
	s := open(t, "", store.Options{})
	c := change()
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		c.Files = append(c.Files, file(name+".hcl", declare(block(name, name+".example"))))
	}
	rested := 0
	c.Rest = func() {
		if rested++; s.Generation() != 0 || getProject(t, s, "a") != nil {
			t.Error("a rest within the commit")
		}
	}
	committing := 0
	if _, err := s.Apply(c, noon, func(*store.Preview) { committing++ }); err != nil {
		t.Fatal(err)
	}
	if rested == 0 || committing != 1 {
		t.Errorf("%d rests, committing called %d times", rested, committing)
	}
}

// TestPackedIsStoredLean holds what a large change allocates for a file to what a hundred thousand of them can afford.
func TestPackedIsStoredLean(t *testing.T) {
	const files = 400
	s := open(t, t.TempDir(), store.Options{})
	turn := func(n int) *catalog.Change {
		c := change()
		for i := range files {
			slug := fmt.Sprintf("p%03d", i)
			p := block(slug, slug+".example", "*."+slug+".example")
			p.Project.Name = fmt.Sprintf("turn %d", n)
			f := file(slug+".hcl", declare(p))
			f.Bytes, f.Packed, f.Declared = []byte(p.Project.Name), store.Pack(f.Declared), nil
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
		if _, err := s.Apply(changes[n], noon.Add(time.Duration(n)*time.Hour), func(*store.Preview) {}); err != nil {
			t.Fatal(err)
		}
		n++
	})
	// Those are Pebble's searches, and the names in the effect.
	if perFile := allocs / files; perFile > 16 {
		t.Errorf("%.1f allocations a file", perFile)
	}
}

// TestEffectOfManyHasNoNames changes more projects than anybody wants to be told of.
func TestEffectOfManyHasNoNames(t *testing.T) {
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
