package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// A webhook has a cursor: all events up to it are done, but for those of the projects that wait at the webhook. Its
// deliveries are kept for a while, by number. Names of webhooks have no zero byte.

// A HookCursor is how far a webhook has come.
type HookCursor struct {
	Hook              string
	Entry, Mail       int64     // see EventMarks
	EntryCut, MailCut int64     // gaps up to these have been told
	Number            int64     // of its last delivery
	Version           string    // of its declaration, when the cursor was stored
	FailingSince      time.Time // of the first failure since the last success; zero: none
	OffSince          time.Time // when it was switched off, zero: it is not
	OffReason         string
	DeadAt, GapAt     time.Time  // when it last gave up a delivery, and when it last told a gap
	Lanes             []HookLane // of Hooks; ChangeHooks does not look at it
}

// HookReplay is the project of the lane for a replay.
const HookReplay = -1

// A HookLane is a project that waits at a webhook, or a replay.
type HookLane struct {
	Project             int64 // HookReplay: it is one, of the events of all projects
	Entry, Mail         int64 // the project's events up to these are done
	LastEntry, LastMail int64 // of a replay: where it ends
	Replay              int64 // of a replay: its number
	Number              int64 // of the delivery that is next
}

// The states of a HookDelivery.
const (
	HookPending   = "pending"
	HookDelivered = "delivered"
	HookFailing   = "failing"
	HookDead      = "dead"
)

// HookStates lists the states.
var HookStates = []string{HookPending, HookDelivered, HookFailing, HookDead}

// A HookDelivery is one event at a webhook.
type HookDelivery struct {
	Number        int64
	ID            string // webhook-id
	Event         string
	Object        string
	Entry, Mail   int64 // of them the one that it tells of; both 0: of none
	Project       int64
	State         string
	Created       time.Time
	NextAttemptAt time.Time // zero: none follows
	Commit        string    // as it was sent, once there is an attempt
	Attempts      []HookAttempt
}

// A HookAttempt is one attempt of a delivery.
type HookAttempt struct {
	Time   time.Time
	Status int // of HTTP; 0: none came
	Took   time.Duration
	Answer string // its beginning
	Error  string
}

// MaxHookDeliveries is how many deliveries of a webhook are kept.
const MaxHookDeliveries = 10_000

func appendHookKey(dst []byte, hook string) []byte { return appendTextKey(dst, prefixHook, hook) }

func appendLaneKey(dst []byte, hook string, project int64) []byte {
	return appendID(append(appendHookKey(dst, hook), 0), project)
}

func appendDeliveryKey(dst []byte, hook string, number int64) []byte {
	return appendID(append(appendTextKey(dst, prefixDelivery, hook), 0), number)
}

func appendHookCursor(c *HookCursor) []byte {
	e := encoder{}
	e.byte(mailVersion)
	for _, n := range []int64{c.Entry, c.Mail, c.EntryCut, c.MailCut, c.Number} {
		e.int(n)
	}
	e.string(c.Version)
	e.maybe(c.FailingSince)
	e.maybe(c.OffSince)
	e.string(c.OffReason)
	e.maybe(c.DeadAt)
	e.maybe(c.GapAt)
	return e.b
}

func decodeHookCursor(rec []byte) (c HookCursor, err error) {
	d, err := mailDecoder(rec)
	if err != nil {
		return c, err
	}
	c = HookCursor{Entry: d.int(), Mail: d.int(), EntryCut: d.int(), MailCut: d.int(), Number: d.int(),
		Version: d.string(), FailingSince: d.maybe(), OffSince: d.maybe(), OffReason: d.string(), DeadAt: d.maybe(),
		GapAt: d.maybe()}
	return c, d.err()
}

func appendLane(w *HookLane) []byte {
	e := encoder{}
	e.byte(mailVersion)
	for _, n := range []int64{w.Entry, w.Mail, w.LastEntry, w.LastMail, w.Replay, w.Number} {
		e.int(n)
	}
	return e.b
}

func decodeLane(rec []byte) (w HookLane, err error) {
	d, err := mailDecoder(rec)
	if err != nil {
		return w, err
	}
	w = HookLane{Entry: d.int(), Mail: d.int(), LastEntry: d.int(), LastMail: d.int(), Replay: d.int(), Number: d.int()}
	return w, d.err()
}

