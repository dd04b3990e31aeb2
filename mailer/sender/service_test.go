package sender_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/mailer/sender"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// A world is a DNS of which a test says what it has, and the clock.
type world struct {
	mu      sync.Mutex
	now     time.Time
	records map[string][]string // by kind and name
	fails   error
	hold    chan struct{}  // questions wait for it; nil: they do not
	asked   map[string]int // checks begun, by project
}

func (w *world) set(key string, values ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.records[key] = values
}

func (w *world) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fails = err
}

func (w *world) forward(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

func (w *world) Ask(kind, name string) ([]string, bool, error) {
	w.mu.Lock()
	hold := w.hold
	w.mu.Unlock()
	if hold != nil {
		<-hold
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.records[kind+" "+name], true, w.fails
}

func (w *world) lookup(_ context.Context, project string, _ time.Duration) (sender.DNS, func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked[project]++
	return w, func() {}
}

func (w *world) checks(p *catalog.ProjectConfig) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked[p.Project.UUID.String()]
}

// A rig is a Service on a resolver in memory.
type rig struct {
	*world
	*sender.Service
	t        *testing.T
	resolver *resolver.Resolver
}

func newRig(t *testing.T) *rig {
	t.Helper()
	w := &world{now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), asked: map[string]int{}, records: map[string][]string{
		"MX acme.example": {"10 mx.acme.example"}, "A mx.acme.example": {"9.9.9.9"},
		"TXT acme.example": {"v=spf1 a -all"}, "A acme.example": {"9.9.9.9"}, "TXT _dmarc.acme.example": {"v=DMARC1; p=reject"}}}
	r := &rig{world: w, t: t}
	var err error
	r.resolver, err = resolver.Open(resolver.Options{CacheBytes: 1 << 20, Logger: slog.New(slog.DiscardHandler), Now: r.time})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.resolver.Close() })
	r.start()
	return r
}

func (r *rig) time() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

func (r *rig) start() {
	r.Service = sender.New(sender.Options{Projects: r.resolver, Ledger: r.resolver, Lookup: r.lookup, Logger: slog.New(slog.DiscardHandler), Now: r.time})
	r.Load()
}

// project declares a project that sends mail.
func (r *rig) project(slug string, change ...func(p *catalog.ProjectConfig)) *catalog.ProjectConfig {
	r.t.Helper()
	u := catalog.DeriveProjectUUID(slug)
	p := catalog.ProjectConfig{Project: catalog.Project{ID: catalog.DeriveID(catalog.KindProject, u), UUID: u, Name: slug, Slug: slug, Status: catalog.StatusActive},
		Service: catalog.NewServiceSettings(), Auth: catalog.NewAuthSettings(),
		SMTP: &catalog.SMTPConfig{UUID: catalog.DeriveUUID(catalog.KindSMTPConfig, u), Host: "smtp.acme.example", FromEmail: "hello@acme.example", Active: true}}
	p.Service.MailEnabled = true
	for _, f := range change {
		f(&p)
	}
	_, err := r.resolver.Apply(&catalog.Change{Files: []catalog.FileChange{{Path: slug + ".hcl",
		Declared: &catalog.Declared{Projects: []catalog.ProjectConfig{p}}, Bytes: []byte(slug), Row: &catalog.FileRow{Stamp: catalog.Stamp{Size: 1, ModTime: r.time()}}}}})
	if err != nil {
		r.t.Fatal(err)
	}
	return &p
}

func (r *rig) want(p *catalog.ProjectConfig, state string, rests bool) sender.Result {
	r.t.Helper()
	result, wait, err := r.Check(r.t.Context(), p.Project.ID, netip.Addr{})
	if err != nil || result.State != state || (wait > 0) != rests {
		r.t.Errorf("%s, wait %v, %v: %+v; want %s", result.State, wait, err, result.Lines, state)
	}
	return result
}

// entries returns the entries of the trail about senders, the latest first.
func (r *rig) entries() (list []string) {
	r.t.Helper()
	page, err := r.resolver.Audit(catalog.AuditQuery{Action: catalog.AuditSenderWorse, Page: 1, Limit: 10})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, e := range page.Entries {
		list = append(list, fmt.Sprintf("%s %s %v > %v: %v", e.Slug, e.Object, e.Changes[0].Before, e.Changes[0].After, e.Changes[1].After))
	}
	return list
}

