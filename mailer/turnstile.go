package mailer

import "sync"

// A turnstile bounds the attempts with mail that waited, over all projects: each holds its message in memory. Lanes
// whose server fails get half of the places at most, so that however many of them there are, the others find some.
type turnstile struct {
	mu      sync.Mutex // guards what follows
	places  int
	taken   int
	failing int // of taken: by outboxes whose server fails

	// Who found no place, in the order in which they asked, each once. The second is of outboxes whose server fails.
	queue, failingQueue []*outbox
}

// enter takes a place. Where there is none, the outbox's run is called once there is one.
func (t *turnstile) enter(b *outbox, failing bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.free(failing):
		t.taken++
		if failing {
			t.failing++
		}
		return true
	case b.asked:
	case failing:
		b.asked, t.failingQueue = true, append(t.failingQueue, b)
	default:
		b.asked, t.queue = true, append(t.queue, b)
	}
	return false
}

func (t *turnstile) free(failing bool) bool {
	return t.taken < t.places && (!failing || t.failing < max(t.places/2, 1))
}

// leave gives a place back.
func (t *turnstile) leave(failing bool) {
	t.mu.Lock()
	t.taken--
	if failing {
		t.failing--
	}
	t.mu.Unlock()
	// Who is called may not want the place any more, and then the next one must be.
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
