package store_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/store"
)

func TestApplyAndRead(t *testing.T) {
	t.Parallel()
	s := open(t, "", store.Options{})
	p := block("acme", "acme.example", "*.acme.example")
	text := "what it is"
	p.Project.Description = &text
	p.Service.MailEnabled, p.Service.Said = true, catalog.FieldSet(0).With(1)
	p.Auth.Token.JWTSecret = catalog.Secret{Source: catalog.SecretEnv, Ref: "ACME_JWT"}
	p.SMTP = &catalog.SMTPConfig{ID: 5, Host: "smtp.acme.example", FromEmail: "hello@acme.example", Active: true}
	p.Templates = []catalog.Template{template(&p, "WELCOME")}
	d := declare(p)
	d.Templates = []catalog.Template{template(nil, "WELCOME")}
	d.Keys = []catalog.Key{{Name: "shop", ID: "abcdef", Allow: catalog.MayResolve, Projects: []string{"acme"}, ExpiresAt: noon}}
	d.Defaults = &catalog.Defaults{Service: &catalog.ServiceSettings{AuthEnabled: true, Said: 1}}
	d.Sealing = &catalog.Sealing{Recipients: []string{"age1x"}, Require: true}
	f := file("acme.hcl", d)
	f.Row.Deps = []catalog.Dep{{Path: "welcome.html", Stamp: f.Row.Stamp}}

	e := apply(t, s, noon, f)
	if e.Generation != 1 || s.Generation() != 1 {
		t.Errorf("generation %d, %d, want 1", e.Generation, s.Generation())
	}
	if got := effectText(e, p); got != "project acme; *.acme.example of acme; acme.example of acme" || !e.Defaults || !e.Keys || !e.Sealing {
		t.Errorf("effect %s: %+v", got, e)
	}
	if e.Projects[0].Was != "" || len(e.Projects[0].Domains) != 2 {
		t.Errorf("the new project: %+v", e.Projects[0])
	}
	if want := (store.Counts{Projects: 1, Domains: 2, Wildcards: 1}); s.Counts() != want {
		t.Errorf("counts %+v, want %+v", s.Counts(), want)
	}

	micros := noon.Truncate(time.Microsecond)
	got := getProject(t, s, "acme")
	if !got.Project.CreatedAt.Equal(micros) || !got.Project.UpdatedAt.Equal(micros) {
		t.Errorf("times %v, %v, want %v", got.Project.CreatedAt, got.Project.UpdatedAt, micros)
	}
	if *got.Project.Description != text || got.SMTP.Host != p.SMTP.Host || got.Auth.Token.JWTSecret != p.Auth.Token.JWTSecret ||
		!got.Service.MailEnabled || got.Service.Said != p.Service.Said || got.Service.AuditRetentionDays != 90 {
		t.Errorf("project %+v", got)
	}
	if dom := getDomain(t, s, "*.acme.example"); dom == nil || dom.Name != "*.acme.example" || dom.ProjectID != p.Project.ID || !dom.Active {
		t.Errorf("wildcard %+v", dom)
	}
	var tpl, def catalog.Template
	if err := s.View(func(v *store.View) error {
		if found, err := v.TemplateByCode(&tpl, p.Project.ID, "WELCOME"); !found || err != nil {
			t.Errorf("template: %v, %v", found, err)
		}
		found, err := v.TemplateByCode(&def, 0, "WELCOME")
		if !found {
			t.Errorf("no default template")
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if tpl.ID == def.ID || tpl.BodyText != p.Templates[0].BodyText || def.ProjectID != 0 {
		t.Errorf("templates %+v, %+v", tpl, def)
	}
	all := strings.Join(dump(t, s), "\n")
	for _, want := range []string{"shop", "age1x", "welcome.html", `"bytes of acme.hcl"`, "acme.hcl", "AuthEnabled:true"} {
		if !strings.Contains(all, want) {
			t.Errorf("%s is missing in\n%s", want, all)
		}
	}
	if row, err := s.File("acme.hcl"); err != nil || !slices.Equal(row.Refs, f.Declared.Refs()) {
		t.Errorf("the row is %+v, %v; want the refs %+v", row, err, f.Declared.Refs())
	}
}

func TestUnchangedWritesNothing(t *testing.T) {
	t.Parallel()
	s := open(t, "", store.Options{})
	apply(t, s, noon, file("a.hcl", declare(block("a", "a.example"))))
	before := dump(t, s)
	e := apply(t, s, noon.Add(time.Hour), file("a.hcl", declare(block("a", "a.example"))))
	if len(e.Projects)+len(e.Domains) != 0 || e.Keys || e.Defaults || e.Sealing {
		t.Errorf("effect of nothing: %+v", e)
	}
	if after := dump(t, s); !slices.Equal(before, after) {
		t.Errorf("before\n%s\nafter\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
}

func TestTimes(t *testing.T) {
	t.Parallel()
	s := open(t, "", store.Options{})
	p := block("a", "a.example", "b.example")
	apply(t, s, noon, file("a.hcl", declare(p)))
	created := noon.Truncate(time.Microsecond)
	later := noon.Add(time.Hour)

	// Settings are not the project's own fields.
	p.Service.MailEnabled = true
	e := apply(t, s, later, file("a.hcl", declare(p)))
	if got := getProject(t, s, "a"); !got.Service.MailEnabled || !got.Project.UpdatedAt.Equal(created) {
		t.Errorf("after a change of settings: %+v", got.Project)
	}
	if got := effectText(e, p); got != "project a" || e.Projects[0].Was != "a" {
		t.Errorf("effect %s: %+v", got, e)
	}

	p.Project.Name = "Another"
	apply(t, s, later, file("a.hcl", declare(p)))
	if got := getProject(t, s, "a").Project; !got.UpdatedAt.Equal(later.Truncate(time.Microsecond)) || !got.CreatedAt.Equal(created) {
		t.Errorf("after a change of the name: %+v", got)
	}

	// updatedAt advances although the clock has gone back.
	p.Project.Name = "A third"
	apply(t, s, noon.Add(-time.Hour), file("a.hcl", declare(p)))
	if got := getProject(t, s, "a").Project; !got.UpdatedAt.Equal(later.Truncate(time.Microsecond).Add(time.Microsecond)) {
		t.Errorf("with the clock set back: %+v", got)
	}

	p.Domains[0].Primary = true
	e = apply(t, s, later, file("a.hcl", declare(p)))
	if d := getDomain(t, s, "a.example"); !d.UpdatedAt.Equal(later.Truncate(time.Microsecond)) || !d.CreatedAt.Equal(created) {
		t.Errorf("changed domain %+v", d)
	}
	if d := getDomain(t, s, "b.example"); !d.UpdatedAt.Equal(created) {
		t.Errorf("other domain %+v", d)
	}
	if got := effectText(e, p); got != "a.example of a" {
		t.Errorf("effect %s: %+v", got, e)
	}

	// The same id with another uuid is another project.
	p.Project.UUID = catalog.NewUUID()
	apply(t, s, later, file("a.hcl", declare(p)))
	if got := getProject(t, s, "a").Project; !got.CreatedAt.Equal(later.Truncate(time.Microsecond)) {
		t.Errorf("with another uuid: %+v", got)
	}
}

func TestRemoval(t *testing.T) {
	t.Parallel()
	s := open(t, "", store.Options{})
	p := block("a", "a.example", "*.a.example")
	p.Templates = []catalog.Template{template(&p, "WELCOME")}
	d := declare(p)
	d.Keys = []catalog.Key{{Name: "k", ID: "abcdef", Allow: catalog.MayRead}}
	d.Defaults, d.Sealing = &catalog.Defaults{}, &catalog.Sealing{}
	d.Templates = []catalog.Template{template(nil, "WELCOME")}
	apply(t, s, noon, file("a.hcl", d), file("b.hcl", declare(block("b", "b.example"))))

	// A touched file keeps what it declares, and its refs.
	touched := catalog.FileChange{Path: "a.hcl", Row: &catalog.FileRow{Stamp: catalog.Stamp{Size: 2, ModTime: noon}}}
	apply(t, s, noon, touched)
	if row, err := s.File("a.hcl"); err != nil || getDomain(t, s, "a.example") == nil || row.Stamp != touched.Row.Stamp || len(row.Refs) != 8 {
		t.Errorf("after a touch: %+v, %v", row, err)
	}

	e := apply(t, s, noon, gone("a.hcl"))
	if got := effectText(e, p); got != "project a gone; *.a.example of a gone; a.example of a gone" || !e.Keys || !e.Defaults || !e.Sealing {
		t.Errorf("effect %s: %+v", got, e)
	}
	only := open(t, "", store.Options{})
	apply(t, only, noon, file("b.hcl", declare(block("b", "b.example"))))
	if got, want := dump(t, s), dump(t, only); !slices.Equal(got, want) {
		t.Errorf("left over:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	var dom catalog.Domain
	err := s.View(func(v *store.View) error {
		found, err := v.DomainByID(&dom, p.Project.ID, p.Domains[0].ID)
		if found {
			t.Error("the removed domain is found by id")
		}
		var tpl catalog.Template
		if found, err := v.TemplateByCode(&tpl, p.Project.ID, "WELCOME"); found || err != nil {
			t.Errorf("the removed template is found by code: %v", err)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestMovedBlockIsUntouched(t *testing.T) {
	t.Parallel()
	s := open(t, "", store.Options{})
	a, b := block("a", "a.example", "*.a.example"), block("b", "b.example")
	a.Templates = []catalog.Template{template(&a, "WELCOME")}
	apply(t, s, noon, file("one.hcl", declare(a, b)), file("two.hcl", declare()))
	before := getProject(t, s, "a").Project
	for _, files := range [][]catalog.FileChange{
		{file("one.hcl", declare(b)), file("two.hcl", declare(a))}, // moved to another file
		{file("one.hcl", declare(b, a)), gone("two.hcl")},          // and back, with the file removed
		{gone("one.hcl"), file("three.hcl", declare(a, b))},        // the file renamed
	} {
		e := apply(t, s, noon.Add(time.Hour), files...)
		if len(e.Projects)+len(e.Domains) != 0 {
			t.Errorf("a move had an effect: %+v", e)
		}
		if after := getProject(t, s, "a"); after == nil || !reflect.DeepEqual(after.Project, before) {
			t.Errorf("after a move: %+v, want %+v", after, before)
		}
		for _, name := range []string{"a.example", "*.a.example", "b.example"} {
			if getDomain(t, s, name) == nil {
				t.Errorf("%s is gone", name)
			}
		}
	}
	if want := (store.Counts{Projects: 2, Domains: 3, Wildcards: 1}); s.Counts() != want {
		t.Errorf("counts %+v, want %+v", s.Counts(), want)
	}
}

func TestRenames(t *testing.T) {
	t.Parallel()
	s := open(t, "", store.Options{})
	a, b := block("a", "x.example", "y.example"), block("b", "z.example")
	apply(t, s, noon, file("a.hcl", declare(a)), file("b.hcl", declare(b)))

	// Pinned identities: two domains of a exchange their names, the slugs go round.
	a.Domains[0].Name, a.Domains[1].Name = "y.example", "x.example"
	a.Project.Slug, b.Project.Slug = "b", "a"
	later := noon.Add(time.Hour)
	e := apply(t, s, later, file("a.hcl", declare(a)), file("b.hcl", declare(b)))
	if got, want := effectText(e, a, b), "project a; project b; x.example of b; x.example of b gone; y.example of b; y.example of b gone"; got != want {
		t.Errorf("touched %s, want %s", got, want)
	}
	if e.Projects[0].Was != "a" || e.Projects[1].Was != "b" {
		t.Errorf("slugs before: %+v", e.Projects)
	}
	if got := getProject(t, s, "b").Project; got.ID != a.Project.ID || !got.CreatedAt.Equal(noon.Truncate(time.Microsecond)) {
		t.Errorf("slug b leads to %+v", got)
	}
	if got := getDomain(t, s, "y.example"); got.ID != a.Domains[0].ID || !got.CreatedAt.Equal(noon.Truncate(time.Microsecond)) || got.CreatedAt.Equal(got.UpdatedAt) {
		t.Errorf("y.example is %+v", got)
	}

	// A name that was given up is free.
	a.Domains[0].Name = "new.example"
	apply(t, s, later, file("a.hcl", declare(a)))
	if getDomain(t, s, "y.example") != nil || getDomain(t, s, "new.example") == nil {
		t.Error("the renamed domain has its old name, or no name")
	}

	// A domain that moves to another project gets a new identity there; the old one leaves no trace.
	moved := block("b", "z.example", "x.example")
	moved.Project.Slug = "a"
	a.Domains = a.Domains[:1]
	e = apply(t, s, later, file("a.hcl", declare(a)), file("b.hcl", declare(moved)))
	if got, want := effectText(e, a, b), "x.example of a; x.example of b gone"; got != want {
		t.Errorf("touched %s, want %s", got, want)
	}
	if got := getDomain(t, s, "x.example"); got == nil || got.ProjectID != b.Project.ID || !got.CreatedAt.Equal(later.Truncate(time.Microsecond)) {
		t.Errorf("x.example is %+v", got)
	}
	if want := (store.Counts{Projects: 2, Domains: 3}); s.Counts() != want {
		t.Errorf("counts %+v, want %+v", s.Counts(), want)
	}

	fresh := open(t, "", store.Options{})
	apply(t, fresh, noon, file("a.hcl", declare(a)), file("b.hcl", declare(moved)))
	if got, want := withoutTimes(dump(t, s)), withoutTimes(dump(t, fresh)); !slices.Equal(got, want) {
		t.Errorf("the way here shows:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// effectText lists the names in an effect, sorted and deduplicated. Ids are shown as slugs.
func effectText(e *store.Effect, projects ...catalog.ProjectConfig) string {
	slugs := map[int64]string{}
	for _, p := range projects {
		slugs[p.Project.ID] = p.Project.Slug
	}
	state := map[bool]string{true: " gone"}
	var of, names []string
	for _, p := range e.Projects {
		of = append(of, "project "+p.Slug+state[p.Gone])
	}
	for _, d := range e.Domains {
		names = append(names, d.Name+" of "+slugs[d.Project]+state[d.Gone])
	}
	slices.Sort(of)
	slices.Sort(names)
	return strings.Join(append(of, slices.Compact(names)...), "; ")
}

// withoutTimes removes the times, which %+v prints in an easily found form.
func withoutTimes(lines []string) []string {
	out := slices.Clone(lines)
	for i, line := range out {
		for _, field := range []string{"CreatedAt:", "UpdatedAt:"} {
			if start := strings.Index(line, field); start >= 0 {
				end := strings.Index(line[start:], " UTC")
				line = line[:start] + line[start+end+4:]
			}
		}
		out[i] = line
	}
	return out
}

func TestPinnedDomainMovesBetweenProjects(t *testing.T) {
	t.Parallel()
	s := open(t, "", store.Options{})
	a, b := block("a", "x.example"), block("b")
	a.Domains[0].ID = 77
	apply(t, s, noon, file("a.hcl", declare(a)), file("b.hcl", declare(b)))
	b.Domains, a.Domains = a.Domains, nil
	e := apply(t, s, noon.Add(time.Hour), file("a.hcl", declare(a)), file("b.hcl", declare(b)))
	if got, want := effectText(e, a, b), "x.example of a gone; x.example of b"; got != want {
		t.Errorf("touched %s, want %s", got, want)
	}
	got := getDomain(t, s, "x.example")
	if got == nil || got.ProjectID != b.Project.ID || !got.CreatedAt.Equal(noon.Truncate(time.Microsecond)) {
		t.Fatalf("x.example is %+v", got)
	}
	err := s.View(func(v *store.View) error {
		var d catalog.Domain
		if found, err := v.DomainByID(&d, a.Project.ID, 77); found || err != nil {
			t.Errorf("the old project still has it: %v", err)
		}
		found, err := v.DomainByID(&d, b.Project.ID, 77)
		if !found {
			t.Error("the new project does not list it")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestFillTakesNoGeneration(t *testing.T) {
	t.Parallel()
	s := open(t, "", store.Options{})
	c := change(file("a.hcl", declare(block("a", "a.example"))))
	e, err := s.Apply(c, 0, noon, func(*store.Effect) error { return nil })
	if err != nil || e.Generation != 0 || s.Generation() != 0 {
		t.Errorf("fill: %+v, %v", e, err)
	}
	if e := apply(t, s, noon, file("b.hcl", declare(block("b")))); e.Generation != 1 {
		t.Errorf("generation %d, want 1", e.Generation)
	}
}

// TestFillTwice: a first load that goes on after a crash finds what the files had before it.
func TestFillTwice(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	s := open(t, dir, store.Options{})
	fill := func(now time.Time, files ...catalog.FileChange) {
		t.Helper()
		if _, err := s.Apply(change(files...), 0, now, func(*store.Effect) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	fill(noon, file("a.hcl", declare(block("a", "a.example", "b.example"))))
	fill(noon, file("c.hcl", declare(block("c", "c.example"))))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir, store.Options{})
	later := noon.Add(time.Hour)
	fill(later, file("a.hcl", declare(block("a", "a.example"))), file("b.hcl", declare(block("b", "b.example"))))
	if want := (store.Counts{Projects: 3, Domains: 3}); s.Counts() != want {
		t.Errorf("counts %+v, want %+v", s.Counts(), want)
	}
	if p := getProject(t, s, "a"); p == nil || !p.Project.CreatedAt.Equal(noon.Truncate(time.Microsecond)) {
		t.Errorf("project %+v", p)
	}
	if d := getDomain(t, s, "b.example"); d == nil || d.ProjectID != getProject(t, s, "b").Project.ID {
		t.Errorf("domain %+v", d)
	}
}

func TestDeclaredWithoutRowIsRefused(t *testing.T) {
	t.Parallel()
	s := open(t, "", store.Options{})
	f := file("a.hcl", declare(block("a", "a.example")))
	f.Row = nil
	if _, err := s.Apply(change(f), 1, noon, func(*store.Effect) error { return nil }); err == nil {
		t.Fatal("accepted")
	}
	if getProject(t, s, "a") != nil || s.Generation() != 0 || s.Err() != nil {
		t.Error("something was done")
	}
}

func TestViewIsOneMoment(t *testing.T) {
	t.Parallel()
	s := open(t, "", store.Options{})
	p := block("a", "a.example")
	apply(t, s, noon, file("a.hcl", declare(p)))
	err := s.View(func(v *store.View) error {
		p.Project.Name = "Changed"
		apply(t, s, noon, file("a.hcl", declare(p)))
		var got catalog.ProjectConfig
		_, err := v.Project(&got, p.Project.ID)
		if got.Project.Name != "The a" {
			t.Errorf("the view shows %q", got.Project.Name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := getProject(t, s, "a").Project.Name; got != "Changed" {
		t.Errorf("afterwards %q", got)
	}
}

func TestReopenKeepsAll(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	s := open(t, dir, store.Options{})
	p := block("a", "a.example", "*.a.example")
	apply(t, s, noon, file("a.hcl", declare(p)))
	if err := s.SetDecoderRevision(42); err != nil {
		t.Fatal(err)
	}
	before := dump(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != store.ErrClosed {
		t.Errorf("second Close: %v", err)
	}
	read := func(r *store.Reader) error { _, err := r.Domain(new(catalog.Domain), []byte("a.example")); return err }
	if err := s.Borrow(read); err == nil {
		t.Error("a closed store answers")
	}
	s = open(t, dir, store.Options{})
	if after := dump(t, s); !slices.Equal(before, after) {
		t.Errorf("before\n%s\nafter\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
	if v, err := s.DecoderRevision(); v != 42 || err != nil || s.Generation() != 1 {
		t.Errorf("revision %d, generation %d, %v", v, s.Generation(), err)
	}
}

// An id may end in any byte: the range of a project's domains ends where the next project's begin.
func TestDomainsOfEveryID(t *testing.T) {
	t.Parallel()
	s := open(t, "", store.Options{})
	for _, id := range []int64{0xff, 0x100, 0xffff, 0x10000, 1<<47 + 0xff, 1<<48 - 1} {
		p := block(fmt.Sprintf("p-%d", id))
		p.Project.ID = id
		for _, label := range []string{"a", "b"} {
			d := domain(&p, fmt.Sprintf("%s.p-%d.example", label, id))
			d.ProjectID = id
			p.Domains = append(p.Domains, d)
		}
		apply(t, s, noon, file(p.Project.Slug+".hcl", declare(p)))
	}
	err := s.EachProjectID(func(id int64) bool {
		count := 0
		err := s.View(func(v *store.View) error {
			return v.Domains(id, func(*catalog.Domain) bool { count++; return true })
		})
		if err != nil || count != 2 {
			t.Errorf("project %#x has %d domains, want 2, %v", id, count, err)
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
}
