package webhook

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/records"
	"fingerpost/resolver/share"
)

const (
	retryLater = 5 * time.Second  // after the ledger has refused
	saveEvery  = 10 * time.Second // where only cursors have moved
	beginsBack = 1000             // entries in which the beginning of a new webhook is looked for
	maxRecent  = 1024             // entries that are read once for all webhooks
)

// An Engine delivers events. Its methods may be called from any goroutine.
type Engine struct {
	o      Options
	sender *sender
	places *share.Places // of requests, but for one of each webhook

	inbox   inbox
	running sync.WaitGroup // requests
	ended   chan struct{}  // closed when Run has returned

	// The rest belongs to Run.
	lost bool // events may be in the trail of another ledger, and no webhook has been told
	state
}

// state is what an Engine knows of the ledger and the webhooks.
type state struct {
	source    any // the ledger that was read; nil: none
	at        records.EventMarks
	receivers map[string]*receiver
	order     []string // of the receivers, by name
	first     int      // the one that begins: another one in each turn
	recent    []catalog.AuditEntry
	flights   *flights
	saved     time.Time
	failed    error  // of the ledger, outside of a turn
	problem   string // why nothing is delivered; "": it is
}

// flights are the requests of one state: a state that is dropped cuts off its own.
type flights struct {
	ctx context.Context
	end context.CancelFunc
}

// An inbox has what is to be done by Run.
type inbox struct {
	mu    sync.Mutex // guards the fields below
	todo  []func()
	wake  chan struct{} // of capacity 1
	ended bool
}

// post has f called by Run; false if it has ended.
func (b *inbox) post(f func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return false
	}
	b.todo = append(b.todo, f)
	b.look()
	return true
}

func (b *inbox) look() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

func (b *inbox) take() []func() {
	b.mu.Lock()
	defer b.mu.Unlock()
	todo := b.todo
	b.todo = nil
	return todo
}

// New makes an Engine. It delivers nothing before Run.
func New(o Options) *Engine {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Clock == nil {
		o.Clock = realClock{}
	}
	o.Timeout = cmp.Or(o.Timeout, attemptTime)
	return &Engine{o: o, sender: newSender(&o), places: share.New(sharedPlaces),
		inbox: inbox{wake: make(chan struct{}, 1)}, ended: make(chan struct{})}
}

// Run delivers until ctx ends. Then it cuts off what is on the wire, which is repeated by the next Run, and stores how
// far the webhooks have come. It is called once.
func (e *Engine) Run(ctx context.Context) {
	defer e.stop()
	for ctx.Err() == nil {
		for _, f := range e.inbox.take() {
			f()
		}
		declared, changedHooks, known := e.o.Hooks.Webhooks()
		at, changedEvents, source, err := e.o.Ledger.EventMarks()
		now := e.o.Clock.Now()
		wait := saveEvery
		if known {
			if err == nil {
				wait, err = e.turn(ctx, declared, at, source, now)
			}
			if e.setProblem(err); err != nil {
				e.drop()
				wait, changedEvents = retryLater, nil // of a ledger that is not used any more
			}
		}
		stop := e.o.Clock.AfterFunc(wait, e.inbox.look)
		select {
		case <-changedHooks:
		case <-changedEvents:
		case <-e.inbox.wake:
		case <-ctx.Done():
		}
		stop()
	}
}

// stop ends the requests and stores what is known.
func (e *Engine) stop() {
	if e.flights != nil {
		e.flights.end()
	}
	e.running.Wait()
	e.inbox.mu.Lock()
	e.inbox.ended = true
	e.inbox.mu.Unlock()
	for _, f := range e.inbox.take() {
		f()
	}
	if e.source != nil && e.failed == nil {
		if err := e.save(true, e.o.Clock.Now()); err != nil {
			e.o.Logger.Warn("the places of webhooks are not stored: some events are delivered again", "error", err)
		}
	}
	e.sender.close()
	close(e.ended)
}

// drop forgets what is known. Requests on the wire are cut off: what becomes of them could not be stored.
func (e *Engine) drop() {
	if e.flights != nil {
		e.flights.end()
	}
	e.state = state{problem: e.problem}
}

// NoteLoss has a gap told to every webhook once: another node, with a ledger of its own, has written until now.
func (e *Engine) NoteLoss() { e.inbox.post(func() { e.lost = true }) }

func (e *Engine) setProblem(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text == e.problem {
		return
	}
	if e.problem = text; text != "" {
		e.o.Logger.Warn("webhooks wait", "reason", text)
	} else {
		e.o.Logger.Info("webhooks go on")
	}
}

