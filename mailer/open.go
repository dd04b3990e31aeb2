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

// A Mailer accepts mail and keeps at it until each has reached its end. Its methods may be called from any goroutine.
type Mailer struct {
	options   Options
	log       *slog.Logger
	clock     Clock
	firstID   int64 // of the mails that this Mailer accepts; lower ones are from before
	slots     slots
	templates template.Cache
	passwords passwordCache
	unopened  unopened
	counters  counters
	waiting   waiting
	messages  budget // of sends, see maxSendBytes

	attempts context.Context // of all attempts, ends when Drain cuts them off
	cut      context.CancelFunc
	gate     gate

	ledgerUse sync.RWMutex // guards abandoned, and that the ledger is used while it is false only
	abandoned bool         // Drain has given up waiting for attempts

	// mu guards what follows. Locks are taken in the order Mailer.mu, outbox.mu, then those of slots, gate and caches.
	mu        sync.Mutex
	outboxes  map[int64]*outbox
	running   map[runningKey][32]byte // sends with an Idempotency-Key, and the hash of what each asks for
	unsaved   []*sending              // their log entries could not be written
	recovered bool
	stops     map[string]func() bool // what ends the timers of every
}

// A gate lets work in until it is closed, and waits for what is in. Work is whoever may call the ledger or the carrier.
type gate struct {
	mu     sync.Mutex // guards closed, and that nothing comes in once it is
	closed chan struct{}
	inside sync.WaitGroup
}

// counters are the figures behind Counts.
type counters struct {
	attempts                                   atomic.Int64
	sent, failed, expired, retrying, uncertain atomic.Uint64
}

// How often what is due at no certain time is looked at.
const (
	tickEvery  = 5 * time.Second
	pruneEvery = time.Hour
	firstPrune = time.Minute
)

// Open takes up what the ledger has queued and starts to work at it, but with Options.Held only once Release is called. It
// fails only where Options lack what they need: a ledger that cannot be read is asked again until it can be.
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

// Release has a Mailer that was opened with Options.Held take up the queue. It is called once, and does nothing after Drain.
func (m *Mailer) Release() {
	if m.begin() {
		defer m.end()
		m.begun()
	}
}

// begun takes up the queue, and begins with what is done again and again.
func (m *Mailer) begun() {
	if err := m.takeUp(); err != nil {
		m.log.Error("the mail queue cannot be read, and is asked for again", "error", err)
	}
	m.every("tick", tickEvery, tickEvery, m.tick)
	m.every("prune", firstPrune, pruneEvery, m.prune)
}

// every calls f again and again until the Mailer drains, never twice at a time.
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

// draining reports whether Drain has begun.
func (m *Mailer) draining() bool {
	select {
	case <-m.gate.closed:
		return true
	default:
		return false
	}
}

// begin announces work that Drain has to wait for; false once it has begun. end goes with it.
func (m *Mailer) begin() bool {
	m.gate.mu.Lock()
	defer m.gate.mu.Unlock()
	if m.draining() {
		return false
	}
	m.gate.inside.Add(1)
	return true
}

func (m *Mailer) end() { m.gate.inside.Done() }

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

// leaveOutbox drops the outbox where nobody needs it any more.
func (m *Mailer) leaveOutbox(b *outbox) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if b.users--; b.users == 0 && b.idle(m.clock.Now()) {
		delete(m.outboxes, b.project)
	}
}

