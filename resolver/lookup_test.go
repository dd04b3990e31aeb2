package resolver_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/rowjson"
)

func TestLookups(t *testing.T) {
	t.Parallel()
	r := open(t, resolver.Options{})
	p := golden()
	plain := block("plain")
	apply(t, r, file("a.hcl", p, plain))

	got, err := r.ProjectByID(12)
	if err != nil || got.Slug != "acme" {
		t.Fatal(got, err)
	}
	if by, err := r.ProjectBySlug("acme"); err != nil || by.ID != 12 {
		t.Error(by, err)
	}
	if d, err := r.Domain(12, 34); err != nil || d.Name != "acme.example" {
		t.Error(d, err)
	}
	if s, err := r.ServiceSettings(12); err != nil || !s.MailEnabled || s.ID != 56 {
		t.Error(s, err)
	}
	if a, err := r.AuthSettings(12); err != nil || a.RegistrationMode != catalog.RegistrationInviteOnly {
		t.Error(a, err)
	}
	if c, err := r.SMTPConfig(12); err != nil || c.Host != "smtp.acme.example" {
		t.Error(c, err)
	}
	for what, err := range map[string]error{
		"project":           second(r.ProjectByID(13)),
		"slug":              second(r.ProjectBySlug("nobody")),
		"domain":            second(r.Domain(12, 35)),
		"domain of another": second(r.Domain(plain.Project.ID, 34)),
		"service settings":  second(r.ServiceSettings(13)),
		"auth settings":     second(r.AuthSettings(13)),
		"SMTP config":       second(r.SMTPConfig(plain.Project.ID)),
		"domains":           third(r.Domains(13, resolver.Query{})),
	} {
		if code(err) != catalog.CodeNotFound {
			t.Errorf("%s: %v, want NOT_FOUND", what, err)
		}
	}
	if rows, total, err := r.Domains(plain.Project.ID, resolver.Query{}); len(rows) != 0 || total != 0 || err != nil {
		t.Errorf("domains of a project without: %v %d %v", rows, total, err)
	}
	if b, err := r.LastGood("a.hcl"); string(b) != "bytes of a.hcl" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	if b, err := r.LastGood("b.hcl"); b != nil || err != nil {
		t.Errorf("%q, %v", b, err)
	}
}

func second[T any](_ T, err error) error        { return err }
func third[T, U any](_ T, _ U, err error) error { return err }

func TestRowsAreThePartsOfResolve(t *testing.T) {
	t.Parallel()
	p := golden()
	p.Project.CreatedAt, p.Project.UpdatedAt = noon, noon
	p.Domains[0].CreatedAt, p.Domains[0].UpdatedAt = noon, noon
	var parts map[string]json.RawMessage
	if err := json.Unmarshal([]byte(goldenNested), &parts); err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string][]byte{
		"project":         rowjson.AppendProject([]byte("x"), &p.Project),
		"matchedDomain":   rowjson.AppendDomain([]byte("x"), &p.Domains[0]),
		"serviceSettings": rowjson.AppendServiceSettings([]byte("x"), 12, &p.Service),
		"authSettings":    rowjson.AppendAuthSettings([]byte("x"), 12, &p.Auth),
	} {
		if want := "x" + string(parts[name]); string(got) != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	before := rowjson.ProjectETag(&p.Project)
	p.Project.UpdatedAt = noon.Add(time.Second)
	if rowjson.ProjectETag(&p.Project) != before {
		t.Error("the ETag depends on the times")
	}
	p.Project.Name = "Other"
	tags := map[string]bool{
		before: true, rowjson.ProjectETag(&p.Project): true, rowjson.DomainETag(&p.Domains[0]): true,
		rowjson.ServiceSettingsETag(12, &p.Service): true, rowjson.AuthSettingsETag(12, &p.Auth): true,
	}
	if len(tags) != 5 {
		t.Errorf("tags are not all different: %v", tags)
	}
}

