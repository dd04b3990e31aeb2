package verify_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fingerpost/configsrc/verify"
	"fingerpost/configsrc/verify/dcv"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/records"
)

// A world is all that a Service needs, in memory: files, their changes, a ledger, an audit trail and DNS.
type world struct {
	mu      sync.Mutex
	domains map[string]verify.Domain
	policy  dcv.Policy
	on      bool
	names   []string
	all     bool
	changed chan struct{}
	asked   int // calls of Next
	named   int // calls of Named

	notes      map[string][]byte
	batches    int
	ledgerErr  error
	trail      []string
	written    []string
	writeErr   error
	onWrite    func() // before the file is changed
	afterWrite func()

	answer  func(s dcv.Subject, p dcv.Policy) dcv.Facts
	takes   time.Duration                     // a check
	takesOf func(s dcv.Subject) time.Duration // nil: takes
	ahead   time.Duration                     // of the wall clock
	onCheck func(name string)
	checks  []check
	running int
	most    int // checks at the same time
}

// A check is one call of the Checker.
type check struct {
	name string
	at   time.Time
}

// A proof is what DNS has of a domain.
type proof int

const (
	absent proof = iota
	present
	silent
	ready // present, and the domain leads here with a good certificate
)

// newWorld has a verification block, and DNS that has no proofs.
func newWorld() *world {
	w := &world{domains: map[string]verify.Domain{}, changed: make(chan struct{}), notes: map[string][]byte{}, on: true,
		policy: dcv.Policy{Require: catalog.RequireProjectKeys, Hosts: []string{"edge.example.net"}, Grace: 72 * time.Hour}}
	w.says(absent)
	return w
}

// project returns the uuid of a project.
func project(n byte) catalog.UUID { return catalog.UUID{n, 15: 1} }

// says makes DNS answer all checks in the same way.
func (w *world) says(p proof) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer = func(s dcv.Subject, policy dcv.Policy) dcv.Facts { return factsOf(s, policy, p) }
}

// factsOf are the facts of a domain that leads to no address, unless it is ready.
func factsOf(s dcv.Subject, policy dcv.Policy, p proof) dcv.Facts {
	facts := dcv.Facts{At: time.Now()}
	if p == ready {
		facts.Pointing = servedHere(s.Name)
		facts.TLS = dcv.TLS{Connected: true, NotAfter: facts.At.Add(60 * 24 * time.Hour)}
	}
	for i, way := range dcv.Ways(s, policy) {
		answer := dcv.Answer{Server: "ns1.example", At: facts.At}
		switch {
		case p == silent:
			answer.Error = "time-out"
		case (p == present || p == ready) && i == 0:
			answer.Values = []string{"token=" + way.Token}
		}
		facts.Proofs = append(facts.Proofs, dcv.Finding{Type: way.Type, Name: way.Name, Answers: []dcv.Answer{answer}})
	}
	return facts
}

// servedHere is where a domain leads that has the address of the target.
func servedHere(name string) dcv.Pointing {
	addr := netip.MustParseAddr("203.0.113.4")
	return dcv.Pointing{Name: name, Addresses: []netip.Addr{addr}, TargetAddresses: []netip.Addr{addr}, Findings: []dcv.Finding{
		{Type: "A", Name: name, Answers: []dcv.Answer{{Server: "ns1.example", Values: []string{addr.String()}}}},
		{Type: "AAAA", Name: name, Answers: []dcv.Answer{{Server: "ns1.example"}}},
	}}
}

func idOf(name string) int64 {
	return catalog.DeriveID(catalog.KindDomain, catalog.DeriveDomainUUID(project(1), name))
}

// put saves a domain, of project 1 if it has none.
func (w *world) put(name, verified string, projects ...byte) {
	d := verify.Domain{Subject: dcv.Subject{Project: project(1), Name: name, Verified: verified},
		ID: idOf(name), ProjectID: 1, Slug: "acme"}
	if len(projects) > 0 {
		d.Project, d.ProjectID = project(projects[0]), int64(projects[0])
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.domains[name] = d
	w.tell(name)
}

func (w *world) remove(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.domains, name)
	w.tell(name)
}

// block adds or removes the verification block.
func (w *world) block(on bool, change func(p *dcv.Policy)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.on, w.all = on, true
	change(&w.policy)
	w.tell()
}

// tell publishes a change. The caller holds mu.
func (w *world) tell(names ...string) {
	w.names = append(w.names, names...)
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *world) Each(yield func(d verify.Domain) bool) error {
	w.mu.Lock()
	all := slices.Collect(maps.Values(w.domains))
	w.mu.Unlock()
	for _, d := range all {
		d.Name, d.Verified = strings.Clone(d.Name), strings.Clone(d.Verified) // as a store decodes them
		if !yield(d) {
			break
		}
	}
	return nil
}

func (w *world) Named(name string) (verify.Domain, bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.named++
	d, found := w.domains[name]
	return d, found, nil
}

func (w *world) Reused(project catalog.UUID) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, d := range w.domains {
		if d.Project == project && d.Reused {
			return true, nil
		}
	}
	return false, nil
}

func (w *world) Policy() (dcv.Policy, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.on {
		return dcv.Policy{}, false
	}
	return w.policy, true
}

func (w *world) Changed() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed
}