// turn reads what is new, stores what has changed, and begins the requests that are due. It returns when the next turn
// is due at the latest. After an error nothing that it knows can be relied on.
func (e *Engine) turn(ctx context.Context, declared []Hook, at records.EventMarks, source any, now time.Time) (
	wait time.Duration, err error) {
	if e.failed != nil {
		return 0, e.failed
	}
	if source != e.source || at.Epoch != e.at.Epoch {
		e.drop()
		err = e.load(ctx, declared, at, source, now)
	} else {
		e.at = at
		err = e.reconcile(declared, now)
	}
	if err == nil {
		err = e.readRecent()
	}
	more := false
	for _, r := range e.each() {
		if err == nil && e.lost {
			r.tellLoss(e, now)
		}
		if err == nil && !r.off() {
			var behind bool
			behind, err = r.scan(e, now)
			more = more || behind
		}
	}
	if err == nil {
		err = e.save(now.Sub(e.saved) >= saveEvery, now)
	}
	if err != nil {
		return 0, err
	}
	e.lost = false
	wait = saveEvery
	for _, r := range e.each() {
		next, err := e.begin(r, now)
		if err != nil {
			return 0, err
		}
		wait = min(wait, next)
	}
	e.first++
	if more {
		wait = 0
	}
	return wait, nil
}

// each lists the receivers, another one first in each turn: all of them use the shared places.
func (e *Engine) each() []*receiver {
	all := make([]*receiver, len(e.order))
	for i := range e.order {
		all[i] = e.receivers[e.order[(i+e.first)%len(e.order)]]
	}
	return all
}

// load reads the places of all webhooks from a ledger.
func (e *Engine) load(ctx context.Context, declared []Hook, at records.EventMarks, source any, now time.Time) error {
	cursors, err := e.o.Ledger.Hooks()
	if err != nil {
		return err
	}
	f := &flights{}
	f.ctx, f.end = context.WithCancel(ctx)
	e.state = state{source: source, at: at, receivers: map[string]*receiver{}, flights: f, saved: now, problem: e.problem}
	hooks := map[string]Hook{}
	for _, h := range declared {
		hooks[h.Name] = h
	}
	for i := range cursors {
		c := &cursors[i]
		h := hooks[c.Hook]
		if !h.Active {
			e.receivers[c.Hook] = &receiver{} // which reconcile removes
			continue
		}
		r := newReceiver(h, *c)
		e.receivers[c.Hook] = r
		// A ledger that has lost its end, and gives the ids out again.
		r.cursor.Entry, r.cursor.Mail = min(r.cursor.Entry, at.Entry), min(r.cursor.Mail, at.Mail)
		if err := r.load(e, c.Lanes, now); err != nil {
			return err
		}
	}
	return e.reconcile(declared, now)
}

// reconcile takes over how the webhooks are declared now.
func (e *Engine) reconcile(declared []Hook, now time.Time) error {
	hooks := map[string]bool{}
	var changes []records.HookChange
	var begin []Hook
	for _, h := range declared {
		hooks[h.Name] = true
		r := e.receivers[h.Name]
		switch {
		case !h.Active && r != nil: // switched on again, it begins anew
			delete(e.receivers, h.Name)
			changes = append(changes, records.HookChange{Hook: h.Name, Forget: true})
		case !h.Active:
		case r == nil:
			begin = append(begin, h)
		default:
			if r.off() && r.cursor.Version != h.Version {
				e.o.Logger.Info("a webhook that was off goes on: it was changed", "webhook", h.Name)
				r.resume(now)
			}
			r.declare(h)
		}
	}
	for name := range e.receivers {
		if !hooks[name] {
			delete(e.receivers, name)
			changes = append(changes, records.HookChange{Hook: name, Gone: true})
		}
	}
	began, err := e.beginnings(begin)
	for _, r := range began {
		e.receivers[r.hook.Name] = r
		cursor := r.cursor
		changes = append(changes, records.HookChange{Hook: r.hook.Name, Cursor: &cursor})
	}
	if err == nil && len(changes) > 0 {
		e.order = nil
		err = e.o.Ledger.ChangeHooks(changes)
	}
	if len(e.order) != len(e.receivers) {
		e.order = slices.Sorted(maps.Keys(e.receivers))
	}
	return err
}