func appendDelivery(h *HookDelivery) []byte {
	e := encoder{}
	e.byte(mailVersion)
	for _, s := range []string{h.ID, h.Event, h.Object, h.State, h.Commit} {
		e.string(s)
	}
	for _, n := range []int64{h.Entry, h.Mail, h.Project} {
		e.int(n)
	}
	e.micros(h.Created)
	e.maybe(h.NextAttemptAt)
	e.uint(uint64(len(h.Attempts)))
	for i := range h.Attempts {
		a := &h.Attempts[i]
		e.micros(a.Time)
		e.int(int64(a.Status))
		e.int(int64(a.Took))
		e.string(a.Answer)
		e.string(a.Error)
	}
	return e.b
}

func decodeDelivery(rec []byte) (h HookDelivery, err error) {
	d, err := mailDecoder(rec)
	if err != nil {
		return h, err
	}
	h = HookDelivery{ID: d.string(), Event: d.string(), Object: d.string(), State: d.string(), Commit: d.string(),
		Entry: d.int(), Mail: d.int(), Project: d.int(), Created: d.micros(), NextAttemptAt: d.maybe()}
	for range d.uint() {
		if d.failed {
			break
		}
		h.Attempts = append(h.Attempts, HookAttempt{Time: d.micros(), Status: int(d.int()),
			Took: time.Duration(d.int()), Answer: d.string(), Error: d.string()})
	}
	return h, d.err()
}

// hookIn returns the webhook in a key, and the project in that of a lane.
func hookIn(key []byte) (hook string, project int64, lane bool, err error) {
	name, id, lane := bytes.Cut(key[1:], []byte{0})
	if lane && len(id) != 8 {
		return "", 0, false, errRecord
	}
	if lane {
		project, err = lastID(key)
	}
	return string(name), project, lane, err
}

// Hooks returns the cursors of all webhooks, by name, with the projects that wait at them.
func (l *Ledger) Hooks() (all []HookCursor, err error) {
	err = l.scan(under(prefixHook), func(key, rec []byte) error {
		hook, project, lane, err := hookIn(key)
		if err != nil {
			return err
		}
		if !lane {
			c, err := decodeHookCursor(rec)
			c.Hook = hook
			all = append(all, c)
			return err
		}
		w, err := decodeLane(rec)
		if n := len(all); err == nil && n > 0 && all[n-1].Hook == hook {
			w.Project = project
			all[n-1].Lanes = append(all[n-1].Lanes, w)
		}
		return err
	})
	return all, err
}

// A HookChange is what has changed at one webhook.
type HookChange struct {
	Hook       string
	Cursor     *HookCursor // nil: it stays
	Lanes      []HookLane  // that are new or changed
	Done       []int64     // projects that wait no longer
	Deliveries []HookDelivery
	Forget     bool // its cursor and lanes go, before the rest of the change
	Gone       bool // its deliveries go, too
}

