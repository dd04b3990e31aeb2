package ledger

import (
	"errors"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// Group commit: mail writes that arrive while an earlier batch is being synced are written together, as one batch with
// one sync. These are accepted mails and status updates. One goroutine forms these groups as long as there are writes.
// It may block for ever when the disk has failed, so callers also wait for the failure.

// A mailWrite is one queued write.
type mailWrite struct {
	b      *pebble.Batch // the part that needs no read of the store
	about  mailSubject
	finish func(t *mailTurn) error
	done   chan mailResult // capacity 1
}

// A mailSubject names what a write reads in the store before it decides. Writes of the same group are not visible there
// yet, so no two of them may have the same subject. The zero subject may read anything, and is written alone.
type mailSubject struct {
	id  int64 // of a mail
	key expiringKey
}

// meets reports whether two subjects share something.
func (m mailSubject) meets(o mailSubject) bool {
	return m.id == o.id || m.key.key != "" && m.key == o.key
}

type mailResult struct{ refused, err error }

// A mailQueue holds the writes for the next group.
type mailQueue struct {
	mu      sync.Mutex // guards the fields below
	waiting []*mailWrite
	working bool // the goroutine that forms groups is running
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

// writeGroups returns when the queue is empty. Callers waiting for a write keep the store open.
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

// maxGroupBytes bounds a group's batch; the first write may exceed it.
const maxGroupBytes = 1 << 20

// A mailGroup is a batch being built.
type mailGroup struct {
	l       *Ledger
	b       *pebble.Batch
	members []*mailWrite
	closed  bool
	stale   int64 // the project whose counts in memory may be ahead of the batch, because a write to it has failed; 0 for none
	sync    bool
}

// writeGroup writes as many leading writes as can go together, and returns their number.
func (l *Ledger) writeGroup(writes []*mailWrite) (n int) {
	select {
	case l.mail.turn <- struct{}{}:
	case <-l.fs.Failed():
		for _, w := range writes {
			w.done <- mailResult{err: l.fs.Err()}
		}
		return len(writes)
	}
	g := mailGroup{l: l, sync: l.dir != ""} // a ledger in memory has no log
	for n < len(writes) && g.add(writes[n]) {
		n++
	}
	g.commit()
	return n
}

// add adds a write to the group, or finishes it if it writes nothing. False means that the write begins the next group.
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

// commit writes the batch, returns the turn as soon as the batch can be read, and finishes the writes once it is
// durable.
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
			err = l.Check() // writes into a deleted directory are lost
		}
	}
	// The pooled readers of the store stay valid: they read no mail.
	err = errors.Join(err, g.b.Close())
	for _, w := range g.members {
		w.done <- mailResult{err: err}
	}
}
