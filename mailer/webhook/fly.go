package webhook

import (
	"container/heap"
	"time"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/records"
)

// fly begins an attempt of a lane's head. flies is false if that has to wait, or is done with.
func (e *Engine) fly(r *receiver, l *lane, now time.Time, release func()) (flies bool, err error) {
	if l.head == nil {
		h, found, err := e.o.Ledger.HookDelivery(r.hook.Name, l.Number)
		if err != nil {
			return false, err
		}
		if !found { // of so many later ones it is not kept any more
			return false, e.again(r, l, now)
		}
		l.head = &h
	}
	body, wait, err := e.body(l, now)
	switch {
	case err != nil:
		return false, err
	case wait > 0:
		l.due = now.Add(wait)
		heap.Push(&r.queue, l)
		return false, nil
	case body == nil:
		l.head.State, l.head.NextAttemptAt = records.HookDead, time.Time{}
		l.head.Attempts = append(l.head.Attempts, records.HookAttempt{Time: now, Error: "it is no longer kept"})
		r.cursor.DeadAt, r.unsaved.urgent = now, true
		r.changed(l)
		return false, r.moveOn(e, l, now)
	}
	r.flying++
	hook, head, f := r.hook, l.head, e.flights
	e.running.Go(func() {
		out := e.sender.send(f.ctx, &hook, head.ID, body, now)
		e.inbox.post(func() {
			release()
			if r.flying--; e.flights != f || e.receivers[hook.Name] != r || out.cutOff {
				return
			}
			if err := r.finish(e, l, out, now, e.o.Clock.Now()); err != nil {
				e.failed = err
			}
		})
	})
	return true, nil
}

// again makes the delivery of a lane anew, whose record is not kept.
func (e *Engine) again(r *receiver, l *lane, now time.Time) error {
	v, found, err := r.next(e.o.Ledger, l)
	switch {
	case err != nil:
		return err
	case !found && l.Project != gapLane:
		return r.end(l)
	}
	r.setHead(l, v, e.at.Epoch, now)
	heap.Push(&r.queue, l)
	return nil
}

// body returns the body of a lane's head: the same bytes for each attempt. It is nil if what it tells of is no longer
// kept. wait says that it is worth to wait for the commit before the first attempt.
func (e *Engine) body(l *lane, now time.Time) (body []byte, wait time.Duration, err error) {
	h := l.head
	if h.Entry == 0 && h.Mail == 0 {
		return gapBody(&l.HookLane, h.Created), 0, nil
	}
	body, entry, err := e.eventBody(h)
	if entry != nil && len(h.Attempts) == 0 && e.mayGetCommit(entry, now) {
		return nil, commitPoll, nil
	}
	return body, 0, err
}

// eventBody returns the body of a delivery that tells of an entry or of a mail, and the entry. The body is nil if that is
// no longer kept. Before the first attempt it gives the delivery the commit that is known.
func (e *Engine) eventBody(h *records.HookDelivery) (body []byte, entry *catalog.AuditEntry, err error) {
	if h.Entry == 0 {
		body, err = e.mailBody(h.Mail)
		return body, nil, err
	}
	found, is, err := e.o.Ledger.AuditEntry(h.Entry)
	if err != nil || !is {
		return nil, nil, err
	}
	if len(h.Attempts) == 0 {
		h.Commit = found.Commit
	}
	return entryBody(&found, h.Commit), &found, nil
}

// mayGetCommit reports whether the write of an entry may still get its commit.
func (e *Engine) mayGetCommit(entry *catalog.AuditEntry, now time.Time) bool {
	return e.o.Commits && entry.Commit == "" && entry.RequestID != "" && now.Before(entry.Time.Add(commitTime))
}

func (e *Engine) mailBody(seq int64) (body []byte, err error) {
	var ended *records.EndedMail
	err = e.o.Ledger.EndedSince(seq-1, func(m *records.EndedMail) bool {
		if m.Seq == seq {
			ended = m
		}
		return false
	})
	if err != nil || ended == nil {
		return nil, err
	}
	log, found, err := e.o.Ledger.MailLog(ended.Project, ended.Log)
	if err != nil || !found {
		return nil, err
	}
	return mailBody(ended, &log), nil
}