func (w *world) Next() (names []string, all bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	names, all = w.names, w.all
	w.names, w.all = nil, false
	w.asked++
	return names, all
}

func noteID(p catalog.UUID, domain string) string { return fmt.Sprintf("%d %s", p[0], domain) }

func (w *world) ChangeDomainNotes(notes []records.DomainNote) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ledgerErr != nil {
		return w.ledgerErr
	}
	if len(notes) > 0 {
		w.batches++
	}
	for _, n := range notes {
		if w.notes[noteID(n.Project, n.Domain)] = n.Note; n.Note == nil {
			delete(w.notes, noteID(n.Project, n.Domain))
		}
	}
	return nil
}

func (w *world) DomainNote(p catalog.UUID, domain string) ([]byte, bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	note, found := w.notes[noteID(p, domain)]
	return note, found, w.ledgerErr
}

func (w *world) EachDomainNote(f func(n records.DomainNote) error) error {
	w.mu.Lock()
	notes, err := maps.Clone(w.notes), w.ledgerErr
	w.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(notes)) {
		var n byte
		var domain string
		if _, scanErr := fmt.Sscan(id, &n, &domain); scanErr != nil {
			return scanErr
		}
		err = errors.Join(err, f(records.DomainNote{Project: project(n), Domain: domain, Note: notes[id]}))
	}
	return err
}

func (w *world) NoteDomain(action string, p int64, domain string, by catalog.Author, changes ...catalog.FieldChange) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trail = append(w.trail, fmt.Sprint(action, " ", p, " ", domain, " ", by.Door))
}

func (w *world) SetVerified(ctx context.Context, d verify.Domain, value, reason string) error {
	w.mu.Lock()
	before, after, err := w.onWrite, w.afterWrite, w.writeErr
	w.mu.Unlock()
	if err != nil {
		return err
	}
	if before != nil {
		before()
	}
	w.mu.Lock()
	now, found := w.domains[d.Name]
	if !found || now.Project != d.Project || now.Verified != d.Verified {
		w.mu.Unlock()
		return verify.ErrOvertaken
	}
	now.Verified = value
	w.domains[d.Name] = now
	w.written = append(w.written, d.Name+" "+value)
	w.tell(d.Name)
	w.mu.Unlock()
	if after != nil {
		after()
	}
	return nil
}

func (w *world) Check(ctx context.Context, s dcv.Subject, p dcv.Policy, _ []dcv.Way) (dcv.Facts, error) {
	w.mu.Lock()
	w.checks = append(w.checks, check{s.Name, time.Now()})
	w.running++
	w.most = max(w.most, w.running)
	answer, hook, takes, ahead := w.answer, w.onCheck, w.takes, w.ahead
	if w.takesOf != nil {
		takes = w.takesOf(s)
	}
	w.mu.Unlock()
	facts := answer(s, p)
	facts.At = facts.At.Add(ahead)
	if hook != nil {
		hook(s.Name)
	}
	select {
	case <-time.After(takes):
	case <-ctx.Done():
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running--
	return facts, ctx.Err()
}

// now is the wall clock.
func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.ahead)
}

// run starts a Service, which ends with the test or with stop.
func (w *world) run(t *testing.T) (s *verify.Service, stop func()) {
	w.changed = make(chan struct{}) // of this bubble
	s = verify.New(verify.Options{Domains: w, Changes: w, Ledger: w, Trail: w, Checker: w, Writer: w,
		Logger: slog.New(slog.DiscardHandler), Now: w.now})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Run(ctx)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-ended
	})
	synctest.Wait()
	return s, stop
}

// during runs f in a bubble with a clock of its own, with a Service that runs until f returns.
func during(t *testing.T, w *world, f func(t *testing.T, s *verify.Service)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, stop := w.run(t)
		defer stop()
		f(t, s)
	})
}

// after lets time pass, and what it brings about end.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// taken returns the times at which a domain was checked, since an earlier moment, and forgets all checks.
func (w *world) taken(name string, since time.Time) (times []time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.checks {
		if c.name == name {
			times = append(times, c.at.Sub(since))
		}
	}
	w.checks = nil
	return times
}

// set changes fields while the Service may read them.
func (w *world) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

func (w *world) made() []check {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.checks)
}

// atOnce is the largest number of checks that ran at one time.
func (w *world) atOnce() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.most
}

func (w *world) writes() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.written)
}

func (w *world) noted() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.trail)
}

func (w *world) verified(name string) string {
	d, _, _ := w.Named(name)
	return d.Verified
}

// ownership returns the state of a domain by the counts and by its standing, which must agree.
func ownership(t *testing.T, s *verify.Service, name string) (state string) {
	t.Helper()
	count := map[string]int{}
	if err := s.Each(func(st verify.Standing) bool {
		count[st.Ownership]++
		if st.ID == idOf(name) {
			state = st.Ownership
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
	s.EachCount(func(axis, of string, n int) {
		if axis == verify.AxisOwnership && n != count[of] {
			t.Errorf("%d domains are counted as %s, and %d are", n, of, count[of])
		}
		if axis == verify.AxisOwnership && s.Some(of) != (n > 0) {
			t.Errorf("some are %s: %v; counted are %d", of, s.Some(of), n)
		}
	})
	return state
}
