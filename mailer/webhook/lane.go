package webhook

import (
	"container/heap"
	"time"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/records"
)

// A lane is a project of which something is to be delivered at a webhook, a replay, or a gap.
type lane struct {
	records.HookLane
	head     *records.HookDelivery // what is next; nil: it is in the ledger
	attempts int                   // of the head
	since    time.Time             // when the head's event happened
	due      time.Time
	at       int  // place in the queue; -1: on the wire
	advanced bool // the success of another delivery has brought the head forward
}

// A queue is a heap of the lanes that are not on the wire, by due time, then by delivery.
type queue []*lane

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	if c := q[i].due.Compare(q[j].due); c != 0 {
		return c < 0
	}
	return q[i].Number < q[j].Number
}

func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].at, q[j].at = i, j
}

func (q *queue) Push(x any) {
	l := x.(*lane)
	l.at = len(*q)
	*q = append(*q, l)
}

func (q *queue) Pop() any {
	last := len(*q) - 1
	l := (*q)[last]
	*q = (*q)[:last]
	l.at = -1
	return l
}

// An event is an entry of the trail, or the end of a mail.
type event struct {
	entry *catalog.AuditEntry
	mail  *records.EndedMail
}

func (v event) time() time.Time {
	if v.entry != nil {
		return v.entry.Time
	}
	return v.mail.Time
}

// next finds the event that follows in a lane, the earlier one of both kinds; false if there is none. It moves the lane
// to right before it.
func (r *receiver) next(ledger Ledger, l *lane) (v event, found bool, err error) {
	lastEntry, lastMail := r.cursor.Entry, r.cursor.Mail
	if l.Project == records.HookReplay {
		lastEntry, lastMail = l.LastEntry, l.LastMail
	}
	asked := l.Replay != 0 && lastEntry-l.Entry+lastMail-l.Mail == 1 // a person asks for one delivery
	takeEntry := func(e *catalog.AuditEntry) (more bool) {
		switch {
		case e.ID > lastEntry:
			return false
		case asked || r.hook.wants(e):
			v.entry = e
			return false
		}
		l.Entry = e.ID
		return true
	}
	switch {
	case l.Entry >= lastEntry:
	case l.Project == records.HookReplay:
		err = ledger.EntriesSince(l.Entry, takeEntry)
	default:
		err = ledger.ProjectEntriesSince(l.Project, l.Entry, takeEntry)
	}
	if err != nil {
		return v, false, err
	}
	if l.Mail < lastMail && (asked || r.mails) {
		err = ledger.EndedSince(l.Mail, func(m *records.EndedMail) (more bool) {
			switch of := l.Project == records.HookReplay || m.Project == l.Project; {
			case m.Seq > lastMail:
				return false
			case asked || of && r.hook.wantsMail(m):
				v.mail = m
				return false
			}
			l.Mail = m.Seq
			return true
		})
	}
	if v.entry != nil && v.mail != nil {
		if v.mail.Time.Before(v.entry.Time) {
			v.entry = nil
		} else {
			v.mail = nil
		}
	}
	return v, v.entry != nil || v.mail != nil, err
}

// setHead makes an event the next delivery of a lane.
func (r *receiver) setHead(l *lane, v event, epoch string, now time.Time) {
	r.cursor.Number++
	h := &records.HookDelivery{Number: r.cursor.Number, Project: max(l.Project, 0), State: records.HookPending,
		Created: now.UTC().Truncate(time.Microsecond)}
	switch {
	case v.entry != nil:
		h.Event, h.Object, h.Entry, h.Project = v.entry.Action, v.entry.Object, v.entry.ID, v.entry.ProjectID
	case v.mail != nil:
		h.Event, h.Mail, h.Project = mailEvents[v.mail.Status], v.mail.Seq, v.mail.Project
	default:
		h.Event = GapEvent
	}
	h.ID = idOf(epoch, r.hook.Name, &l.HookLane, h.Entry, h.Mail)
	l.head, l.attempts, l.due, l.advanced, l.Number, l.since = h, 0, now, false, h.Number, now
	if v.entry != nil || v.mail != nil {
		l.since = v.time()
	}
	r.changed(l)
}

// changed notes that a lane and its head are to be stored.
func (r *receiver) changed(l *lane) {
	delete(r.unsaved.done, l.Project)
	r.unsaved.lanes[l.Project] = l
	if l.head != nil {
		r.unsaved.deliveries[l.Number] = l.head
	}
}

// add puts a lane into the queue.
func (r *receiver) add(l *lane) {
	r.lanes[l.Project] = l
	heap.Push(&r.queue, l)
}

// moveOn goes to what follows the head of a lane, which is done. A lane at its end goes.
func (r *receiver) moveOn(e *Engine, l *lane, now time.Time) error {
	switch {
	case l.Project == gapLane:
		return r.end(l)
	case l.head.Entry != 0:
		l.Entry = l.head.Entry
	default:
		l.Mail = l.head.Mail
	}
	v, found, err := r.next(e.o.Ledger, l)
	if err != nil {
		return err
	}
	if !found {
		return r.end(l)
	}
	r.setHead(l, v, e.at.Epoch, now)
	heap.Push(&r.queue, l)
	return nil
}

func (r *receiver) end(l *lane) error {
	delete(r.lanes, l.Project)
	delete(r.unsaved.lanes, l.Project)
	r.unsaved.done[l.Project] = struct{}{}
	return nil
}
