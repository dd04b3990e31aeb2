package webhook

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"sort"
	"sync/atomic"
	"time"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/records"
)

// do has f called by Run, and waits for it. UNAVAILABLE if Run has ended. With an error f is not called any more.
func (e *Engine) do(ctx context.Context, f func()) error {
	done := make(chan struct{})
	var taken atomic.Bool // by Run, which calls f, or by this caller, who gives up
	if !e.inbox.post(func() {
		if taken.CompareAndSwap(false, true) {
			f()
			close(done)
		}
	}) {
		return errEnded
	}
	var err error
	select {
	case <-done:
		return nil
	case <-e.ended:
		err = errEnded
	case <-ctx.Done():
		err = ctx.Err()
	}
	if taken.CompareAndSwap(false, true) {
		return err
	}
	<-done // it was called
	return nil
}

// ask is do for a function that may return an error.
func (e *Engine) ask(ctx context.Context, f func() error) error {
	var refused error
	if err := e.do(ctx, func() { refused = f() }); err != nil {
		return err
	}
	return refused
}

// change has f called by Run, and waits until what it has changed is stored. The error is that of f or of the context, or
// UNAVAILABLE; then nothing has changed. Once f was called the context has no say.
func (e *Engine) change(ctx context.Context, f func() error) error {
	if err := e.ask(ctx, f); err != nil {
		return err
	}
	problem := ""
	// Run calls this after the turn that follows f: a turn stores what was changed before it.
	if err := e.do(context.WithoutCancel(ctx), func() { problem = e.problem }); err != nil {
		return err
	}
	if problem != "" {
		return errNotStored
	}
	return nil
}

var errNotStored = catalog.Unavailable("the places of webhooks cannot be stored at the moment")

var errEnded = catalog.Unavailable("no webhooks are delivered at the moment")

// find returns a declared webhook; NOT_FOUND if there is none.
func (e *Engine) find(name string) (Hook, error) {
	hooks, _, _ := e.o.Hooks.Webhooks()
	i := slices.IndexFunc(hooks, func(h Hook) bool { return h.Name == name })
	if i < 0 {
		return Hook{}, catalog.NotFound("webhook")
	}
	return hooks[i], nil
}

// Test sends a test event to a webhook, also to an inactive one, and returns what has become of it. It is not repeated
// and not kept. UNAVAILABLE if Run has ended; context.DeadlineExceeded if there is no place for a request within placeTime,
// and the context's error if that ends before the attempt does.
func (e *Engine) Test(ctx context.Context, name string) (Outcome, error) {
	h, err := e.find(name)
	if err != nil {
		return Outcome{}, err
	}
	at, _, _, err := e.o.Ledger.EventMarks()
	if err != nil {
		return Outcome{}, err
	}
	if len(h.Secrets) == 0 {
		return Outcome{Error: "no secret of the webhook can be used"}, nil
	}
	select {
	case <-e.ended:
		return Outcome{}, errEnded
	default:
	}
	waits, cancel := context.WithTimeout(ctx, placeTime)
	defer cancel()
	release, err := e.places.Take(waits, h.Name)
	if err != nil {
		return Outcome{}, err
	}
	defer release()
	now := e.o.Clock.Now()
	id := fmt.Sprintf("%s.t%d.%s", at.Epoch, now.UnixMicro(), h.Name)
	out := e.sender.send(ctx, &h, id, encode("test", now, struct{}{}), now)
	if out.cutOff {
		return Outcome{}, ctx.Err()
	}
	return out, nil
}

// placeTime is how long a test waits for a place.
const placeTime = 2 * time.Second

// Resume switches a webhook on that was switched off by itself, and returns once that is stored. It does nothing to one
// that is on.
func (e *Engine) Resume(ctx context.Context, name string) error {
	if _, err := e.find(name); err != nil {
		return err
	}
	return e.change(ctx, func() error {
		if r := e.receivers[name]; r != nil {
			r.resume(e.o.Clock.Now())
		}
		return nil
	})
}

// Deliveries returns a page of the deliveries of a webhook that are kept, and the number of those on all pages. Tests are
// not among them.
func (e *Engine) Deliveries(name string, q records.HookQuery) (list []records.HookDelivery, total int, err error) {
	if _, err := e.find(name); err != nil {
		return nil, 0, err
	}
	return e.o.Ledger.HookDeliveries(name, q)
}

// A Request is a kept delivery with what is posted for it.
type Request struct {
	records.HookDelivery
	// Header has the headers of every attempt. Each has a webhook-timestamp, too, which is its time, and a webhook-signature,
	// which is not kept: the secrets may be others by now.
	Header http.Header
	Body   []byte // nil: what the delivery tells of is no longer kept, or it is a gap
}