func (r *rig) worse() string {
	list, more := r.WorseOnes(10)
	var all []string
	for _, w := range list {
		all = append(all, w.Slug+" "+w.Was+" > "+w.Is)
	}
	return fmt.Sprint(all, more)
}

// TestWorse: a state that has got worse is told once, until it is as good as before; what DNS does not answer changes
// nothing, and a restart forgets nothing.
func TestWorse(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.project("acme")
	step := func(what, state, worse string, entries int) {
		t.Helper()
		r.forward(time.Minute)
		r.want(p, state, false)
		if got := r.worse(); got != worse {
			t.Errorf("%s: %s", what, got)
		}
		if n := len(r.entries()); n != entries {
			t.Errorf("%s: %d entries", what, n)
		}
	}
	step("the first check", "ok", "[] 0", 0)
	r.fail(errors.New("time-out"))
	step("DNS is away", "unknown", "[] 0", 0)
	r.fail(nil)
	r.set("TXT _dmarc.acme.example")
	step("a warning", "warning", "[acme ok > warning] 0", 1)
	r.fail(errors.New("time-out"))
	step("DNS is away again", "unknown", "[acme ok > warning] 0", 1)
	r.fail(nil)
	r.start()
	step("the same after a restart", "warning", "[acme ok > warning] 0", 1)
	r.set("TXT _dmarc.acme.example", "v=DMARC1; p=reject")
	r.set("TXT acme.example")
	step("another warning", "warning", "[acme ok > warning] 0", 1)
	r.set("TXT acme.example", "v=spf1 a -all")
	step("well again", "ok", "[] 0", 1)
	r.set("TXT acme.example", "v=spf1 a +all")
	step("a second time", "warning", "[acme ok > warning] 0", 2)
	if e := r.entries()[0]; e != "acme hello@acme.example ok > warning: the SPF record ends with +all: everybody may send as acme.example" {
		t.Errorf("%s", e)
	}
	r.project("acme", func(p *catalog.ProjectConfig) { p.Service.MailEnabled = false })
	if got := r.worse(); got != "[] 0" {
		t.Errorf("a project that sends no mail: %s", got)
	}
	if err := r.Walk(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.project("acme")
	if got := r.worse(); got != "[] 0" {
		t.Errorf("after its note is gone: %s", got)
	}
}

// TestFirstAnswer: what DNS does not tell at first is not good, so its first answer makes nothing worse.
func TestFirstAnswer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.set("TXT _dmarc.acme.example")
	r.set("TXT acme.example", "v=spf1 a +all")
	r.fail(errors.New("time-out"))
	p := r.project("acme")
	r.want(p, "unknown", false)
	r.forward(time.Minute)
	r.fail(nil)
	r.want(p, "warning", false)
	if got := r.worse(); got != "[] 0" || r.entries() != nil {
		t.Errorf("%s, %q", got, r.entries())
	}
	r.forward(time.Minute)
	r.set("TXT acme.example")
	r.set("TXT _dmarc.acme.example", "v=DMARC1; p=reject")
	r.project("acme", func(p *catalog.ProjectConfig) { p.SMTP.DKIMSelectors = []string{"s1"} })
	r.want(p, "error", false)
	if got := r.worse(); got != "[acme warning > error] 0" || len(r.entries()) != 1 {
		t.Errorf("%s, %q", got, r.entries())
	}
}

// TestRest: within ten seconds the last result is answered, unless the settings have changed, an address is asked for, or
// the clock was set back.
func TestRest(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.project("acme")
	r.want(p, "ok", false)
	r.set("TXT acme.example")
	r.forward(9 * time.Second)
	r.want(p, "ok", true)
	if result, _, err := r.Check(t.Context(), p.Project.ID, netip.MustParseAddr("9.9.9.9")); err != nil || result.State != "warning" {
		t.Errorf("with an address: %+v, %v", result, err)
	}
	r.want(p, "ok", true)
	r.project("acme", func(p *catalog.ProjectConfig) { p.SMTP.DKIMSelectors = []string{"s1"} })
	r.want(p, "error", false)
	r.forward(-time.Hour)
	r.want(p, "error", false)
	if n := r.checks(p); n != 4 {
		t.Errorf("%d checks", n)
	}
}

