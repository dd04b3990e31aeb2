package configsrc_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fingerpost/configsrc"
	"fingerpost/configsrc/offline"
	"fingerpost/resolver/catalog"
)

const withProofs = `# Our customers.
project "acme" {
  name = "Acme" # the shop

  domain "new.acme.example" { verified = "pending" } # asked for on Monday
  domain "day.acme.example" {
    primary  = true
    verified = "2026-11-24" # seen
  }
  domain "plain.acme.example" {}
  domain "off.acme.example" { active = false }
}
`

var acme = catalog.DeriveProjectUUID("acme")

func codeOf(err error) catalog.Code {
	var e *catalog.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return catalog.Code(fmt.Sprint(err))
}

// Each write is a diff of one line, and is served and audited when it returns.
func TestSetVerified(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "acme.hcl"), withProofs)
	n := newNode(t, dir, nodeOptions{})
	want := withProofs
	f := func(domain, from, to, reason, old, line string, code catalog.Code) {
		t.Helper()
		if err := n.source.SetVerified(t.Context(), acme, domain, from, to, reason); err != nil {
			t.Fatalf("%s from %q to %q: %v", domain, from, to, err)
		}
		if strings.Count(want, old) != 1 {
			t.Fatalf("the test's file has %q not once", old)
		}
		want = strings.Replace(want, old, line, 1)
		if got := read(t, path); got != want {
			t.Errorf("%s from %q to %q: the file is\n%s\nwant\n%s", domain, from, to, got, want)
		}
		a := n.name(domain)
		if code != "" && a != string(code) || code == "" && a != "Acme" {
			t.Errorf("%s to %q answers %s", domain, to, a)
		}
	}
	f("new.acme.example", "pending", "2026-11-24", "", `{ verified = "pending" } # asked`, `{ verified = "2026-11-24" } # asked`, "")
	f("day.acme.example", "2026-11-24", "lost", "gone for 72h", `"2026-11-24" # seen`, `"lost" # seen`, catalog.CodeDomainNotVerified)
	f("day.acme.example", "lost", "2026-11-25", "", `"lost" # seen`, `"2026-11-25" # seen`, "")
	f("plain.acme.example", "", "2026-11-24", "", `"plain.acme.example" {}`, `"plain.acme.example" { verified = "2026-11-24" }`, "")
	f("off.acme.example", "", "2026-11-24", "", `{ active = false }`, "{\n    active   = false\n    verified = \"2026-11-24\"\n  }", catalog.CodeDomainNotVerified)
	page, err := n.resolver.Audit(catalog.AuditQuery{Page: 1, Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range page.Entries {
		if e.Door != catalog.DoorDNS || e.Actor != "" || e.Key != "" {
			continue
		}
		got = append(got, e.Action+" "+e.Object)
	}
	if text := strings.Join(got, ", "); text != "domain.verify off.acme.example, domain.verify plain.acme.example, "+
		"domain.verify day.acme.example, domain.lost day.acme.example, domain.verify new.acme.example" {
		t.Errorf("the trail has %s", text)
	}
}

// What the caller has decided by must still hold: a person's value stays, also one that nobody has looked at yet.
func TestSetVerifiedLetsPeopleWin(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "acme.hcl"), withProofs)
	n := newNode(t, dir, nodeOptions{})
	f := func(project catalog.UUID, domain, from, to string, want catalog.Code) {
		t.Helper()
		before := read(t, path)
		if err := n.source.SetVerified(t.Context(), project, domain, from, to, "x"); codeOf(err) != want {
			t.Errorf("%s from %q to %q: %v, want %s", domain, from, to, err, want)
		}
		if got := read(t, path); got != before {
			t.Errorf("%s from %q to %q: the file is\n%s", domain, from, to, got)
		}
	}
	f(acme, "new.acme.example", "", "2026-11-24", catalog.CodeConflict)
	f(acme, "new.acme.example", "2026-11-24", "lost", catalog.CodeConflict)
	f(acme, "plain.acme.example", "pending", "2026-11-24", catalog.CodeConflict)
	f(acme, "gone.acme.example", "pending", "2026-11-24", catalog.CodeNotFound)
	f(catalog.DeriveProjectUUID("other"), "new.acme.example", "pending", "2026-11-24", catalog.CodeNotFound)
	replace(t, path, strings.Replace(withProofs, `"pending"`, `"lost"`, 1))
	f(acme, "new.acme.example", "pending", "2026-11-24", catalog.CodeConflict)
	replace(t, path, strings.Replace(withProofs, `"new.acme.example"`, `"renamed.acme.example"`, 1))
	f(acme, "new.acme.example", "pending", "2026-11-24", catalog.CodeNotFound)
	replace(t, path, withProofs+"}")
	f(acme, "new.acme.example", "pending", "2026-11-24", catalog.CodeFileInvalid)

	replace(t, path, withProofs)
	for _, to := range []string{"", "pending", "yes", "2026-02-30", "9999-12-31"} {
		if err := n.source.SetVerified(t.Context(), acme, "new.acme.example", "pending", to, ""); err == nil || read(t, path) != withProofs {
			t.Errorf("to %q: %v", to, err)
		}
	}
}

