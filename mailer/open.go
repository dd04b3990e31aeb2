package mailer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"fingerpost/mailer/template"
	"fingerpost/resolver/catalog"
)

// A Mailer accepts mail and goes on with each until it has reached its end. Its methods may be called from any goroutine.
type Mailer struct {
	options   Options
	log       *slog.Logger
	clock     Clock
	firstID   int64 // the mails of this Mailer have this id or a higher one; lower ones are of an earlier process
	slots     slots
	templates template.Cache
	unopened  unopened
	counters  counters
	waiting   waiting
	messages  budget // of sends, see maxSendBytes

	attempts context.Context // of all attempts, ends when Drain cuts them off
	cut      context.CancelFunc
	gate     gate

	ledgerUse sync.RWMutex // guards abandoned, and that the ledger is used only while it is false
	abandoned bool         // Drain has given up waiting for attempts

	// mu guards what follows. Locks are taken in the order Mailer.mu, outbox.mu, then those of slots, gate and caches.
	mu        sync.Mutex
	outboxes  map[int64]*outbox
	running   map[runningKey][32]byte // sends with an Idempotency-Key, and the hash of what each asks for
	unsaved   []*sending              // their log entries could not be written
	recovered bool
	stops     map[string]func() bool // end the timers of every
}

// counters are the figures behind Counts.
type counters struct {
	attempts                                   atomic.Int64
	sent, failed, expired, retrying, uncertain atomic.Uint64
}

// How often tick and prune run.
const (
	tickEvery  = 5 * time.Second
	pruneEvery = time.Hour
	firstPrune = time.Minute
)

// Open takes up the mail that the ledger has queued, with Options.Held only once Release is called. It fails only where Options lack
// what is needed: a ledger that cannot be read is asked again until it can be read.
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
	if o.Clock == nil {
		o.Clock = realClock{}
	}
	m := &Mailer{
		options: o, log: o.Logger, clock: o.Clock,
		firstID:  o.Ledger.NewMailID(),
		slots:    slots{most: o.Retries},
		waiting:  waiting{byProject: map[int64]int{}},
		gate:     gate{closed: make(chan struct{})},
		outboxes: map[int64]*outbox{}, running: map[runningKey][32]byte{}, stops: map[string]func() bool{},
	}
	m.attempts, m.cut = context.WithCancel(context.Background())
	if !o.Held {
		m.begun()
	}
	return m, nil
}

// Release takes up the queue of a Mailer that was opened with Options.Held. It is called once, and does nothing after Drain.
func (m *Mailer) Release() {
	if m.begin() {
		defer m.end()
		m.begun()
	}
}

// begun takes up the queue, and starts the timers.
func (m *Mailer) begun() {
	if err := m.takeUp(); err != nil {
		m.log.Error("the mail queue cannot be read, and is asked for again", "error", err)
	}
	m.every("tick", tickEvery, tickEvery, m.tick)
	m.every("prune", firstPrune, pruneEvery, m.prune)
}

// every calls f periodically until the Mailer drains, never twice at a time.
func (m *Mailer) every(name string, first, then time.Duration, f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.draining() {
		return
	}
	m.stops[name] = m.clock.AfterFunc(first, func() {
		if !m.begin() {
			return
		}
		defer m.end()
		f()
		m.every(name, then, then, f)
	})
}

// outbox returns a project's outbox, which stays until leaveOutbox.
func (m *Mailer) outbox(project int64) *outbox {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.outboxes[project]
	if b == nil {
		b = newOutbox(m, project)
		m.outboxes[project] = b
	}
	b.users++
	return b
}

// leaveOutbox ends the use of an outbox, and drops it where it is idle.
func (m *Mailer) leaveOutbox(b *outbox) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if b.users--; b.users == 0 && b.idle(m.clock.Now()) {
		delete(m.outboxes, b.project)
	}
}

// looksATick bounds how many outboxes one tick looks at; ConfigChanged is the quick way.
const looksATick = 256

// tick repeats what has failed, and looks for changes that no event reports, such as that of a password's file.
func (m *Mailer) tick() {
	m.saveAll()
	m.mu.Lock()
	recovered := m.recovered
	var all []*outbox
	for _, b := range m.outboxes { // in another order each time
		all = append(all, b)
	}
	m.mu.Unlock()
	if !recovered {
		if err := m.takeUp(); err == nil {
			m.log.Info("the mail queue has been read")
		}
	}
	for i, b := range needLook(all) {
		if i == looksATick || m.draining() {
			break
		}
		m.look(b)
	}
	for _, b := range all {
		m.mu.Lock()
		if b.users == 0 && b.idle(m.clock.Now()) && m.outboxes[b.project] == b {
			delete(m.outboxes, b.project)
		}
		m.mu.Unlock()
	}
}

// prune deletes what is older than the retention.
func (m *Mailer) prune() {
	now := m.clock.Now()
	if err := m.options.Ledger.PruneMail(now.Add(-m.options.Retention), now); err != nil && !unavailable(err) {
		m.log.Error("old mail log entries cannot be deleted", "error", err)
	}
}

// gone reports that an entry was deleted or has ended: its mail needs nothing more.
func gone(err error) bool {
	var e *catalog.Error
	return errors.As(err, &e) && (e.Code == catalog.CodeNotFound || e.Code == catalog.CodeConflict)
}

// unavailable reports that the ledger cannot write at the moment. The ledger itself tells the operator.
func unavailable(err error) bool {
	var e *catalog.Error
	return errors.As(err, &e) && e.Code == catalog.CodeUnavailable
}

// Format writes the type's name alone: the value has passwords in it.
func (m *Mailer) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "mailer.Mailer") }

// Counts returns the figures of the moment.
func (m *Mailer) Counts() Counts {
	c, w := &m.counters, &m.waiting
	w.mu.Lock()
	defer w.mu.Unlock()
	return Counts{
		Waiting: int64(w.all), LowDisk: w.lowDisk, Attempts: c.attempts.Load(),
		Sends: []SendCount{
			{"sent", c.sent.Load()}, {"failed", c.failed.Load()}, {"expired", c.expired.Load()},
			{"retrying", c.retrying.Load()}, {"uncertain", c.uncertain.Load()},
		},
	}
}
