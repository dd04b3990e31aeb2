package api_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"fingerpost/api"
	"fingerpost/api/platform"
	"fingerpost/configsrc/verify/dcv"
	"fingerpost/resolver/catalog"
)

const acmeVerification = "/api/platform/projects/1/domains/1000/verification"

// A script is a Verifier that says what a test wants.
type script struct {
	mu        sync.Mutex // guards the fields below
	subjects  []dcv.Subject
	checks    int
	wait      time.Duration // Retry-After
	err       error
	standings []platform.Standing
	answer    *catalog.VerificationView // nil: that of a domain that was never checked
}

func (s *script) view(of dcv.Subject) (catalog.VerificationView, error) {
	s.subjects = append(s.subjects, of)
	if s.answer != nil {
		return *s.answer, s.err
	}
	return catalog.VerificationView{Ownership: catalog.OwnershipView{State: dcv.Pending}, Pointing: catalog.PointingView{State: dcv.Unknown},
		Certificate: catalog.CertificateView{State: dcv.Unknown}}, s.err
}

func (s *script) View(_ context.Context, of dcv.Subject) (catalog.VerificationView, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.view(of)
}

func (s *script) Check(ctx context.Context, of dcv.Subject) (catalog.VerificationView, time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.checks++
	if until, limited := ctx.Deadline(); !limited || time.Until(until) > 10*time.Second {
		return catalog.VerificationView{}, 0, context.DeadlineExceeded
	}
	v, err := s.view(of)
	return v, s.wait, err
}

func (s *script) Each(yield func(platform.Standing) bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.standings {
		if !yield(st) {
			break
		}
	}
	return s.err
}

func (s *script) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// asked returns the subjects so far, and the number of checks among the calls.
func (s *script) asked() ([]dcv.Subject, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.subjects), s.checks
}

func (s *script) made() int {
	_, checks := s.asked()
	return checks
}

func startVerified(t *testing.T) (*house, *script) {
	s := &script{}
	return start(t, func(o *api.Options) { o.Config.Verifier = s }), s
}

// The subject is the domain of the path with its project's uuid, for both calls.
func TestVerification(t *testing.T) {
	t.Parallel()
	h, s := startVerified(t)
	const none = `"data":{"ready":false,"ownership":{"state":"pending","since":null,"spreading":false,"misses":0},`
	got := h.ask("GET", acmeVerification, h.onlyRead)
	got.check(t, 200, "")
	checked := h.ask("POST", acmeVerification+"/check", h.all)
	checked.check(t, 200, "")
	for _, a := range []*answer{got, checked} {
		if !strings.Contains(string(a.body), none) || a.Header.Get("Cache-Control") != "no-store" || a.Header.Get("Retry-After") != "" {
			t.Errorf("%v %s", a.Header, a.body)
		}
	}
	want := dcv.Subject{Project: catalog.DeriveProjectUUID("acme"), Name: "shop.acme.example"}
	if subjects, checks := s.asked(); len(subjects) != 2 || subjects[0] != want || subjects[1] != want || checks != 1 {
		t.Errorf("asked about %+v, %d checks; want %+v", subjects, checks, want)
	}
	s.set(func() { s.wait = 6500 * time.Millisecond })
	again := h.ask("POST", acmeVerification+"/check", h.all)
	if again.check(t, 200, ""); again.Header.Get("Retry-After") != "7" {
		t.Errorf("soon after the last check: Retry-After %q", again.Header.Get("Retry-After"))
	}
	h.ask("HEAD", acmeVerification, h.onlyRead).check(t, 200, "")
}

// Nobody learns of, or has a check made of, a domain that the key does not cover, or of one that is another project's.
func TestVerificationRefused(t *testing.T) {
	t.Parallel()
	h, s := startVerified(t)
	const globex, mixed = "/api/platform/projects/2/domains/2000/verification", "/api/platform/projects/1/domains/2000/verification"
	refused := func(method, path, key string, status int, code string) {
		t.Helper()
		h.ask(method, path, key).check(t, status, code)
	}
	for _, call := range []struct{ method, rest string }{{"GET", ""}, {"POST", "/check"}} {
		refused(call.method, acmeVerification+call.rest, "", 401, "UNAUTHORIZED")
		refused(call.method, acmeVerification+call.rest, h.revoked, 401, "UNAUTHORIZED")
		refused(call.method, acmeVerification+call.rest, h.onlyMail, 403, "FORBIDDEN")
		refused(call.method, globex+call.rest, h.acme, 403, "FORBIDDEN")
		refused(call.method, mixed+call.rest, h.acme, 404, "NOT_FOUND")
		refused(call.method, mixed+call.rest, h.all, 404, "NOT_FOUND")
		refused(call.method, "/api/platform/projects/9/domains/1000/verification"+call.rest, h.all, 404, "NOT_FOUND")
		refused(call.method, "/api/platform/projects/1/domains/x/verification"+call.rest, h.all, 400, "VALIDATION_ERROR")
	}
	refused("GET", acmeVerification, h.onlyWrite, 403, "FORBIDDEN")
	refused("POST", acmeVerification+"/check", h.onlyRead, 403, "FORBIDDEN")
	refused("POST", acmeVerification, h.all, 405, "METHOD_NOT_ALLOWED")
	refused("GET", acmeVerification+"/check", h.all, 405, "METHOD_NOT_ALLOWED")
	refused("POST", acmeVerification+"/check?dryRun=1", h.all, 400, "VALIDATION_ERROR")
	h.ask("POST", acmeVerification+"/check", h.all, "X-Propose: new").check(t, 400, "VALIDATION_ERROR")
	h.ask("GET", acmeVerification, h.all, "X-Propose: new").check(t, 400, "VALIDATION_ERROR")
	if subjects, checks := s.asked(); len(subjects) > 0 || checks > 0 {
		t.Errorf("%+v and %d checks were made for refused calls", subjects, checks)
	}

	s.set(func() { s.err = &catalog.Error{Code: catalog.CodeReadOnly, Message: "this node checks no domains"} })
	refused("POST", acmeVerification+"/check", h.all, 409, "CONFIG_READ_ONLY")
	without := start(t)
	without.ask("GET", acmeVerification, without.all).check(t, 503, "UNAVAILABLE")
	without.ask("POST", acmeVerification+"/check", without.all).check(t, 503, "UNAVAILABLE")
	without.ask("GET", "/api/platform/domains?ready=true", without.all).check(t, 503, "UNAVAILABLE")
}

