package sender

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/share"
)

// The times of a Service.
const (
	checkTime  = 9 * time.Second  // of one check: an answer is due within 10 s
	restWithin = 10 * time.Second // after a check, within which Check answers with its result
	dueAfter   = 23*time.Hour + 30*time.Minute
	againAfter = time.Hour   // a check that DNS has not answered
	firstWalk  = time.Minute // after the start
	walkEvery  = time.Hour
	maxDemands = 10
	walkers    = 4 // checks in the background at a time
)

// Projects are what is served; *resolver.Resolver is one.
type Projects interface {
	EachProject(yield func(p *catalog.Project) bool) error
	// ReadMailProject returns a project with the settings and the SMTP config in force.
	ReadMailProject(id int64) (*catalog.ProjectConfig, error)
	// HasCategory reports whether a template that a project can send has a category.
	HasCategory(id int64) (bool, error)
}

// A Ledger keeps the last results; *resolver.Resolver is one.
type Ledger interface {
	EachNamed(prefix string, f func(name string, value []byte) error) error
	Named(name string) (value []byte, found bool, err error)
	SetNamed(values map[string][]byte) error
	// NoteAll appends entries to the audit trail and sets values, all or nothing.
	NoteAll(entries []catalog.AuditEntry, named map[string][]byte) error
}

// Options are what a Service needs.
type Options struct {
	Projects Projects
	Ledger   Ledger
	// Lookup begins to ask DNS with the share of a project, for a time at most; end releases it. Nil: this node checks
	// nothing.
	Lookup func(ctx context.Context, project string, limit time.Duration) (dns DNS, end func())
	Logger *slog.Logger     // nil: slog.Default
	Now    func() time.Time // nil: time.Now
}

// A Result is what a check has found.
type Result = catalog.SenderResult

// A Service checks the senders of projects. Safe for concurrent use.
type Service struct {
	o       Options
	demands *share.Places
	base    context.Context //nolint:containedctx // of all checks; ends with Run
	end     context.CancelFunc

	mu      sync.Mutex // guards the fields below
	flights map[flightKey]*flight
	worse   map[catalog.UUID]Worse
}

// A flight is a check that runs. All who ask for the project with the same settings wait for it.
type flight struct {
	done   chan struct{} // closed at the end; result is set then
	result Result        // without a state if there was no place for it
}

type flightKey struct {
	project  catalog.UUID
	settings string // see keyOf
	address  netip.Addr
}

// A Worse is a project whose state has got worse and is not better since.
type Worse struct {
	Project int64     `json:"project"`
	Slug    string    `json:"slug"`
	Since   time.Time `json:"since"`
	Was     string    `json:"was"`
	Is      string    `json:"is"`
}

// New returns a Service. It does nothing in the background before Run.
func New(o Options) *Service {
	o.Logger = cmp.Or(o.Logger, slog.Default())
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Service{o: o, demands: share.New(maxDemands), flights: map[flightKey]*flight{},
		worse: map[catalog.UUID]Worse{}}
	s.base, s.end = context.WithCancel(context.Background())
	return s
}

var (
	errReadOnly = &catalog.Error{Code: catalog.CodeReadOnly, Message: "this node checks no senders: it may not write"}
	errBusy     = &catalog.Error{Code: catalog.CodeUnavailable,
		Message: "too many senders are being checked at the moment; try again in a minute"}
	errNoSender = &catalog.Error{Code: catalog.CodeSMTPNotConfigured, Message: "the project has no SMTP config"}
)