// Request returns a kept delivery of a webhook by its id, with its request. NOT_FOUND if it is not kept.
func (e *Engine) Request(name, id string) (r Request, err error) {
	found, err := e.kept(name, id)
	if err != nil {
		return Request{}, err
	}
	r = Request{HookDelivery: found, Header: e.sender.header(id)}
	if found.Entry != 0 || found.Mail != 0 {
		r.Body, _, err = e.eventBody(&r.HookDelivery)
	}
	return r, err
}

// kept returns a delivery of a webhook by its id. NOT_FOUND if it is not kept.
func (e *Engine) kept(name, id string) (records.HookDelivery, error) {
	found, _, err := e.o.Ledger.HookDeliveries(name, records.HookQuery{ID: id, Page: 1, Limit: 1})
	if err == nil && len(found) == 0 {
		err = catalog.NotFound("delivery")
	}
	if err != nil {
		return records.HookDelivery{}, err
	}
	return found[0], nil
}

// A Replay selects what is sent again: a kept delivery by its id, else the events of a time that the webhook wants now.
type Replay struct {
	ID       string
	From, To time.Time // From <= time < To; zero: open
}

// LastDelivery returns the latest delivery of a webhook; false if none is kept.
func (e *Engine) LastDelivery(name string) (h records.HookDelivery, found bool, err error) {
	return e.o.Ledger.LastHookDelivery(name)
}

// Replay sends events again, with ids of their own, next to what waits. It returns how many, once the replay is stored.
// NOT_FOUND if the delivery or its event is not kept, and of a gap; CONFLICT while a replay of the webhook is at work, and
// if the webhook is off.
func (e *Engine) Replay(ctx context.Context, name string, q Replay) (count int, err error) {
	h, err := e.find(name)
	if err != nil {
		return 0, err
	}
	if err := e.ask(ctx, func() error { return e.refuseReplay(name) }); err != nil {
		return 0, err // before all events are read
	}
	of := records.HookLane{Project: records.HookReplay}
	if q.ID != "" {
		count, err = e.replayOne(&h, q.ID, &of)
	} else {
		count, err = e.replayTime(ctx, &h, q, &of)
	}
	if err != nil || count == 0 {
		return 0, err
	}
	err = e.change(ctx, func() error {
		if err := e.refuseReplay(name); err != nil {
			return err
		}
		return e.receivers[name].replay(e, of, e.o.Clock.Now())
	})
	return count, err
}

// refuseReplay returns why a webhook cannot have a replay now, nil if it can.
func (e *Engine) refuseReplay(name string) error {
	switch r := e.receivers[name]; {
	case r == nil || r.off():
		return conflict("the webhook is off", "is off: resume it, and send events again then")
	case r.lanes[records.HookReplay] != nil:
		return conflict("a replay of the webhook is at work", "has a replay at work: try again when it has ended")
	}
	return nil
}

func conflict(message, ofName string) error {
	return &catalog.Error{Code: catalog.CodeConflict, Message: message,
		Problems: catalog.Problems{{Path: "name", Message: ofName}}}
}

var errNotKept error = &catalog.Error{Code: catalog.CodeNotFound, Message: "what the delivery tells of is no longer kept"}

// replayOne sets the bounds of a replay to the event of one delivery.
func (e *Engine) replayOne(h *Hook, id string, of *records.HookLane) (int, error) {
	found, err := e.kept(h.Name, id)
	switch {
	case err != nil:
		return 0, err
	case found.Entry != 0:
		of.Entry, of.LastEntry = found.Entry-1, found.Entry
	case found.Mail != 0:
		of.Mail, of.LastMail = found.Mail-1, found.Mail
	default:
		return 0, catalog.NotFound("delivery")
	}
	if body, _, err := e.eventBody(&found); err != nil || body == nil {
		return 0, cmp.Or(err, errNotKept)
	}
	return 1, nil
}

// clockStep is by how much the clock may have been set back: but for that, events are in the order of their time.
const clockStep = time.Hour

// placeBefore returns a place before all events of a time and later, close to them. timeAfter returns the time of the
// event that follows a place; zero: none does.
func placeBefore(from time.Time, last int64, timeAfter func(id int64) (time.Time, error)) (id int64, err error) {
	from = from.Add(-clockStep)
	place := sort.Search(int(last), func(i int) bool {
		t, failed := timeAfter(int64(i))
		err = cmp.Or(err, failed)
		return t.IsZero() || !t.Before(from)
	})
	return int64(place), err
}

