package resolver

import (
	"sync"
	"time"
)

// arrivals are answers on their way into ristretto, which has a goroutine of its own to wake for what is put into it: one
// by one, that costs a tenth of a miss. So they go in together, a moment after they were built. Until then the front has
// them.
type arrivals struct {
	mu    sync.Mutex // guards next and timer
	next  []*Answer
	timer *time.Timer

	entering sync.Mutex // held while they go in; guards what follows
	last     []*Answer  // memory for the next ones
	closed   bool
}

// arrivalPause is how long an answer waits for others, at most.
const arrivalPause = time.Millisecond

// keepSoon is keep for an answer that has just been built.
func (r *Resolver) keepSoon(a *Answer) {
	r.front.put(cacheKey(a.hash, a.form), a)
	w := &r.arrivals
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.next = append(w.next, a); len(w.next) > 1 {
		return
	}
	if w.timer == nil {
		w.timer = time.AfterFunc(arrivalPause, r.arrive)
	} else {
		w.timer.Reset(arrivalPause)
	}
}

// arrive puts into ristretto what waits for it.
func (r *Resolver) arrive() {
	w := &r.arrivals
	w.entering.Lock()
	defer w.entering.Unlock()
	w.mu.Lock()
	now := w.next
	w.next = w.last[:0]
	w.mu.Unlock()
	for i, a := range now {
		// A stale one may have its successor behind it, which ristretto would refuse as a newcomer with a key that is taken.
		if w.closed || !r.stamps.fresh(a) {
			r.front.drop(a)
		} else {
			r.keep(a)
		}
		now[i] = nil
	}
	w.last = now
}

// close lets nothing in any more.
func (w *arrivals) close() {
	w.entering.Lock()
	defer w.entering.Unlock()
	w.closed = true
}