// Check checks the sender of a project now. Within ten seconds of the last check of the same settings it returns that
// one's result, and after which time the next check is made. With an address it also says what receivers find of it; such a
// check is not kept, and tells nothing of the state. An error is for the client.
func (s *Service) Check(ctx context.Context, project int64, address netip.Addr) (Result, time.Duration, error) {
	p, err := s.o.Projects.ReadMailProject(project)
	switch {
	case err != nil:
		return Result{}, 0, err
	case p.SMTP == nil:
		return Result{}, 0, errNoSender
	case s.o.Lookup == nil:
		return Result{}, 0, errReadOnly
	}
	of, err := s.senderOf(p)
	if err != nil {
		return Result{}, 0, err
	}
	if of.Address = address; !address.IsValid() {
		n, err := s.read(p.Project.UUID)
		if err != nil {
			return Result{}, 0, err
		}
		// A last check in the future is one from before the clock was set back.
		if ago := s.o.Now().Sub(n.Result.CheckedAt.Time); n.Of == keyOf(&of) && ago >= 0 && ago < restWithin {
			return n.Result, restWithin - ago, nil
		}
	}
	f := s.join(p, of, func() (func(), error) { return s.demands.Take(ctx, p.Project.UUID.String()) })
	select {
	case <-f.done:
	case <-ctx.Done():
		return Result{}, 0, errBusy
	}
	if f.result.State == "" {
		return Result{}, 0, errBusy
	}
	return f.result, 0, nil
}

// join returns the check of a project that runs, or begins one in a place that take gives.
func (s *Service) join(p *catalog.ProjectConfig, of Sender, take func() (release func(), err error)) *flight {
	key := flightKey{p.Project.UUID, keyOf(&of), of.Address}
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.flights[key]; f != nil {
		return f
	}
	f := &flight{done: make(chan struct{})}
	s.flights[key] = f
	go func() {
		defer close(f.done)
		if release, err := take(); err == nil {
			f.result = s.examine(p, of)
			release()
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.flights, key)
	}()
	return f
}

// senderOf returns the sender of a project that has an SMTP config.
func (s *Service) senderOf(p *catalog.ProjectConfig) (Sender, error) {
	oneClick, err := s.o.Projects.HasCategory(p.Project.ID)
	return SenderOf(p.SMTP, oneClick), err
}

// keyOf tells the settings of senders apart, without the address.
func keyOf(s *Sender) string {
	return strings.Join(append([]string{s.From, s.Include, strconv.FormatBool(s.OneClick)}, s.Selectors...), "\n")
}

// examine makes a check, and lands it. The result has no state if the service ends meanwhile.
func (s *Service) examine(p *catalog.ProjectConfig, of Sender) Result {
	dns, end := s.o.Lookup(s.base, p.Project.UUID.String(), checkTime)
	defer end()
	r := Result{Lines: Examine(dns, of)}
	if s.base.Err() != nil { // it was cut off, and says nothing
		return Result{}
	}
	r.State, r.CheckedAt = StateOf(r.Lines), catalog.JSONMoment{Time: s.o.Now().UTC()}
	if !of.Address.IsValid() {
		if err := s.land(p, &of, r); err != nil {
			s.o.Logger.Warn("a sender check cannot be kept: the next one compares with the one before", "project",
				p.Project.Slug, "error", err)
		}
	}
	return r
}

// A note is what the ledger keeps of a project.
type note struct {
	Of     string            `json:"of"` // see keyOf
	Result Result            `json:"result"`
	Levels map[string]string `json:"levels"` // of each check, as DNS has last answered; Unknown: it never has
	Worse  *Worse            `json:"worse,omitempty"`
}

const notePrefix = "sender/"

func noteName(project catalog.UUID) string { return notePrefix + project.String() }

// read returns the note of a project, an empty one if there is none.
func (s *Service) read(project catalog.UUID) (n note, err error) {
	value, found, err := s.o.Ledger.Named(noteName(project))
	if err == nil && found && json.Unmarshal(value, &n) != nil {
		n = note{}
	}
	return n, err
}