// beginnings returns new receivers. Their events begin after the entry that tells of them, or after the first load of the
// files: something may change before the Engine knows of them.
func (e *Engine) beginnings(hooks []Hook) (all []*receiver, err error) {
	if len(hooks) == 0 {
		return nil, nil
	}
	made, loaded := map[string]int64{}, int64(0)
	err = e.o.Ledger.EntriesSince(max(0, e.at.Entry-beginsBack), func(entry *catalog.AuditEntry) bool {
		activates := entry.Action == "webhook.update" && slices.ContainsFunc(entry.Changes,
			func(c catalog.FieldChange) bool { return c.Field == "active" })
		if entry.ID <= e.at.Entry && (entry.Action == "webhook.create" || activates) {
			made[entry.Object] = entry.ID
		}
		if isFirstLoad(entry) {
			loaded = entry.ID
		}
		return entry.ID < e.at.Entry
	})
	for _, h := range hooks {
		cursor := records.HookCursor{Hook: h.Name, Entry: cmp.Or(made[h.Name], loaded, e.at.Entry), Mail: e.at.Mail,
			EntryCut: e.at.EntryCut, MailCut: e.at.MailCut}
		// Its former deliveries may still be kept, and keep their numbers.
		former, _, failed := e.o.Ledger.LastHookDelivery(h.Name)
		cursor.Number = former.Number
		err = errors.Join(err, failed)
		all = append(all, newReceiver(h, cursor))
	}
	return all, err
}

// readRecent reads the newest entries, which most receivers look at next.
func (e *Engine) readRecent() error {
	last := max(0, e.at.Entry-maxRecent)
	if n := len(e.recent); n > 0 && e.recent[n-1].ID >= last {
		last = e.recent[n-1].ID
	} else {
		e.recent = e.recent[:0]
	}
	if last >= e.at.Entry || len(e.receivers) == 0 {
		return nil
	}
	if len(e.recent) == 0 { // there is no entry between it and the first one
		e.recent = append(e.recent, catalog.AuditEntry{ID: last})
	}
	err := e.o.Ledger.EntriesSince(last, func(entry *catalog.AuditEntry) bool {
		if entry.ID <= e.at.Entry {
			entry.Changes = slices.DeleteFunc(entry.Changes, func(c catalog.FieldChange) bool { return c.Field != slugField })
			e.recent = append(e.recent, *entry) // without the changes, which may be long
		}
		return entry.ID < e.at.Entry
	})
	if n := len(e.recent); n > 2*maxRecent {
		e.recent = slices.Delete(e.recent, 0, n-maxRecent)
	}
	return err
}

// entriesSince calls f with the entries after one, until it returns false.
func (e *Engine) entriesSince(id int64, f func(entry *catalog.AuditEntry) (more bool)) error {
	if len(e.recent) == 0 || id < e.recent[0].ID {
		return e.o.Ledger.EntriesSince(id, f)
	}
	from, _ := slices.BinarySearchFunc(e.recent, id+1, func(entry catalog.AuditEntry, id int64) int {
		return cmp.Compare(entry.ID, id)
	})
	for i := from; i < len(e.recent) && f(&e.recent[i]); i++ {
	}
	return nil
}

// save stores what has changed, in one batch. all: also where only cursors have moved.
func (e *Engine) save(all bool, now time.Time) error {
	var changes []records.HookChange
	var of []*receiver
	for _, r := range e.receivers {
		if c := r.change(all); c != nil {
			changes, of = append(changes, *c), append(of, r)
		}
	}
	if all {
		e.saved = now
	}
	if len(changes) == 0 {
		return nil
	}
	if err := e.o.Ledger.ChangeHooks(changes); err != nil {
		return err
	}
	for _, r := range of {
		r.saved()
	}
	return nil
}

// begin begins the requests of a receiver that are due, as far as it has places. It returns when the next one is due.
func (e *Engine) begin(r *receiver, now time.Time) (wait time.Duration, err error) {
	for !r.off() && len(r.hook.Secrets) > 0 && r.flying < r.most && len(r.queue) > 0 {
		l := r.queue[0]
		if due := later(l.due, r.heldUntil); due.After(now) {
			return due.Sub(now), nil
		}
		release, ok := e.place(r)
		if !ok {
			return saveEvery, nil
		}
		heap.Pop(&r.queue)
		flies, err := e.fly(r, l, now, release)
		if !flies {
			release()
		}
		if err != nil {
			return 0, err
		}
	}
	return saveEvery, nil
}

// place takes a place for a request: the receiver's own, else a shared one. It is given back by Run.
func (e *Engine) place(r *receiver) (release func(), ok bool) {
	if !r.own {
		r.own = true
		return func() { r.own = false }, true
	}
	return e.places.TryTake(r.hook.Name)
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