// takeUp takes up the mails of an earlier process. Those that had an attempt under way may have been taken.
func (m *Mailer) takeUp() error {
	type interruption struct {
		log     catalog.MailLog
		expires time.Time
	}
	var interrupted []interruption
	waiting := map[int64][]item{}
	err := m.options.Ledger.EachQueued(func(log catalog.MailLog, mail catalog.QueuedMail) error {
		switch {
		case log.ID >= m.firstID || log.Status.Ended():
			return nil
		case underWay(&log):
			interrupted = append(interrupted, interruption{log, mail.ExpiresAt})
		default:
			waiting[log.ProjectID] = append(waiting[log.ProjectID], newItem(log.ID, log.NextAttemptAt, mail.ExpiresAt))
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the queue: %w", err)
	}
	now := m.clock.Now()
	for i := range interrupted {
		log := &interrupted[i].log
		log.Status, log.Uncertain, log.NextAttemptAt = catalog.MailRetrying, true, now
		if err := m.options.Ledger.UpdateMail(log); err != nil {
			return fmt.Errorf("note an interrupted attempt: %w", err) // the next round finds the rest of them
		}
		m.counters.uncertain.Add(1)
		waiting[log.ProjectID] = append(waiting[log.ProjectID], newItem(log.ID, now, interrupted[i].expires))
	}
	m.mu.Lock()
	m.recovered = true
	m.mu.Unlock()
	for project, list := range waiting {
		m.waiting.add(project, len(list))
		b := m.outbox(project)
		b.mu.Lock()
		for _, it := range list {
			b.later.push(it)
		}
		b.mu.Unlock()
		b.run()
		m.leaveOutbox(b)
	}
	return nil
}

// underWay reports whether an attempt was under way when the entry was written. RETRYING without a time for the next
// attempt is what SENDING becomes when a send's budget ends first: the caller has been told that it is queued.
func underWay(log *catalog.MailLog) bool {
	return log.Status == catalog.MailSending || log.Status == catalog.MailRetrying && log.NextAttemptAt.IsZero()
}

func newItem(id int64, next, expires time.Time) item {
	it := item{id: id, expires: ceilMilli(expires)}
	if !next.IsZero() {
		it.at = ceilMilli(next)
	}
	it.at = min(it.at, it.expires)
	return it
}

// ConfigChanged says that what the files say of a project has changed, or with 0 of any. Mail that waits for an SMTP
// config to change is tried at once. It does not block.
func (m *Mailer) ConfigChanged(projectID int64) {
	m.mu.Lock()
	var waiting []*outbox
	if projectID == 0 {
		for _, b := range m.outboxes {
			waiting = append(waiting, b)
		}
	} else if b := m.outboxes[projectID]; b != nil {
		waiting = append(waiting, b)
	}
	m.mu.Unlock()
	waiting = needLook(waiting)
	if len(waiting) == 0 || !m.begin() {
		return
	}
	go func() {
		defer m.end()
		for _, b := range waiting {
			m.look(b)
		}
	}()
}

// TryAgain closes all breakers, because somebody says that a server was put right, by a new certificate for instance, and
// is ConfigChanged(0) besides. A config that still does not work opens its breaker again with the first attempt.
func (m *Mailer) TryAgain() {
	m.mu.Lock()
	var all []*outbox
	for _, b := range m.outboxes {
		all = append(all, b)
	}
	m.mu.Unlock()
	for _, b := range all {
		b.forgive()
	}
	m.ConfigChanged(0)
}

// looksATick bounds how many outboxes a tick looks at; ConfigChanged is the quick way.
const looksATick = 256

// tick does again what has not worked, and looks for changes that nobody tells of, such as that of a password's file.
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

// gone reports that an entry is not there any more, or has ended: nothing is to be done about its mail.
func gone(err error) bool {
	var e *catalog.Error
	return errors.As(err, &e) && (e.Code == catalog.CodeNotFound || e.Code == catalog.CodeConflict)
}

// unavailable reports that the ledger cannot write at the moment, which others tell the operator of.
func unavailable(err error) bool {
	var e *catalog.Error
	return errors.As(err, &e) && e.Code == catalog.CodeUnavailable
}

// cutOffPatience is how long attempts that were cut off may take to note it. Those that wait for the reply to the final dot
// are not cut off, see Transport.Send.
const cutOffPatience = 5 * time.Second

// Drain accepts nothing more, begins no attempt, and waits for those under way until ctx ends; then it cuts them off:
// what had reached no server by then is tried again by the next Mailer, the rest is uncertain. When it returns, the ledger
// may be closed; an error says that something could not be stored. No mail is lost by it, nor by doing without.
func (m *Mailer) Drain(ctx context.Context) error {
	m.gate.mu.Lock()
	if m.draining() {
		m.gate.mu.Unlock()
		return errors.New("drain mailer: it drains already")
	}
	close(m.gate.closed)
	m.gate.mu.Unlock()
	m.mu.Lock()
	for _, stop := range m.stops {
		stop()
	}
	for _, b := range m.outboxes {
		b.stop()
	}
	m.mu.Unlock()
	done := make(chan struct{})
	go func() {
		m.gate.inside.Wait()
		close(done)
	}()
	defer m.cut()
	select {
	case <-done:
	case <-ctx.Done():
		m.cut()
		select {
		case <-done:
		case <-time.After(cutOffPatience):
			m.ledgerUse.Lock()
			defer m.ledgerUse.Unlock()
			m.abandoned = true
			m.log.Warn("mails were handed over whole, and their servers have not said whether they take them", "mails", m.counters.attempts.Load())
			return nil
		}
	}
	m.saveAll()
	if m.mu.Lock(); len(m.unsaved) > 0 {
		defer m.mu.Unlock()
		return fmt.Errorf("drain mailer: the outcomes of %d attempts could not be stored, and count as uncertain", len(m.unsaved))
	}
	m.mu.Unlock()
	return nil
}

// Format writes no more than the type's name: there are passwords in it.
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
