package verify

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"fingerpost/resolver/share"
)

// Options are what a Service needs. All are required, but for those with a meaning of nil.
type Options struct {
	Domains Domains
	Changes Changes
	Ledger  Ledger
	Trail   Trail
	Checker Checker // nil: this node checks nothing
	Writer  Writer  // needed with a Checker
	Logger  *slog.Logger
	Now     func() time.Time // the wall clock, which may be set; nil: time.Now
}

// A Service keeps and schedules the checks of one node. Its methods may be called from any goroutine.
type Service struct {
	o     Options
	notes *notebook
	wake  chan struct{} // of capacity 1: Run has something to do
	began time.Time     // has a monotonic reading, see reading
	// background and demands are the checks that run, shared by project.
	background, demands *share.Places
	base                context.Context // of all checks; ends with Run
	end                 context.CancelFunc

	mu       sync.Mutex // guards the fields below
	schedule schedule
	flights  map[string]*flight // running checks, by name
	parts    sync.WaitGroup     // one for each flight
	ended    bool               // no flight begins any more
	unloaded string             // why the domains are not known; "": they are
	unsaved  string             // why the notes are not stored; "": they are
	unsaid   map[string]unwritten
}

// Bounds of what runs at the same time. Package authdns bounds the questions; each check asks ten and more.
const (
	maxBackground  = 10
	maxWhileAsked  = 4 // background checks while some are made on demand
	maxDemands     = 10
	checkTime      = time.Minute     // of one check
	answerTime     = 9 * time.Second // that Check waits: its answer is due within 10 s
	writeTime      = 10 * time.Second
	restWithin     = 10 * time.Second // after a check, within which Check answers with its result
	retryLater     = time.Minute      // after a write that failed, and a check without a result
	retryLoad      = 5 * time.Second  // after the ledger refused
	spreadWithin   = time.Hour        // of what is overdue after a restart
	slowEvery      = time.Hour        // between the checks of a project whose servers are slow, at least
	saveEvery      = time.Second
	overtakenTries = 3
)

// New makes a Service. It does nothing in the background before Run.
func New(o Options) *Service {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Service{o: o, wake: make(chan struct{}, 1), began: time.Now(), background: share.New(maxBackground),
		demands: share.New(maxDemands), flights: map[string]*flight{}, unsaid: map[string]unwritten{}}
	s.notes = &notebook{ledger: o.Ledger, log: o.Logger, pending: map[noteKey][]byte{}, dirty: make(chan struct{}, 1)}
	s.base, s.end = context.WithCancel(context.Background())
	return s
}

// Run follows the changes of the files and makes the checks that are due, until ctx ends. Then it waits for running checks,
// which are cut off without a result, and stores the last notes.
func (s *Service) Run(ctx context.Context) {
	var saving sync.WaitGroup
	saving.Go(func() { s.save(ctx) })
	defer func() {
		saving.Wait()
		s.stop()
	}()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for loaded := false; ctx.Err() == nil; {
		changed := s.o.Changes.Changed()
		loaded = s.follow(!loaded)
		wait := retryLoad
		if loaded {
			wait = s.startDue()
		}
		timer.Reset(wait)
		select {
		case <-changed:
		case <-timer.C:
		case <-s.wake:
		case <-ctx.Done():
		}
	}
}

// stop ends the checks, waits for them, and stores the last notes.
func (s *Service) stop() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.end()
	s.parts.Wait()
	if err := s.notes.store(); err != nil {
		s.o.Logger.Warn("the last checks of domains are not noted: they are made again", "error", err)
	}
}

// A reading is what both clocks show at a moment. The notes have wall times, which outlive the process; the schedule goes
// by the time since the Service was made, so a clock that is set forward or back moves nothing in it.
type reading struct {
	wall  time.Time
	since time.Duration
}

func (s *Service) reading() reading { return reading{s.o.Now(), time.Since(s.began)} }

// due returns when something is due in the schedule that a note has at a wall time.
func (r reading) due(at time.Time) time.Duration { return r.since + at.Sub(r.wall) }

// wallOf returns the wall time of a time in the schedule.
func (r reading) wallOf(at time.Duration) time.Time { return r.wall.Add(at - r.since).UTC() }

// look makes Run look again.
func (s *Service) look() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// setProblem remembers in one of the fields, and logs, why the checks stand still; nil: they do not.
func (s *Service) setProblem(field *string, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	s.mu.Lock()
	was := *field
	*field = text
	s.mu.Unlock()
	switch {
	case text == was:
	case text != "":
		s.o.Logger.Warn("domains are not checked for now", "reason", text)
	default:
		s.o.Logger.Info("domains are checked again")
	}
}
