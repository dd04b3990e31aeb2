package records

import (
	"time"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/ledger"
)

// What the ledger keeps of webhooks and of the events for them, for callers that do not import package ledger.
type (
	// EventMarks say which events can be read.
	EventMarks = ledger.EventMarks
	// An EndedMail says that a mail has reached its end.
	EndedMail = ledger.EndedMail
	// A HookCursor is how far a webhook has come.
	HookCursor = ledger.HookCursor
	// A HookLane is a project that waits at a webhook, or a replay.
	HookLane = ledger.HookLane
	// A HookDelivery is one event at a webhook.
	HookDelivery = ledger.HookDelivery
	// A HookAttempt is one attempt of a delivery.
	HookAttempt = ledger.HookAttempt
	// A HookChange is what has changed at one webhook.
	HookChange = ledger.HookChange
	// A HookQuery selects deliveries of a webhook.
	HookQuery = ledger.HookQuery
)

// HookReplay is the project of a lane that is a replay.
const HookReplay = ledger.HookReplay

// MaxHookDeliveries is how many deliveries of a webhook are kept.
const MaxHookDeliveries = ledger.MaxHookDeliveries

// The states of a HookDelivery.
const (
	HookPending   = ledger.HookPending
	HookDelivered = ledger.HookDelivered
	HookFailing   = ledger.HookFailing
	HookDead      = ledger.HookDead
)

// HookStates lists the states.
var HookStates = ledger.HookStates

// EventMarks returns which events can be read, and a channel that is closed when that changes. Another source means
// that the ledger was replaced: everything that was read of it may be different. UNAVAILABLE while the ledger cannot be
// used.
func (r *Records) EventMarks() (at EventMarks, changed <-chan struct{}, source any, err error) {
	err = r.withLedger(func(l *ledger.Ledger) error {
		at, changed = l.Events()
		source = l
		return l.Err()
	})
	return at, changed, source, err
}

// EntriesSince calls f with the entries of the trail after one, see ledger.Ledger.
func (r *Records) EntriesSince(id int64, f func(e *catalog.AuditEntry) (more bool)) error {
	return r.withLedger(func(l *ledger.Ledger) error { return l.EntriesSince(id, f) })
}

// ProjectEntriesSince calls f with the entries of a project after one, see ledger.Ledger.
func (r *Records) ProjectEntriesSince(project, id int64, f func(e *catalog.AuditEntry) (more bool)) error {
	return r.withLedger(func(l *ledger.Ledger) error { return l.ProjectEntriesSince(project, id, f) })
}

// AuditEntry returns an entry of the trail with its commit; false if there is none.
func (r *Records) AuditEntry(id int64) (e catalog.AuditEntry, found bool, err error) {
	err = r.withLedger(func(l *ledger.Ledger) (err error) {
		e, found, err = l.AuditEntry(id)
		return err
	})
	return e, found, err
}

// EndedSince calls f with the mails that have ended after a place in their sequence, see ledger.Ledger.
func (r *Records) EndedSince(seq int64, f func(m *EndedMail) (more bool)) error {
	return r.withLedger(func(l *ledger.Ledger) error { return l.EndedSince(seq, f) })
}

// Hooks returns how far the webhooks have come.
func (r *Records) Hooks() (all []HookCursor, err error) {
	err = r.withLedger(func(l *ledger.Ledger) (err error) {
		all, err = l.Hooks()
		return err
	})
	return all, err
}

// ChangeHooks stores how far webhooks have come, see ledger.Ledger.
func (r *Records) ChangeHooks(changes []HookChange) error {
	return r.withLedger(func(l *ledger.Ledger) error { return l.ChangeHooks(changes) })
}

// HookDelivery returns a delivery of a webhook; false if it is not kept.
func (r *Records) HookDelivery(hook string, number int64) (h HookDelivery, found bool, err error) {
	err = r.withLedger(func(l *ledger.Ledger) (err error) {
		h, found, err = l.HookDelivery(hook, number)
		return err
	})
	return h, found, err
}

// LastHookDelivery returns the latest delivery of a webhook; false if none is kept.
func (r *Records) LastHookDelivery(hook string) (h HookDelivery, found bool, err error) {
	err = r.withLedger(func(l *ledger.Ledger) (err error) {
		h, found, err = l.LastHookDelivery(hook)
		return err
	})
	return h, found, err
}

// HookDeliveries returns a page of a webhook's deliveries, and the number of those on all pages.
func (r *Records) HookDeliveries(hook string, q HookQuery) (list []HookDelivery, total int, err error) {
	err = r.withLedger(func(l *ledger.Ledger) (err error) {
		list, total, err = l.HookDeliveries(hook, q)
		return err
	})
	return list, total, err
}

// PruneHooks deletes the deliveries that are older than a moment.
func (r *Records) PruneHooks(before time.Time) error {
	return r.withLedger(func(l *ledger.Ledger) error { return l.PruneHooks(before) })
}