// ChangeHooks stores changes in one batch that is durable when it returns. There must be one caller at a time.
func (l *Ledger) ChangeHooks(changes []HookChange) error {
	err := l.commit(func(b *pebble.Batch) (err error) {
		for i := range changes {
			err = errors.Join(err, changes[i].add(b))
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("store the places of webhooks: %w", err)
	}
	return nil
}

func (c *HookChange) add(b *pebble.Batch) (err error) {
	set := func(key, rec []byte) { err = errors.Join(err, b.Set(key, rec, nil)) }
	drop := func(key []byte) { err = errors.Join(err, b.Delete(key, nil)) }
	if c.Forget || c.Gone {
		drop(appendHookKey(nil, c.Hook))
		all := under(append(appendHookKey(nil, c.Hook), 0)...)
		err = errors.Join(err, b.DeleteRange(all.lower, all.upper, nil))
	}
	if c.Gone {
		all := under(append(appendTextKey(nil, prefixDelivery, c.Hook), 0)...)
		err = errors.Join(err, b.DeleteRange(all.lower, all.upper, nil))
	}
	if c.Cursor != nil {
		set(appendHookKey(nil, c.Hook), appendHookCursor(c.Cursor))
	}
	for _, project := range c.Done {
		drop(appendLaneKey(nil, c.Hook, project))
	}
	for i := range c.Lanes {
		set(appendLaneKey(nil, c.Hook, c.Lanes[i].Project), appendLane(&c.Lanes[i]))
	}
	for i := range c.Deliveries {
		h := &c.Deliveries[i]
		set(appendDeliveryKey(nil, c.Hook, h.Number), appendDelivery(h))
		if old := h.Number - MaxHookDeliveries; old > 0 {
			drop(appendDeliveryKey(nil, c.Hook, old))
		}
	}
	return err
}

// HookDelivery returns a delivery of a webhook; false if it is not kept.
func (l *Ledger) HookDelivery(hook string, number int64) (h HookDelivery, found bool, err error) {
	err = l.read(func() (err error) {
		found, err = now{l.db}.get(appendDeliveryKey(nil, hook, number), func(rec []byte) (err error) {
			h, err = decodeDelivery(rec)
			return err
		})
		return err
	})
	h.Number = number
	return h, found, err
}

// A HookQuery selects deliveries of a webhook.
type HookQuery struct {
	ID, State, Event string    // "": all
	From, To         time.Time // From <= Created < To; zero: open
	Page, Limit      int       // from 1
	Ascending        bool      // the oldest first
}

func (q *HookQuery) matches(h *HookDelivery) bool {
	return (q.ID == "" || h.ID == q.ID) && (q.State == "" || h.State == q.State) &&
		(q.Event == "" || h.Event == q.Event) && (q.From.IsZero() || !h.Created.Before(q.From)) &&
		(q.To.IsZero() || h.Created.Before(q.To))
}

func eachDelivery(hook string, descending bool) span {
	s := under(append(appendTextKey(nil, prefixDelivery, hook), 0)...)
	s.descending = descending
	return s
}

// decodeDeliveryAt is decodeDelivery with the number in the key.
func decodeDeliveryAt(key, rec []byte) (h HookDelivery, err error) {
	if h, err = decodeDelivery(rec); err == nil {
		h.Number, err = lastID(key)
	}
	return h, err
}

// LastHookDelivery returns the latest delivery of a webhook; false if none is kept.
func (l *Ledger) LastHookDelivery(hook string) (h HookDelivery, found bool, err error) {
	err = l.scan(eachDelivery(hook, true), func(key, rec []byte) (err error) {
		if h, err = decodeDeliveryAt(key, rec); err != nil {
			return err
		}
		found = true
		return errStop
	})
	return h, found, err
}

// HookDeliveries returns a page of a webhook's deliveries, and the number of those on all pages. It reads all that are
// kept.
func (l *Ledger) HookDeliveries(hook string, q HookQuery) (list []HookDelivery, total int, err error) {
	p := pageOf[HookDelivery](q.Page, q.Limit)
	err = l.scan(eachDelivery(hook, !q.Ascending), func(key, rec []byte) error {
		h, err := decodeDeliveryAt(key, rec)
		if err != nil || !q.matches(&h) {
			return err
		}
		return p.add(func(row *HookDelivery) error {
			*row = h
			return nil
		})
	})
	return p.rows, p.total, err
}

// PruneHooks deletes the deliveries that are older than a moment.
func (l *Ledger) PruneHooks(before time.Time) error {
	var old [][]byte
	err := l.scan(under(prefixDelivery), func(key, rec []byte) error {
		h, err := decodeDelivery(rec)
		if err == nil && h.Created.Before(before) && len(old) < entriesPerTurn*10 {
			old = append(old, bytes.Clone(key))
		}
		return err
	})
	if err == nil {
		err = l.commit(func(b *pebble.Batch) (err error) {
			for _, key := range old {
				err = errors.Join(err, b.Delete(key, nil))
			}
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("prune the deliveries of webhooks: %w", err)
	}
	return nil
}

// putHook copies a cursor or a lane.
func (v *Salvage) putHook(key, rec []byte) error {
	_, _, lane, err := hookIn(key)
	switch {
	case err != nil:
		return err
	case lane:
		_, err = decodeLane(rec)
	default:
		_, err = decodeHookCursor(rec)
	}
	if err != nil {
		return err
	}
	return v.put(key, rec)
}
