package mailer

import "sync"

// A turnstile bounds the attempts with mail that waited, over all projects, and the bytes of their messages, which are in
// memory. Outboxes whose server fails get half of both at most, so that the others find some however many fail.
type turnstile struct {
	mu      sync.Mutex // guards what follows
	places  int
	all     load
	failing load // of all: by outboxes whose server fails

	// The outboxes that found no place, in the order in which they asked, each once. The second is of those whose server fails.
	queue, failingQueue []*outbox
}

// A load is attempts, and the bytes of their messages.
type load struct{ attempts, bytes int }

func (l *load) add(attempts, bytes int) {
	l.attempts += attempts
	l.bytes += bytes
}

// A pass is a place in the turnstile.
type pass struct {
	turnstile *turnstile
	failing   bool
	bytes     int // what the message is counted with
}

// enter takes a place, for a message that has yet to be read. Where it returns nil, there is none, and the outbox's run is
// called once there is one.
func (t *turnstile) enter(b *outbox, failing bool) *pass {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.free(failing):
		t.count(failing, 1, maxMessageBytes)
		return &pass{t, failing, maxMessageBytes}
	case b.asked:
	case failing:
		b.asked, t.failingQueue = true, append(t.failingQueue, b)
	default:
		b.asked, t.queue = true, append(t.queue, b)
	}
	return nil
}

func (t *turnstile) free(failing bool) bool {
	within := func(l load, places, bytes int) bool { return l.attempts < places && l.bytes+maxMessageBytes <= bytes }
	return within(t.all, t.places, maxRetryBytes) && (!failing || within(t.failing, max(t.places/2, 1), maxRetryBytes/2))
}

func (t *turnstile) count(failing bool, attempts, bytes int) {
	t.all.add(attempts, bytes)
	if failing {
		t.failing.add(attempts, bytes)
	}
}

// weigh tells the size of the message once it has been read, which is mostly far below what enter has counted.
func (p *pass) weigh(size int) {
	p.turnstile.change(p.failing, 0, size-p.bytes)
	p.bytes = size
}

// leave gives the place back.
func (p *pass) leave() { p.turnstile.change(p.failing, -1, -p.bytes) }

func (t *turnstile) change(failing bool, attempts, bytes int) {
	t.mu.Lock()
	t.count(failing, attempts, bytes)
	t.mu.Unlock()
	// The outbox that is called may not want the place any more, and then the next one must be.
	for b := t.next(); b != nil; b = t.next() {
		b.run()
	}
}

// next takes the first outbox that could enter out of its queue.
func (t *turnstile) next() (b *outbox) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case len(t.queue) > 0 && t.free(false):
		b, t.queue = t.queue[0], t.queue[1:]
	case len(t.failingQueue) > 0 && t.free(true):
		b, t.failingQueue = t.failingQueue[0], t.failingQueue[1:]
	default:
		return nil
	}
	b.asked = false
	return b
}
