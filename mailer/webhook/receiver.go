package webhook

import (
	"container/heap"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/records"
)

// A receiver is an active webhook.
type receiver struct {
	hook   Hook
	mails  bool // it wants ends of mails
	cursor records.HookCursor
	lanes  map[int64]*lane
	queue  queue

	flying    int  // requests on the wire
	own       bool // one of them has the receiver's own place
	most      int  // of them; 1 after a time-out, and after resume
	heldUntil time.Time
	unsaved   unsaved
}

// unsaved is what is to be stored of a receiver.
type unsaved struct {
	urgent     bool // before the next request begins
	forget     bool // what is stored of it goes before
	lanes      map[int64]*lane
	done       map[int64]struct{}
	deliveries map[int64]*records.HookDelivery
	stored     records.HookCursor // as it is in the ledger
}

// Bounds of a receiver.
const (
	maxReady    = 64     // lanes that are due: reading on would only make more of them
	maxLanes    = 10_000 // lanes: the events of further projects wait in the trail
	chunk       = 512    // events that are read of a receiver in one turn
	maxFailing  = 5 * 24 * time.Hour
	commitTime  = 2 * time.Second
	commitPoll  = 100 * time.Millisecond
	jitterTenth = 2 // a step is changed by up to so many tenths
)

// steps are the waits after the attempts of a delivery. After the attempt that follows the last one it is dead.
var steps = []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute,
	2 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour}

// jittered changes a step at random, so that receivers that failed together are not asked together.
func jittered(d time.Duration) time.Duration {
	part := d * jitterTenth / 10
	return d - part + rand.N(2*part+1)
}

func newReceiver(h Hook, cursor records.HookCursor) *receiver {
	r := &receiver{cursor: cursor, lanes: map[int64]*lane{}, most: onWire}
	r.cursor.Lanes = nil
	r.unsaved = unsaved{stored: r.cursor}
	r.unsaved.clear()
	r.declare(h)
	return r
}

func (u *unsaved) clear() {
	u.urgent, u.forget = false, false
	u.lanes, u.done, u.deliveries = map[int64]*lane{}, map[int64]struct{}{}, map[int64]*records.HookDelivery{}
}

// declare takes over how the webhook is declared.
func (r *receiver) declare(h Hook) { r.hook, r.mails = h, h.wantsMails() }

func (r *receiver) off() bool { return !r.cursor.OffSince.IsZero() }

// load puts the lanes of the ledger into the queue.
func (r *receiver) load(e *Engine, lanes []records.HookLane, now time.Time) error {
	for _, stored := range lanes {
		l := &lane{HookLane: stored, at: -1}
		h, found, err := e.o.Ledger.HookDelivery(r.hook.Name, l.Number)
		switch {
		case err != nil:
			return err
		case found:
			l.attempts, l.since, l.due = len(h.Attempts), h.Created, now
			if h.NextAttemptAt.After(now) {
				l.due = h.NextAttemptAt
			}
			r.add(l)
			continue
		case l.Project == gapLane:
			r.setHead(l, event{}, e.at.Epoch, now)
			r.add(l)
			continue
		}
		v, found, err := r.next(e.o.Ledger, l)
		if err != nil {
			return err
		}
		if found {
			r.setHead(l, v, e.at.Epoch, now)
			r.add(l)
		} else if err := r.end(l); err != nil {
			return err
		}
	}
	return nil
}

// ready counts the lanes that are due, up to maxReady.
func (r *receiver) ready(now time.Time) (n int) {
	var count func(i int)
	count = func(i int) {
		if i < len(r.queue) && n < maxReady && !r.queue[i].due.After(now) {
			n++
			count(2*i + 1)
			count(2*i + 2)
		}
	}
	count(0)
	return n
}

// full reports whether the receiver reads no further events for now.
func (r *receiver) full(now time.Time) bool {
	return len(r.lanes) >= maxLanes || r.ready(now) >= maxReady
}