// TestOneClick: a project with a template that has a category is told what its relay must sign, at once when that changes,
// and never as something that got worse.
func TestOneClick(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	f := func(noted bool, list ...catalog.Template) {
		t.Helper()
		p := r.project("acme", func(p *catalog.ProjectConfig) {
			for _, x := range list {
				x.UUID, x.ProjectID = catalog.DeriveTemplateUUID(p.Project.UUID, x.Code), p.Project.ID
				x.ID = catalog.DeriveID(catalog.KindTemplate, x.UUID)
				x.Name, x.SubjectTemplate, x.BodyText = x.Code, "Hi", "Hello"
				p.Templates = append(p.Templates, x)
			}
		})
		result := r.want(p, "ok", false)
		if got := slices.ContainsFunc(result.Lines, func(l sender.Line) bool { return strings.Contains(l.Message, "List-Unsubscribe-Post") }); got != noted {
			t.Errorf("%+v: %+v", list, result.Lines)
		}
	}
	f(false)
	f(true, catalog.Template{Code: "RESET", Active: true}, catalog.Template{Code: "NEWS", Active: true, Category: "news"})
	f(false, catalog.Template{Code: "RESET", Active: true}, catalog.Template{Code: "NEWS", Category: "news"})
	if got := r.worse(); got != "[] 0" || r.entries() != nil {
		t.Errorf("%s, %q", got, r.entries())
	}
}

// TestRefusals: a project without a sender, one that does not exist, and a node that checks nothing.
func TestRefusals(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.project("acme", func(p *catalog.ProjectConfig) { p.SMTP = nil })
	f := func(s *sender.Service, id int64, code catalog.Code) {
		t.Helper()
		_, _, err := s.Check(t.Context(), id, netip.Addr{})
		if e := new(catalog.Error); !errors.As(err, &e) || e.Code != code {
			t.Errorf("%v, want %s", err, code)
		}
	}
	f(r.Service, p.Project.ID, catalog.CodeSMTPNotConfigured)
	f(r.Service, 12345, catalog.CodeNotFound)
	p = r.project("acme")
	f(sender.New(sender.Options{Projects: r.resolver, Ledger: r.resolver}), p.Project.ID, catalog.CodeReadOnly)
}

// TestDaily: projects that send mail are checked daily, and no others.
func TestDaily(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.project("acme")
	off := r.project("off", func(p *catalog.ProjectConfig) { p.Service.MailEnabled = false })
	stopped := r.project("stopped", func(p *catalog.ProjectConfig) { p.SMTP.Active = false })
	suspended := r.project("suspended", func(p *catalog.ProjectConfig) { p.Project.Status = catalog.StatusSuspended })
	for hour := range 49 {
		if err := r.Walk(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n, want := r.checks(p), hour/24+1; n != want {
			t.Errorf("after %d h: %d checks, want %d", hour, n, want)
		}
		r.forward(time.Hour)
	}
	r.fail(errors.New("time-out"))
	r.forward(24 * time.Hour)
	for range 5 {
		if err := r.Walk(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.forward(time.Hour)
	}
	if n := r.checks(p); n != 8 {
		t.Errorf("%d checks where DNS did not answer", n)
	}
	for _, other := range []*catalog.ProjectConfig{off, stopped, suspended} {
		if n := r.checks(other); n != 0 {
			t.Errorf("%s: %d checks", other.Project.Slug, n)
		}
	}
}

// TestTogether: all who ask for a project at the same time wait for one check, one who gives up gets an answer, and a
// project that asks for much leaves places for others.
func TestTogether(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p, other := r.project("acme"), r.project("other")
	hold := make(chan struct{})
	r.mu.Lock()
	r.hold = hold
	r.mu.Unlock()
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if result, _, err := r.Check(t.Context(), p.Project.ID, netip.Addr{}); err != nil || result.State != "ok" {
				t.Errorf("%+v, %v", result, err)
			}
		})
	}
	testrig.Eventually(t, "the check", func() bool { return r.checks(p) == 1 })
	for i := range 12 { // one check for each address
		all.Go(func() { _, _, _ = r.Check(t.Context(), p.Project.ID, netip.AddrFrom4([4]byte{9, 9, 9, byte(i)})) })
	}
	all.Go(func() { _, _, _ = r.Check(t.Context(), other.Project.ID, netip.Addr{}) })
	testrig.Eventually(t, "another project's", func() bool { return r.checks(other) == 1 })
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := r.Check(gone, p.Project.ID, netip.Addr{}); err == nil {
		t.Error("one who has given up waits")
	}
	close(hold)
	all.Wait()
}