// One of many that decide by the same value makes its write, while a client renames the project back and forth.
func TestSetVerifiedAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "acme.hcl"), withProofs)
	n := newNode(t, dir, nodeOptions{})
	var made atomic.Int64
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			switch err := n.source.SetVerified(t.Context(), acme, "new.acme.example", "pending", fmt.Sprintf("2026-11-%02d", i+1), ""); {
			case err == nil:
				made.Add(1)
			case codeOf(err) != catalog.CodeConflict:
				t.Error(err)
			}
		})
		all.Go(func() {
			if err := updateProject(t.Context(), n.source, acme, func(p *catalog.ProjectConfig) error {
				p.Project.Name = fmt.Sprint("Acme ", i)
				return nil
			}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if text := read(t, filepath.Join(dir, "acme.hcl")); made.Load() != 1 || !strings.Contains(text, `domain "new.acme.example" { verified = "2026-11-0`) {
		t.Errorf("%d writes were made; the file is\n%s", made.Load(), text)
	}
}

func TestSetVerifiedNeedsAWriter(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "acme.hcl"), withProofs)
	n := newNode(t, dir, nodeOptions{readOnly: true})
	e := newEdge(t, "")
	for what, s := range map[string]*configsrc.Source{"read-only": n.source, "edge": e.source} {
		if err := s.SetVerified(t.Context(), acme, "new.acme.example", "pending", "2026-11-24", ""); codeOf(err) != catalog.CodeReadOnly {
			t.Errorf("%s: %v", what, err)
		}
	}
	if read(t, path) != withProofs {
		t.Error("the file has changed")
	}
}