// scan gives events that follow the cursor their lanes. more: there are further ones that it could read now.
func (r *receiver) scan(e *Engine, now time.Time) (more bool, err error) {
	r.tellGap(e, now)
	read := 0
	take := func(entry *catalog.AuditEntry) bool {
		if entry.ID > e.at.Entry {
			return false
		}
		if full := r.full(now); full || read == chunk {
			more = !full
			return false
		}
		read++
		r.cursor.Entry = entry.ID
		if r.lanes[entry.ProjectID] == nil && r.hook.wants(entry) {
			l := &lane{HookLane: records.HookLane{Project: entry.ProjectID, Entry: entry.ID - 1, Mail: r.cursor.Mail}}
			r.setHead(l, event{entry: entry}, e.at.Epoch, now)
			r.add(l)
		}
		return true
	}
	if r.cursor.Entry < e.at.Entry {
		if err = e.entriesSince(r.cursor.Entry, take); err != nil {
			return false, err
		}
	}
	return r.scanMails(e, now, more)
}

func (r *receiver) scanMails(e *Engine, now time.Time, behind bool) (more bool, err error) {
	if !r.mails {
		r.cursor.Mail = e.at.Mail
		return behind, nil
	}
	if r.cursor.Mail >= e.at.Mail {
		return behind, nil
	}
	read := 0
	err = e.o.Ledger.EndedSince(r.cursor.Mail, func(m *records.EndedMail) bool {
		if m.Seq > e.at.Mail {
			return false
		}
		if full := r.full(now); full || read == chunk {
			behind = behind || !full
			return false
		}
		read++
		r.cursor.Mail = m.Seq
		if r.lanes[m.Project] == nil && r.hook.wantsMail(m) {
			l := &lane{HookLane: records.HookLane{Project: m.Project, Entry: r.cursor.Entry, Mail: m.Seq - 1}}
			r.setHead(l, event{mail: m}, e.at.Epoch, now)
			r.add(l)
		}
		return true
	})
	return behind, err
}

// tellGap makes a delivery of what was removed from the trail or the log behind the cursor.
func (r *receiver) tellGap(e *Engine, now time.Time) {
	c := &r.cursor
	entries := c.Entry < e.at.EntryCut && c.EntryCut < e.at.EntryCut
	mails := r.mails && c.Mail < e.at.MailCut && c.MailCut < e.at.MailCut
	if !entries && !mails || r.lanes[gapLane] != nil {
		return
	}
	l := &lane{HookLane: records.HookLane{Project: gapLane, Entry: c.Entry, LastEntry: c.Entry, Mail: c.Mail,
		LastMail: c.Mail}}
	if entries {
		l.LastEntry = e.at.EntryCut
	}
	if mails {
		l.LastMail = e.at.MailCut
	}
	c.EntryCut, c.MailCut = e.at.EntryCut, e.at.MailCut
	r.addGap(e, l, now)
	e.o.Logger.Warn("a webhook has missed events that are no longer kept", "webhook", r.hook.Name,
		"from", l.Entry+1, "to", l.LastEntry, "mails_from", l.Mail+1, "mails_to", l.LastMail)
}

// tellLoss makes a delivery of events that this ledger never had: nobody knows which.
func (r *receiver) tellLoss(e *Engine, now time.Time) {
	if c := &r.cursor; r.lanes[gapLane] == nil {
		r.addGap(e, &lane{HookLane: records.HookLane{Project: gapLane, Entry: c.Entry, LastEntry: c.Entry, Mail: c.Mail,
			LastMail: c.Mail}}, now)
		e.o.Logger.Warn("a webhook may have missed events: another node has written until now", "webhook", r.hook.Name)
	}
}

func (r *receiver) addGap(e *Engine, l *lane, now time.Time) {
	r.cursor.GapAt = now
	r.setHead(l, event{}, e.at.Epoch, now)
	r.add(l)
}