func TestAppendString(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "plain", `"`, `\`, "a\nb\r\t\x00\x1f\x7f", "ü😀\u2028", `\"\`} {
		got := rowjson.AppendString(nil, s)
		var back string
		if err := json.Unmarshal(got, &back); err != nil || back != s {
			t.Errorf("%q became %s, which is %q, %v", s, got, back, err)
		}
	}
}

func TestLists(t *testing.T) {
	t.Parallel()
	r := open(t, resolver.Options{})
	var files []catalog.FileChange
	for i := range 25 {
		p := block(fmt.Sprintf("p%02d", i), fmt.Sprintf("d%d.example", i))
		p.Project.ID = int64(1000 - i)
		if i%2 == 0 {
			text := "even"
			p.Project.Description = &text
		}
		files = append(files, file(p.Project.Slug+".hcl", p))
	}
	apply(t, r, files...)

	check := func(q resolver.Query, wantTotal int, want ...string) {
		t.Helper()
		rows, total, err := r.Projects(q)
		if err != nil || total != wantTotal || len(rows) != len(want) {
			t.Errorf("%+v: %d rows of %d, %v, want %d of %d", q, len(rows), total, err, len(want), wantTotal)
			return
		}
		for i, slug := range want {
			if rows[i].Slug != slug {
				t.Errorf("%+v: row %d is %s, want %s", q, i, rows[i].Slug, slug)
			}
		}
	}
	check(resolver.Query{Page: 1, Limit: 3}, 25, "p24", "p23", "p22")
	check(resolver.Query{Page: 2, Limit: 3, Sort: "id"}, 25, "p21", "p20", "p19")
	check(resolver.Query{Page: 1, Limit: 2, Desc: true}, 25, "p00", "p01")
	check(resolver.Query{Page: 9, Limit: 3}, 25, "p00")
	check(resolver.Query{Page: 10, Limit: 3}, 25)
	check(resolver.Query{Page: 1 << 60, Limit: 100}, 25)
	check(resolver.Query{Limit: 2, Sort: "slug"}, 25, "p00", "p01")
	check(resolver.Query{Limit: 2, Sort: "name", Desc: true}, 25, "p24", "p23")
	check(resolver.Query{Limit: 2, Sort: "createdAt"}, 25, "p24", "p23") // equal: by id
	check(resolver.Query{Limit: 2, Sort: "description"}, 25, "p23", "p21")
	check(resolver.Query{Limit: 2, Sort: "description", Desc: true}, 25, "p24", "p22")
	check(resolver.Query{Limit: 5, IDs: []int64{999, 5, 997, 999}}, 2, "p03", "p01")
	check(resolver.Query{IDs: []int64{}}, 0)
	if rows, total, err := r.Projects(resolver.Query{}); len(rows) != 25 || total != 25 || err != nil || rows[0].ID != 976 {
		t.Errorf("all: %d of %d, %v", len(rows), total, err)
	}
	for _, sort := range []string{"settings", "ID", "password"} {
		for _, err := range []error{third(r.Projects(resolver.Query{Sort: sort})), third(r.Domains(1000, resolver.Query{Sort: sort}))} {
			e, ok := err.(*catalog.Error)
			if !ok || e.Code != catalog.CodeValidation || len(e.Problems) != 1 || e.Problems[0].Path != "sort" {
				t.Errorf("sort by %s: %v", sort, err)
			}
		}
	}
	n := 0
	if err := r.EachProject(func(p *catalog.Project) bool { n++; return n < 10 }); err != nil || n != 10 {
		t.Errorf("%d projects, %v", n, err)
	}
}

