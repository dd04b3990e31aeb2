package mailer

import (
	"slices"
	"sync"
)

// slots is the semaphore for attempts with queued mail. It bounds them over all projects, together with the bytes of
// their messages in memory. An outbox that finds no slot waits in a first-in-first-out queue. Outboxes whose server
// fails get half of the slots at most, so that the others always find some.
type slots struct {
	mu      sync.Mutex // guards what follows
	most    int
	all     load
	failing load // the part of all that outboxes use whose server fails
	queue   []asking
}

// A load is a number of mails, and the bytes of their messages.
type load struct{ mails, bytes int }

func (l *load) add(mails, bytes int) {
	l.mails += mails
	l.bytes += bytes
}

// An asking is an outbox that found no slot. Each outbox is in the queue once.
type asking struct {
	box     *outbox
	failing bool // its server fails
}

// A slot is the right to make one attempt.
type slot struct {
	slots   *slots
	failing bool
	bytes   int // what the message is charged with
}

// acquire takes a slot for a message that has yet to be read. If none is free it returns nil, and the outbox's run is
// called once one is.
func (t *slots) acquire(b *outbox, failing bool) *slot {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.free(failing) {
		t.count(failing, 1, maxMessageBytes)
		return &slot{t, failing, maxMessageBytes}
	}
	if !b.asked {
		b.asked, t.queue = true, append(t.queue, asking{b, failing})
	}
	return nil
}

func (t *slots) free(failing bool) bool {
	within := func(l load, attempts, bytes int) bool {
		return l.mails < attempts && l.bytes+maxMessageBytes <= bytes
	}
	return within(t.all, t.most, maxRetryBytes) && (!failing || within(t.failing, max(t.most/2, 1), maxRetryBytes/2))
}

func (t *slots) count(failing bool, attempts, bytes int) {
	t.all.add(attempts, bytes)
	if failing {
		t.failing.add(attempts, bytes)
	}
}

// weigh corrects the charge once the message has been read; it is usually far smaller than acquire has charged.
func (p *slot) weigh(size int) {
	p.slots.change(p.failing, 0, size-p.bytes)
	p.bytes = size
}

// release releases the slot.
func (p *slot) release() { p.slots.change(p.failing, -1, -p.bytes) }

func (t *slots) change(failing bool, attempts, bytes int) {
	t.mu.Lock()
	t.count(failing, attempts, bytes)
	t.mu.Unlock()
	// An outbox that is called may not need the slot any more; then the next one is called.
	for b := t.next(); b != nil; b = t.next() {
		b.run()
	}
}

// next removes the first outbox that would get a slot from the queue.
func (t *slots) next() *outbox {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.IndexFunc(t.queue, func(a asking) bool { return t.free(a.failing) })
	if i < 0 {
		return nil
	}
	b := t.queue[i].box
	t.queue = slices.Delete(t.queue, i, i+1)
	b.asked = false
	return b
}
