package resolver_test

import (
	"fmt"
	"regexp"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// A world changes everything that an answer can depend on, from version to version.
type world struct {
	acknowledged atomic.Int64 // the last version whose Apply has returned
	checks       atomic.Int64 // number of checked answers
}

func (w *world) files(v int64) []catalog.FileChange {
	p := block("p", "p.example", "*.wild.test")
	p.Project.Name = fmt.Sprint("v", v)
	d := file("defaults.hcl")
	d.Declared.Defaults = &catalog.Defaults{Service: &catalog.ServiceSettings{AuditRetentionDays: int(v), Said: catalog.FieldSet(0).With(5)}}
	other := block("other", "stays.example")
	other.Project.Name = fmt.Sprint("v", v)
	if flipped(v) {
		other.Domains = append(other.Domains, block("other", "x.wild.test", "flips.example", "*.flips.test").Domains...)
	}
	return []catalog.FileChange{file("p.hcl", p), file("other.hcl", other), d}
}

// flipped returns in which versions the flipping names exist. They stay for two versions: a reader that knows only that
// one of two versions was in force then sometimes knows what it must see.
func flipped(v int64) bool { return v/2%2 == 0 }

var (
	nameVersion = regexp.MustCompile(`"name":"v(\d+)"`)
	daysVersion = regexp.MustCompile(`"auditRetentionDays":(\d+)`)
)

// check fails when the answer is of a version before least.
func (w *world) check(t *testing.T, r *resolver.Resolver, name string, form resolver.Form) {
	defer w.checks.Add(1)
	least := w.acknowledged.Load()
	a, err := r.Resolve([]byte(name), form)
	if err != nil {
		t.Error(err)
		return
	}
	atMost := w.acknowledged.Load() + 1
	read := func(re *regexp.Regexp) int64 {
		m := re.FindStringSubmatch(a.Data)
		if m == nil {
			return least
		}
		v, _ := strconv.ParseInt(m[1], 10, 64)
		return v
	}
	v := read(nameVersion)
	if v < least || v > atMost {
		t.Errorf("%s is of version %d, %d to %d had to be", name, v, least, atMost)
	}
	if form == resolver.Flat && len(a.Data) > 0 {
		// The project and the defaults are from the same moment.
		if days := read(daysVersion); days != v {
			t.Errorf("%s: project of version %d with defaults of %d", name, v, days)
		}
	}
	var flips bool
	switch name {
	case "flips.example", "a.flips.test":
		flips = a.Code == ""
	case "x.wild.test":
		flips = a.Slug == "other"
	default:
		return
	}
	for u := least; u <= atMost; u++ {
		if flipped(u) == flips {
			return
		}
	}
	t.Errorf("%s: %q %q in versions %d to %d", name, a.Slug, a.Code, least, atMost)
}

// TestNeverStale runs readers against a writer: nobody sees a version older than one acknowledged before the request,
// nor a mixture of two.
func TestNeverStale(t *testing.T) {
	t.Parallel()
	versions := int64(testrig.Size(t, 3000, 400))
	if testrig.Race {
		versions = 400
	}
	for name, cacheBytes := range map[string]int64{"roomy": 0, "tight": 4000} {
		t.Run(name, func(t *testing.T) {
			r := open(t, resolver.Options{CacheBytes: cacheBytes})
			w := new(world)
			apply(t, r, w.files(1)...)
			w.acknowledged.Store(1)
			names := []string{"p.example", "y.wild.test", "x.wild.test", "stays.example", "flips.example", "a.flips.test", "nobody.test"}
			done := make(chan struct{})
			var wg sync.WaitGroup
			for i := range 4 {
				wg.Go(func() {
					for n := i; ; n++ {
						select {
						case <-done:
							return
						default:
							w.check(t, r, names[n%len(names)], resolver.Form(n/len(names)%2))
							runtime.Gosched() // lets the writer run, even on one processor
						}
					}
				})
			}
			for v := int64(2); v <= versions; v++ {
				if _, err := r.Apply(&catalog.Change{Files: w.files(v)}); err != nil {
					t.Error(err)
					break
				}
				w.acknowledged.Store(v)
				for least := w.checks.Load() + 8; w.checks.Load() < least; { // each version is requested
					runtime.Gosched()
				}
				if v%16 == 0 {
					w.check(t, r, "p.example", resolver.Flat) // the writer's own next request
				}
			}
			close(done)
			wg.Wait()
			if m := r.Metrics(); m.Misses == 0 || cacheBytes == 0 && m.Hits == 0 {
				t.Errorf("nothing was tried: %+v", m)
			}
		})
	}
}

// TestEachStamp changes one thing at a time, so that no other stamp hides one that does not move.
func TestEachStamp(t *testing.T) {
	t.Parallel()
	base := func() (catalog.ProjectConfig, catalog.FileChange) {
		return block("p", "a.example", "b.example", "*.w.example"), file("other.hcl", block("o", "o.example"))
	}
	defaults := file("other.hcl", block("o", "o.example"))
	defaults.Declared.Defaults = &catalog.Defaults{Auth: &catalog.AuthSettings{TwoFactorRequired: true, Said: catalog.FieldSet(0).With(5)}}
	for _, c := range []struct {
		what, ask string
		change    func(p *catalog.ProjectConfig, other *catalog.FileChange)
	}{
		{"a name goes", "b.example", func(p *catalog.ProjectConfig, _ *catalog.FileChange) {
			p.Domains = append(p.Domains[:1:1], p.Domains[2])
		}},
		{"a name comes", "new.example", func(p *catalog.ProjectConfig, _ *catalog.FileChange) {
			p.Domains = append(p.Domains, block("p", "new.example").Domains...)
		}},
		{"a name comes under a wildcard", "x.w.example", func(p *catalog.ProjectConfig, _ *catalog.FileChange) {
			p.Domains = append(p.Domains, block("p", "x.w.example").Domains...)
		}},
		{"a name is switched off", "a.example", func(p *catalog.ProjectConfig, _ *catalog.FileChange) { p.Domains[0].Active = false }},
		{"a name changes hands", "a.example", func(p *catalog.ProjectConfig, other *catalog.FileChange) {
			p.Domains = p.Domains[1:]
			*other = file("other.hcl", block("o", "o.example", "a.example"))
		}},
		{"a wildcard goes", "x.w.example", func(p *catalog.ProjectConfig, _ *catalog.FileChange) { p.Domains = p.Domains[:2] }},
		{"a longer wildcard comes", "x.y.w.example", func(p *catalog.ProjectConfig, _ *catalog.FileChange) {
			p.Domains = append(p.Domains, block("p", "*.y.w.example").Domains...)
		}},
		{"a wildcard comes", "x.new.example", func(p *catalog.ProjectConfig, _ *catalog.FileChange) {
			p.Domains = append(p.Domains, block("p", "*.new.example").Domains...)
		}},
		{"the project's name", "a.example", func(p *catalog.ProjectConfig, _ *catalog.FileChange) { p.Project.Name = "Other" }},
		{"the project's settings", "x.w.example", func(p *catalog.ProjectConfig, _ *catalog.FileChange) { p.Service.MailEnabled = true }},
		{"the project is suspended", "a.example", func(p *catalog.ProjectConfig, _ *catalog.FileChange) { p.Project.Status = catalog.StatusSuspended }},
		{"the slug", "a.example", func(p *catalog.ProjectConfig, _ *catalog.FileChange) { p.Project.Slug = "renamed" }},
		{"the defaults", "a.example", func(_ *catalog.ProjectConfig, other *catalog.FileChange) { *other = defaults }},
		{"all goes", "a.example", func(p *catalog.ProjectConfig, _ *catalog.FileChange) { *p = block("q", "q.example") }},
	} {
		r := open(t, resolver.Options{})
		p, other := base()
		apply(t, r, file("p.hcl", p), other)
		say := func(a *resolver.Answer) string { return fmt.Sprintf("%s %s %s", a.Code, a.Slug, a.ETag) }
		before := say(resolve(t, r, c.ask, resolver.Nested))
		r.Settle()
		reads := r.Metrics().StoreReads
		if again := say(resolve(t, r, c.ask, resolver.Nested)); again != before || r.Metrics().StoreReads != reads {
			t.Fatalf("%s: not cached at first", c.what)
		}
		c.change(&p, &other)
		apply(t, r, file("p.hcl", p), other)
		after := say(resolve(t, r, c.ask, resolver.Nested))
		fresh := open(t, resolver.Options{})
		apply(t, fresh, file("p.hcl", p), other)
		if want := say(resolve(t, fresh, c.ask, resolver.Nested)); after != want || after == before {
			t.Errorf("%s: %s\nis %s\nwant %s\nwas %s", c.what, c.ask, after, want, before)
		}
	}
}