func TestListOfDomains(t *testing.T) {
	t.Parallel()
	r := open(t, resolver.Options{})
	p := block("p", "c.example", "a.example", "*.b.example")
	p.Domains[0].ID, p.Domains[1].ID, p.Domains[2].ID = 3, 1, 2
	p.Domains[2].Primary = true
	apply(t, r, file("p.hcl", p), file("q.hcl", block("q", "q.example")))
	check := func(q resolver.Query, want ...string) {
		t.Helper()
		rows, total, err := r.Domains(p.Project.ID, q)
		if err != nil || total != 3 || len(rows) != len(want) {
			t.Fatalf("%+v: %d of %d, %v", q, len(rows), total, err)
		}
		for i := range want {
			if rows[i].Name != want[i] {
				t.Errorf("%+v: row %d is %s, want %s", q, i, rows[i].Name, want[i])
			}
		}
	}
	check(resolver.Query{}, "a.example", "*.b.example", "c.example")
	check(resolver.Query{Sort: "domain", Desc: true, Limit: 2}, "c.example", "a.example")
	check(resolver.Query{Sort: "primary", Desc: true, Limit: 1}, "*.b.example")
	check(resolver.Query{Sort: "id", Page: 2, Limit: 2}, "c.example")
}

func TestKeys(t *testing.T) {
	r := open(t, resolver.Options{})
	if r.Keys().Len() != 0 || r.Keys().Lookup([]byte("abcdef")) != nil || r.Sealing() != nil || r.Defaults() != nil {
		t.Error("something out of nothing")
	}
	f := file("keys.hcl")
	f.Declared.Keys = []catalog.Key{
		{Name: "one", ID: "abcdef", Hash: [32]byte{1}, Allow: catalog.MayResolve, Projects: []string{"a"}},
		{Name: "two", ID: "ghijkl", Allow: catalog.MayRead},
	}
	f.Declared.Sealing = &catalog.Sealing{Require: true}
	apply(t, r, f, file("projects.hcl", numbered(1, "a"), numbered(2, "b")))
	old := r.Keys()
	k := old.Lookup([]byte("abcdef"))
	if k == nil || k.Name != "one" || k.Hash != [32]byte{1} || !k.Covers(1) || k.Covers(2) || k.EveryProject() {
		t.Errorf("%+v", k)
	}
	if k := old.Lookup([]byte("ghijkl")); k == nil || !k.Covers(2) || !k.EveryProject() {
		t.Errorf("%+v", k)
	}
	if s := r.Sealing(); s == nil || !s.Require {
		t.Errorf("%+v", s)
	}
	id := []byte("abcdef")
	if n := testing.AllocsPerRun(100, func() { r.Keys().Lookup(id) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	apply(t, r, gone("keys.hcl"))
	if r.Keys().Len() != 0 || r.Sealing() != nil || old.Len() != 2 {
		t.Error("a revoked key is still there, or an old set has changed")
	}
}

func TestOpenAgain(t *testing.T) {
	t.Parallel()
	testrig.Slow(t)
	dir := t.TempDir()
	r, err := resolver.Open(resolver.Options{DataDir: dir, CacheBytes: testCacheBytes, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	apply(t, r, file("a.hcl", block("a", "a.example")))
	if err := r.SetDecoderRevision(3); err != nil {
		t.Fatal(err)
	}
	tag := resolve(t, r, "a.example", resolver.Nested).ETag
	if _, err := resolver.Open(resolver.Options{DataDir: dir, CacheBytes: testCacheBytes, Logger: quiet}); err == nil {
		t.Fatal("opened twice")
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	r = open(t, resolver.Options{DataDir: dir})
	if a := resolve(t, r, "a.example", resolver.Nested); a.ETag != tag || r.Generation() != 1 {
		t.Errorf("tag %s, want %s; generation %d", a.ETag, tag, r.Generation())
	}
	if v, err := r.DecoderRevision(); v != 3 || err != nil {
		t.Error(v, err)
	}
	paths := 0
	if err := r.Files(func(path string, row *catalog.FileRow) bool {
		paths++
		return path == "a.hcl" && len(row.Refs) == 2
	}); err != nil || paths != 1 {
		t.Errorf("%d files, %v", paths, err)
	}
	if _, bad := r.Degraded(); bad || !r.Writable() {
		t.Error("degraded for no reason")
	}
}