// replayTime sets the bounds of a replay to the events of a time, and counts those that the webhook wants.
func (e *Engine) replayTime(ctx context.Context, h *Hook, q Replay, of *records.HookLane) (count int, err error) {
	at, _, _, err := e.o.Ledger.EventMarks()
	if err != nil {
		return 0, err
	}
	inside := func(t time.Time) bool {
		return (q.From.IsZero() || !t.Before(q.From)) && (q.To.IsZero() || t.Before(q.To))
	}
	take := func(id, last int64, t time.Time, after, upTo *int64, wanted bool) (more bool) {
		if id <= last && wanted {
			if count++; *upTo == 0 {
				*after = id - 1
			}
			*upTo = id
		}
		return id < last && ctx.Err() == nil && (q.To.IsZero() || t.Before(q.To.Add(clockStep)))
	}
	first, err := placeBefore(q.From, at.Entry, func(id int64) (t time.Time, err error) {
		err = e.o.Ledger.EntriesSince(id, func(entry *catalog.AuditEntry) bool { t = entry.Time; return false })
		return t, err
	})
	if err == nil {
		err = e.o.Ledger.EntriesSince(first, func(entry *catalog.AuditEntry) bool {
			return take(entry.ID, at.Entry, entry.Time, &of.Entry, &of.LastEntry, inside(entry.Time) && h.wants(entry))
		})
	}
	if err != nil || !h.wantsMails() {
		return count, cmp.Or(err, ctx.Err())
	}
	first, err = placeBefore(q.From, at.Mail, func(id int64) (t time.Time, err error) {
		err = e.o.Ledger.EndedSince(id, func(m *records.EndedMail) bool { t = m.Time; return false })
		return t, err
	})
	if err == nil {
		err = e.o.Ledger.EndedSince(first, func(m *records.EndedMail) bool {
			return take(m.Seq, at.Mail, m.Time, &of.Mail, &of.LastMail, inside(m.Time) && h.wantsMail(m))
		})
	}
	return count, cmp.Or(err, ctx.Err())
}

// replay begins a replay.
func (r *receiver) replay(e *Engine, of records.HookLane, now time.Time) error {
	l := &lane{HookLane: of, at: -1}
	l.Replay = r.cursor.Number + 1
	v, found, err := r.next(e.o.Ledger, l)
	if err != nil || !found {
		return err
	}
	r.setHead(l, v, e.at.Epoch, now)
	r.unsaved.urgent = true // a client is told that it is at work
	r.add(l)
	return nil
}

// A Status is how a webhook does, for metrics, conditions and lists.
type Status struct {
	Name    string
	Waiting int // projects of which something is to be delivered; a replay and a gap count as one each
	Failing int // of these, those whose delivery has failed at least once
	// FailingSince is when the first delivery failed since the last success; zero: none has.
	FailingSince time.Time
	Oldest       time.Time // when the oldest event happened of these; zero: none waits
	Behind       int64     // entries of the trail that the webhook has not come to yet
	OffSince     time.Time // zero: it is on
	OffReason    string
	DeadAt       time.Time // when the latest delivery was given up; zero: none was
	GapAt        time.Time // when the latest gap was told; zero: none was
	OnWire       int
	NoSecret     bool // none of its secrets can be used: everything waits
}

// Status returns how the active webhooks do, by name, and why nothing is delivered at all, "" if it is.
func (e *Engine) Status(ctx context.Context) (all []Status, problem string, err error) {
	at, _, _, err := e.o.Ledger.EventMarks()
	if err != nil {
		return nil, "", err
	}
	err = e.do(ctx, func() {
		problem = e.problem
		for _, name := range e.order {
			all = append(all, e.receivers[name].status(at.Entry))
		}
	})
	return all, problem, err
}

func (r *receiver) status(last int64) Status {
	c := &r.cursor
	s := Status{Name: r.hook.Name, Waiting: len(r.lanes), Behind: max(0, last-c.Entry), OffSince: c.OffSince,
		OffReason: c.OffReason, DeadAt: c.DeadAt, GapAt: c.GapAt, OnWire: r.flying,
		NoSecret: len(r.hook.Secrets) == 0}
	for _, l := range r.lanes {
		if l.attempts > 0 {
			s.Failing++
		}
		if s.Oldest.IsZero() || l.since.Before(s.Oldest) {
			s.Oldest = l.since
		}
	}
	s.FailingSince = c.FailingSince
	return s
}
