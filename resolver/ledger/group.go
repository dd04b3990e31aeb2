package ledger

import (
	"errors"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// The writes of mail that come while an earlier one is on its way to the disk go there together, as one batch with one sync:
// the mails that are accepted, and the outcomes of others. One goroutine makes these groups as long as there is something to
// write. It may never come back where the disk has failed, so nobody waits for it alone.

// A mailWrite is what somebody wants written.
type mailWrite struct {
	b      *pebble.Batch // what needs no look at the store
	about  mailSubject
	finish func(t *mailTurn) error
	done   chan mailResult // of capacity 1
}

// A mailSubject is what a write looks at in the store before it decides: what others in its group write is not there yet, so
// it must not be about the same. The zero one may be anything, and is written alone.
type mailSubject struct {
	id  int64 // of a mail
	key expiringKey
}

// meets reports whether two subjects share something.
func (m mailSubject) meets(o mailSubject) bool {
	return m.id == o.id || m.key.key != "" && m.key == o.key
}

type mailResult struct{ refused, err error }

// A mailQueue holds the writes that wait for the next group.
type mailQueue struct {
	mu      sync.Mutex // guards what follows
	waiting []*mailWrite
	working bool // the goroutine that makes groups
}

// submitMail queues a write.
func (l *Ledger) submitMail(w *mailWrite) {
	q := &l.mail.queue
	q.mu.Lock()
	q.waiting = append(q.waiting, w)
	start := !q.working
	q.working = true
	q.mu.Unlock()
	if start {
		go l.writeGroups()
	}
}

// writeGroups ends when nothing waits. Whoever waits for a write keeps the store open meanwhile.
func (l *Ledger) writeGroups() {
	q := &l.mail.queue
	for {
		q.mu.Lock()
		writes := q.waiting
		if q.waiting = nil; len(writes) == 0 {
			q.working = false
			q.mu.Unlock()
			return
		}
		q.mu.Unlock()
		for len(writes) > 0 {
			writes = writes[l.writeGroup(writes):]
		}
	}
}

// maxGroupBytes bounds a group's batch, but for the first write of it.
const maxGroupBytes = 1 << 20

// A mailGroup is a batch in the making.
type mailGroup struct {
	l       *Ledger
	b       *pebble.Batch
	members []*mailWrite
	closed  bool
	stale   int64 // the project whose counts in memory may be ahead of the batch, since a write to it has failed; 0 for none
	sync    bool
}

// writeGroup writes as many of the first writes as go together, and returns how many.
func (l *Ledger) writeGroup(writes []*mailWrite) (n int) {
	select {
	case l.mail.turn <- struct{}{}:
	case <-l.fs.Failed():
		for _, w := range writes {
			w.done <- mailResult{err: l.fs.Err()}
		}
		return len(writes)
	}
	g := mailGroup{l: l, sync: l.dir != ""} // there is no log in memory
	for n < len(writes) && g.add(writes[n]) {
		n++
	}
	g.commit()
	return n
}

// add takes a write into the group, or ends it at once where nothing of it is written. False: it begins the next group.
func (g *mailGroup) add(w *mailWrite) bool {
	first := len(g.members) == 0
	alone := w.about == mailSubject{}
	meets := func(m *mailWrite) bool { return m.about.meets(w.about) }
	if g.closed || !first && (alone || g.b.Len()+w.b.Len() > maxGroupBytes || slices.ContainsFunc(g.members, meets)) {
		return false
	}
	t := mailTurn{l: g.l, b: w.b}
	err := w.finish(&t)
	if t.idle = t.idle || w.b.Empty() && t.bound == 0; err != nil || t.refused != nil || t.idle {
		if err != nil {
			g.closed, g.stale = true, t.touched
		}
		w.done <- mailResult{t.refused, errors.Join(err, w.b.Close())}
		return true
	}
	t.note()
	if first {
		g.b = w.b
	} else if err = errors.Join(g.b.Apply(w.b, nil), w.b.Close()); err != nil {
		panic("store: a batch cannot be added to another: impossible, both are of this store and small: " + err.Error())
	}
	g.members = append(g.members, w)
	g.closed = alone
	g.sync = g.sync && !t.unsynced
	return true
}

// commit writes the batch, gives the turn back as soon as it can be read, and ends the writes once it is on the disk.
func (g *mailGroup) commit() {
	l := g.l
	release := func() {
		if g.stale != 0 {
			delete(l.mail.counts, g.stale)
		}
		l.shedCounts()
		<-l.mail.turn
	}
	if len(g.members) == 0 {
		release()
		return
	}
	number := l.mail.number
	err := l.putMailState(g.b)
	switch {
	case err != nil:
		release()
	case !g.sync:
		err = g.b.Commit(pebble.NoSync)
		release()
	default:
		err = l.db.ApplyNoSyncWait(g.b, pebble.Sync)
		release()
		if err == nil {
			err = g.b.SyncWait()
		}
		if err == nil {
			l.mail.mark.ack(number)
			err = l.Check() // what went into a directory that is no longer there is lost
		}
	}
	// The readers that Borrow keeps stay: nothing of what they read is mail.
	err = errors.Join(err, g.b.Close())
	for _, w := range g.members {
		w.done <- mailResult{err: err}
	}
}