// standing is what is known of a domain; one that was removed a moment ago has an id that nothing has any more.
func (h *house) standing(domain, ownership, pointing, certificate string, ready bool) platform.Standing {
	h.t.Helper()
	s := platform.Standing{ID: 1<<31 - 1, Ownership: ownership, Pointing: pointing, Certificate: certificate, Ready: ready}
	err := h.resolver.EachDomain(func(d *catalog.Domain) bool {
		if d.Name == domain {
			s.ID = d.ID
		}
		return true
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return s
}

func TestDomainsByVerification(t *testing.T) {
	t.Parallel()
	h, s := startVerified(t)
	standings := []platform.Standing{
		h.standing("shop.acme.example", dcv.Proven, dcv.Here, dcv.Good, true),
		h.standing("*.acme.example", dcv.Pending, dcv.Elsewhere, dcv.Unknown, false),
		h.standing("gone.acme.example", dcv.Pending, dcv.Here, dcv.Good, false), // removed a moment ago
		h.standing("globex.example", dcv.Pending, dcv.Here, dcv.Expiring, false),
	}
	s.set(func() { s.standings = standings })
	list := func(query, key, want string) {
		t.Helper()
		a := h.ask("GET", "/api/platform/domains?"+query, key)
		a.check(t, 200, "")
		if got := strings.Join(column(a, "domain"), " "); got != want {
			t.Errorf("%s lists %q, want %q", query, got, want)
		}
	}
	list("ownership=pending", h.all, "*.acme.example globex.example")
	list("ownership=pending", h.acme, "*.acme.example")
	list("ownership=pending&order=desc", h.all, "globex.example *.acme.example")
	list("ownership=pending&sort=domain", h.all, "*.acme.example globex.example")
	list("ownership=pending&q=globex", h.all, "globex.example")
	list("ownership=pending&q=globex", h.acme, "")
	list("pointing=here&ready=false", h.all, "globex.example")
	list("certificate=expiring", h.acme, "")
	list("ready=true", h.all, "shop.acme.example")
	list("ownership=lost", h.all, "")
	page := h.ask("GET", "/api/platform/domains?ownership=pending&page=2&limit=1", h.all)
	if got := column(page, "domain"); len(got) != 1 || got[0] != "globex.example" ||
		!strings.Contains(string(page.body), `"meta":{"total":2,"page":2,"limit":1,"totalPages":2}`) {
		t.Errorf("the second page: %s", page.body)
	}
	past := h.ask("GET", "/api/platform/domains?ownership=pending&page=2147483648&limit=100", h.all)
	if past.check(t, 200, ""); len(rows(past)) != 0 {
		t.Errorf("a page past the end: %s", past.body)
	}
	bad := h.ask("GET", "/api/platform/domains?ownership=x&pointing=&certificate=good&certificate=good&ready=1&page=0", h.all)
	bad.check(t, 400, "VALIDATION_ERROR")
	if got := strings.Join(bad.fields(), " "); got != "certificate ownership pointing ready page" {
		t.Errorf("the problems are those of %q", got)
	}
}

// An edge checks nothing: it asks the authority, whose answer it passes on, and lists without such a filter by itself.
func TestVerificationAtEdge(t *testing.T) {
	t.Parallel()
	a := &standIn{}
	a.fail(catalog.CodeUnavailable, "away")
	h := start(t, func(o *api.Options) { o.Cluster.Edge = a })
	h.ask("GET", acmeVerification, h.onlyRead).check(t, 503, "UNAVAILABLE")
	h.ask("POST", acmeVerification+"/check", h.all).check(t, 503, "UNAVAILABLE")
	h.ask("GET", "/api/platform/domains?ownership=failing", h.all).check(t, 503, "UNAVAILABLE")
	if got := a.requests(); len(got) != 3 || !strings.HasPrefix(got[2], "GET /api/platform/domains?ownership=failing HTTP/1.1\r\n") {
		t.Errorf("the authority gets %q", got)
	}
	h.ask("GET", "/api/platform/domains?q=acme", h.all).check(t, 200, "")
	if len(a.requests()) != 3 {
		t.Error("a plain list is forwarded")
	}
}

// Claim implements platform.Verifier.
func (s *script) Claim(context.Context, dcv.Subject, bool) ([]catalog.RecordView, bool) {
	return nil, false
}
