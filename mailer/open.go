package mailer

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"fingerpost/mailer/template"
	"fingerpost/resolver/catalog"
)

// A Mailer accepts mail and keeps trying until each mail has reached its end. Any goroutine may call its methods.
type Mailer struct {
	options   Options
	clock     Clock
	firstID   int64 // mails of this Mailer have this id or a higher one; lower ids come from an earlier process
	slots     slots
	templates template.Cache
	unopened  sync.Map // why the last attempt to open a secret of a project failed, by project id
	counters  counters
	waiting   waiting
	kept      keptMails
	inflight  *inflight

	// mu guards what follows. Lock order: Mailer.mu, outbox.mu, then the locks of slots, inflight and caches.
	mu        sync.Mutex
	outboxes  map[int64]*outbox
	running   map[runningKey][32]byte // sends with an Idempotency-Key, and the hash of each request
	unsaved   []*sending              // sendings whose log entries could not be written
	recovered bool
}

// counters are the figures behind Counts.
type counters struct {
	attempts                                         atomic.Int64
	oldest, stoppedProjects, stoppedMails            atomic.Int64 // of the last survey
	sent, kept, failed, expired, retrying, uncertain atomic.Uint64
	suppressed                                       atomic.Uint64
}

// How often tick and prune run.
const (
	tickEvery  = 5 * time.Second
	pruneEvery = time.Hour
	firstPrune = time.Minute
)

// Open starts a Mailer and takes up the mail that the ledger has queued; with Options.Held it waits for Release. It
// fails only if required Options are missing: a ledger that cannot be read is asked again until it can.
func Open(o Options) (*Mailer, error) {
	if o.Ledger == nil || o.Projects == nil || o.Carrier == nil {
		return nil, errors.New("open mailer: it needs a Ledger, Projects and a Carrier")
	}
	o.Budget = cmp.Or(o.Budget, DefaultBudget)
	o.Retention = max(cmp.Or(o.Retention, DefaultRetention), 24*time.Hour)
	o.PerServer = cmp.Or(o.PerServer, DefaultPerServer)
	o.Retries = cmp.Or(o.Retries, DefaultRetries)
	o.Queue = cmp.Or(o.Queue, DefaultQueue)
	o.QueuePerProject = cmp.Or(o.QueuePerProject, DefaultQueuePerProject)
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.OpenSecret == nil {
		o.OpenSecret = func(catalog.Secret, string) (string, error) { return "", errors.New("secrets cannot be opened here") }
	}
	if o.Clock == nil {
		o.Clock = realClock{}
	}
	m := &Mailer{
		options: o, clock: o.Clock,
		firstID:  o.Ledger.NewMailID(),
		slots:    slots{most: o.Retries},
		waiting:  waiting{byProject: map[int64]load{}},
		kept:     keptMails{mails: map[int64]*catalog.QueuedMail{}},
		inflight: newInflight(),
		outboxes: map[int64]*outbox{}, running: map[runningKey][32]byte{},
	}
	if !o.Held {
		m.begun()
	}
	return m, nil
}

// Release takes up the queue of a Mailer that was opened with Options.Held. Call it once. It does nothing after Drain.
func (m *Mailer) Release() {
	if m.begin() {
		defer m.end()
		m.begun()
	}
}

// begun takes up the queue and starts the timers.
func (m *Mailer) begun() {
	if err := m.takeUp(); err != nil {
		m.options.Logger.Error("the mail queue cannot be read, and is asked for again", "error", err)
	}
	m.every("tick", tickEvery, tickEvery, m.tick)
	m.every("prune", firstPrune, pruneEvery, m.prune)
}

// outbox returns a project's outbox, which stays until leaveOutbox.
func (m *Mailer) outbox(project int64) *outbox {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.outboxes[project]
	if b == nil {
		b = &outbox{m: m, project: project, later: items{less: byTime}, ready: items{less: byExpiry}}
		m.outboxes[project] = b
	}
	b.users++
	return b
}

// leaveOutbox ends the use of an outbox, and deletes it if it is idle.
func (m *Mailer) leaveOutbox(b *outbox) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if b.users--; b.users == 0 && b.idle(m.clock.Now()) {
		delete(m.outboxes, b.project)
	}
}

// existing returns the outbox of a project if there is one, those of all projects for 0.
func (m *Mailer) existing(project int64) []*outbox {
	m.mu.Lock()
	defer m.mu.Unlock()
	if project == 0 {
		return slices.Collect(maps.Values(m.outboxes))
	}
	if b := m.outboxes[project]; b != nil {
		return []*outbox{b}
	}
	return nil
}

// looksATick bounds how many outboxes one tick looks at; ConfigChanged covers the usual changes.
const looksATick = 256

// tick repeats what has failed, looks for changes that no event reports, such as a new password file, and surveys
// the queue for Counts.
func (m *Mailer) tick() {
	m.saveAll()
	all := m.existing(0) // in another order each time
	m.survey(all)
	m.mu.Lock()
	recovered := m.recovered
	m.mu.Unlock()
	if !recovered {
		if err := m.takeUp(); err == nil {
			m.options.Logger.Info("the mail queue has been read")
		}
	}
	for i, b := range needLook(all) {
		if i == looksATick || m.draining() {
			break
		}
		m.readConfig(b)
	}
	for _, b := range all {
		m.leaveOutbox(m.outbox(b.project)) // deletes it if it has become idle since its last use
	}
}

// prune deletes entries that are older than the retention, and the suppression lists of projects that are gone.
func (m *Mailer) prune() {
	m.pruneLists()
	now := m.clock.Now()
	if err := m.options.Ledger.PruneMail(now.Add(-m.options.Retention), now); err != nil && !unavailable(err) {
		m.options.Logger.Error("old mail log entries cannot be deleted", "error", err)
	}
}

// gone reports whether an entry was deleted or has ended: its mail needs nothing more.
func gone(err error) bool { return hasCode(err, catalog.CodeNotFound, catalog.CodeConflict) }

// unavailable reports whether err means that the ledger cannot write now. The ledger logs the cause.
func unavailable(err error) bool { return hasCode(err, catalog.CodeUnavailable) }

func hasCode(err error, codes ...catalog.Code) bool {
	var e *catalog.Error
	return errors.As(err, &e) && slices.Contains(codes, e.Code)
}

// Format writes only the type's name, because the value contains passwords.
func (m *Mailer) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "mailer.Mailer") }

// Counts returns the current figures.
func (m *Mailer) Counts() Counts {
	c, w := &m.counters, &m.waiting
	w.mu.Lock()
	defer w.mu.Unlock()
	return Counts{
		Waiting: int64(w.all.mails), LowDisk: w.lowDisk, Attempts: c.attempts.Load(), Keeps: m.options.Keep,
		Oldest: c.oldest.Load(), StoppedProjects: c.stoppedProjects.Load(), StoppedMails: c.stoppedMails.Load(),
		Sends: []SendCount{
			{"sent", c.sent.Load()}, {"kept", c.kept.Load()}, {"failed", c.failed.Load()}, {"expired", c.expired.Load()},
			{"retrying", c.retrying.Load()}, {"uncertain", c.uncertain.Load()}, {"suppressed", c.suppressed.Load()},
		},
	}
}