// land keeps a result, and tells if the state has got worse. A check that DNS has not answered is as it was before.
func (s *Service) land(p *catalog.ProjectConfig, of *Sender, r Result) error {
	was, err := s.read(p.Project.UUID)
	if err != nil {
		return err
	}
	now := note{Of: keyOf(of), Result: r, Levels: levelsOf(r.Lines, was.Levels), Worse: was.Worse}
	before, after := worstOf(was.Levels), worstOf(now.Levels)
	seen := maps.Clone(now.Levels) // the checks of which it is known how they were
	maps.DeleteFunc(seen, func(check, _ string) bool { return was.Levels[check] == Unknown })
	var entries []catalog.AuditEntry
	switch {
	case was.Levels != nil && rank(worstOf(seen)) > rank(before):
		now.Worse = &Worse{Project: p.Project.ID, Slug: p.Project.Slug, Since: r.CheckedAt.Time, Was: before, Is: after}
		if was.Worse != nil { // it is better only when it is as it was at first
			now.Worse.Since, now.Worse.Was = was.Worse.Since, was.Worse.Was
		}
		entries = []catalog.AuditEntry{{Action: catalog.AuditSenderWorse, ProjectID: p.Project.ID, Object: of.From,
			Door: catalog.DoorDNS, Changes: []catalog.FieldChange{{Field: "state", Before: before, After: after},
				{Field: catalog.AuditReason, After: reasonOf(r.Lines, after)}}}}
	case was.Worse != nil && rank(after) <= rank(was.Worse.Was):
		now.Worse = nil
	case was.Worse != nil:
		now.Worse = &Worse{Project: p.Project.ID, Slug: p.Project.Slug, Since: was.Worse.Since, Was: was.Worse.Was, Is: after}
	}
	text, err := json.Marshal(now)
	if err != nil {
		return err
	}
	named := map[string][]byte{noteName(p.Project.UUID): text}
	if entries == nil {
		err = s.o.Ledger.SetNamed(named)
	} else {
		err = s.o.Ledger.NoteAll(entries, named)
	}
	if err == nil {
		s.setWorse(p.Project.UUID, now.Worse)
	}
	return err
}

func (s *Service) setWorse(project catalog.UUID, w *Worse) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if delete(s.worse, project); w != nil {
		s.worse[project] = *w
	}
}

// levelsOf returns the worst level of each check; of one without an answer that of before, Unknown if it never had one.
func levelsOf(lines []Line, before map[string]string) map[string]string {
	levels, missed := map[string]string{}, map[string]bool{}
	for _, l := range lines {
		if l.Level == Unknown {
			missed[l.Check] = true
		} else if has, is := levels[l.Check]; !is || rank(l.Level) > rank(has) {
			levels[l.Check] = l.Level
		}
	}
	for check := range missed {
		has := cmp.Or(before[check], Unknown)
		if level, is := levels[check]; !is || rank(has) > rank(level) && has != Unknown {
			levels[check] = has
		}
	}
	return levels
}

// worstOf returns the state that levels make; what is not known does not count.
func worstOf(levels map[string]string) string {
	worst := OK
	for _, level := range levels {
		if level != Note && level != Unknown && rank(level) > rank(worst) {
			worst = level
		}
	}
	return worst
}

// reasonOf returns the first message of a level.
func reasonOf(lines []Line, level string) string {
	if i := slices.IndexFunc(lines, func(l Line) bool { return l.Level == level }); i >= 0 {
		return lines[i].Message
	}
	return ""
}

// WorseOnes lists the projects whose state has got worse and that still send mail, by slug: most of them, and the number
// of those that are not listed.
func (s *Service) WorseOnes(most int) (list []Worse, more int) {
	s.mu.Lock()
	all := slices.SortedFunc(maps.Values(s.worse), func(a, b Worse) int { return strings.Compare(a.Slug, b.Slug) })
	s.mu.Unlock()
	for i, w := range all {
		if len(list) == most {
			return list, len(all) - i
		}
		if p, err := s.o.Projects.ReadMailProject(w.Project); err == nil && sends(p) {
			list = append(list, w)
		}
	}
	return list, 0
}