// finish takes in what has become of an attempt of a lane's head.
func (r *receiver) finish(e *Engine, l *lane, out Outcome, began, now time.Time) error {
	r.unsaved.urgent = true
	h := l.head
	h.Attempts = append(h.Attempts, records.HookAttempt{Time: began, Status: out.Status, Took: out.Took,
		Answer: out.Answer, Error: out.Error})
	l.attempts = len(h.Attempts)
	r.changed(l)
	h.NextAttemptAt = time.Time{}
	if out.Delivered {
		h.State = records.HookDelivered
		r.cursor.FailingSince, r.most = time.Time{}, onWire
		r.advance(now)
		return r.moveOn(e, l, now)
	}
	h.State = records.HookFailing
	if out.timedOut {
		r.most = 1
	}
	if r.cursor.FailingSince.IsZero() {
		r.cursor.FailingSince = began
	}
	switch {
	case out.Status == 410:
		r.switchOff(e, "the receiver answered 410: it wants no more events", now)
		l.due = time.Time{} // the first one after resume
	case now.Sub(r.cursor.FailingSince) >= maxFailing:
		r.switchOff(e, fmt.Sprintf("no delivery has succeeded for %d days", maxFailing/(24*time.Hour)), now)
		l.due = time.Time{}
	case l.attempts > len(steps):
		h.State = records.HookDead
		if now.Sub(r.cursor.DeadAt) >= time.Hour { // a receiver that is down for days has one for each project
			e.o.Logger.Warn("a delivery of a webhook is given up", "webhook", r.hook.Name, "id", h.ID, "error", out.Error)
		}
		r.cursor.DeadAt = now
		return r.moveOn(e, l, now)
	default:
		wait := out.retryAfter
		if wait == 0 {
			wait = jittered(steps[l.attempts-1])
		}
		l.due = now.Add(wait)
		h.NextAttemptAt = l.due
		if out.Status == 429 {
			r.heldUntil = now.Add(min(wait, longestWait))
		}
	}
	heap.Push(&r.queue, l)
	return nil
}

// advance makes what waits after a failure due: the receiver answers again. Each delivery is brought forward once, so
// that one which alone fails is not repeated after each success of another.
func (r *receiver) advance(now time.Time) {
	moved := false
	for _, l := range r.queue {
		if l.attempts > 0 && !l.advanced && l.due.After(now) {
			l.due, l.advanced, moved = now, true, true
		}
	}
	if moved {
		heap.Init(&r.queue)
	}
}

// switchOff ends deliveries until resume.
func (r *receiver) switchOff(e *Engine, reason string, now time.Time) {
	if r.off() {
		return
	}
	r.cursor.OffSince, r.cursor.OffReason, r.cursor.Version = now, reason, r.hook.Version
	e.o.Logger.Warn("a webhook is switched off", "webhook", r.hook.Name, "reason", reason)
}

// resume goes on where the webhook was, with what was refused first, and alone until a success.
func (r *receiver) resume(now time.Time) {
	if !r.off() {
		return
	}
	r.cursor.OffSince, r.cursor.OffReason, r.cursor.FailingSince = time.Time{}, "", time.Time{}
	r.most, r.heldUntil, r.unsaved.urgent = 1, time.Time{}, true
	for _, l := range r.queue {
		if !l.due.IsZero() {
			l.due = now
		}
	}
	heap.Init(&r.queue)
}

// change returns what is to be stored; nil for nothing. all: also how far the cursor has moved alone.
func (r *receiver) change(all bool) *records.HookChange {
	u := &r.unsaved
	if !u.urgent && !u.forget && !(all && !sameCursor(&r.cursor, &u.stored)) {
		return nil
	}
	cursor := r.cursor
	c := &records.HookChange{Hook: r.hook.Name, Cursor: &cursor, Forget: u.forget, Done: slices.Collect(maps.Keys(u.done))}
	for _, l := range u.lanes {
		c.Lanes = append(c.Lanes, l.HookLane)
	}
	for _, h := range u.deliveries {
		c.Deliveries = append(c.Deliveries, *h)
	}
	slices.SortFunc(c.Deliveries, func(a, b records.HookDelivery) int { return int(a.Number - b.Number) })
	return c
}

func sameCursor(a, b *records.HookCursor) bool {
	return a.Entry == b.Entry && a.Mail == b.Mail && a.Number == b.Number && a.EntryCut == b.EntryCut &&
		a.MailCut == b.MailCut
}

// saved notes that the result of change is durable. Heads that are not on the wire are read again when they are due:
// the answers of their attempts need not stay in memory.
func (r *receiver) saved() {
	for _, l := range r.unsaved.lanes {
		if l.at >= 0 {
			l.head = nil
		}
	}
	r.unsaved.stored = r.cursor
	r.unsaved.clear()
}