// A day that has not begun in UTC is a warning, until it begins: the service itself writes one while its clock is ahead.
// Its file is served, takes writes, and answers as proven, here, on a fresh store and on an edge.
func TestVerifiedTomorrow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "acme.hcl"), withProofs)
	var clock atomic.Pointer[time.Time]
	set := func(text string) {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		clock.Store(&at)
	}
	set("2026-11-28T01:59:59+02:00") // the 27th in UTC
	a := &authority{node: &node{T: t, dir: dir, resolver: openResolver(t, "")}}
	a.source = configsrc.New(configsrc.Options{Dir: dir, Sink: a.resolver, Logger: slog.New(slog.DiscardHandler), MaxDelete: 1,
		Hooks: configsrc.Hooks{Now: func() time.Time { return *clock.Load() }, OnCommit: func(c catalog.TreeChange) {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.told = append(a.told, c)
		}}})
	a.ctx, a.cancel = context.WithCancel(context.Background())
	a.load()
	a.run()
	t.Cleanup(func() {
		a.cancel()
		a.running.Wait()
		if err := a.resolver.Close(); err != nil {
			t.Error(err)
		}
	})
	replace(t, path, strings.NewReplacer(`"pending"`, `"2026-11-27"`, `"2026-11-24"`, `"2026-11-28"`).Replace(withProofs))
	a.problem("acme.hcl", "verified: the day was in the future when the file was read, on 2026-11-27 (UTC)")
	a.untilName("new.acme.example", "Acme")
	a.untilName("day.acme.example", "Acme")
	if st := a.source.Status(); st.Errors > 0 || st.Warnings != 1 {
		t.Errorf("%d errors, %d warnings: %v", st.Errors, st.Warnings, st.Problems)
	}
	if err := a.source.SetVerified(t.Context(), acme, "new.acme.example", "2026-11-27", "lost", ""); err != nil {
		t.Errorf("a write into a file with such a day: %v", err)
	}
	fresh := newNode(t, dir, nodeOptions{readOnly: true}) // on a clock that may be behind, too
	if got := fresh.name("day.acme.example"); got != "Acme" {
		t.Errorf("a fresh store answers %s", got)
	}
	set("2026-11-28T02:00:00+02:00")
	replace(t, path, read(t, path)+"# read on the next day\n")
	if err := a.source.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p := a.source.Status().Problems; len(p) > 0 {
		t.Errorf("problems stay: %v", p)
	}
	e := newEdge(t, "")
	whole := a.whole()
	for i := range whole.Put { // as if its authority were a day ahead
		whole.Put[i].Bytes = []byte(strings.ReplaceAll(string(whole.Put[i].Bytes), "2026-11-27", "9998-12-31"))
	}
	if err := e.apply(whole); err != nil {
		t.Fatal(err)
	}
	for _, domain := range []string{"new.acme.example", "day.acme.example", "plain.acme.example", "off.acme.example"} {
		if x, y := a.name(domain), e.name(domain); x != y {
			t.Errorf("%s: the edge answers %s, the authority %s", domain, y, x)
		}
	}
}

// A file with a block of the defaults in a project is refused with the place where it belongs; what is served stays.
func TestVerificationInAProject(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "acme.hcl"), withProofs)
	n := newNode(t, dir, nodeOptions{})
	replace(t, path, strings.Replace(withProofs, `name = "Acme"`, "name = \"Acme\"\n  verification { require = \"none\" }", 1))
	n.problem("acme.hcl", "a verification block cannot stand here it stands inside a defaults block")
	if got := n.name("day.acme.example"); got != "Acme" {
		t.Errorf("it answers %s", got)
	}
	checked, err := offline.Check(dir)
	if err != nil || len(checked.Problems) != 1 || checked.Problems[0].Start.Line != 4 {
		t.Errorf("validate finds %+v, %v", checked.Problems, err)
	}
}

// The defaults of all projects decide about domains without the line, on an edge, too, from one generation to the next.
func TestRequireReachesEdges(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "acme.hcl"), withProofs)
	a := newAuthority(t, dir, "")
	e := newEdge(t, "")
	a.take()
	if err := e.apply(a.whole()); err != nil {
		t.Fatal(err)
	}
	domains := []string{"new.acme.example", "day.acme.example", "plain.acme.example", "off.acme.example"}
	same(a, e, domains...)
	defaults := filepath.Join(dir, "defaults.hcl")
	for _, step := range []struct{ require, plain string }{{"all", "DOMAIN_NOT_VERIFIED"}, {"project-keys", "Acme"}, {"all", "DOMAIN_NOT_VERIFIED"}} {
		replace(t, defaults, "defaults {\n  verification { require = \""+step.require+"\" }\n}\n")
		a.until("the edge follows "+step.require, func() bool {
			for _, c := range a.take() {
				if err := e.apply(c); err != nil {
					t.Fatal(err)
				}
			}
			return e.name("plain.acme.example") == step.plain && a.resolver.Position() == e.resolver.Position()
		})
		same(a, e, domains...)
	}
}
