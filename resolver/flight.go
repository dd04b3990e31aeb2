package resolver

import (
	"errors"
	"sync"
	"sync/atomic"
)

type flightKey struct {
	host string
	form Form
}

// A flight is a store read that several callers wait for. answer and err are set when it is done.
type flight struct {
	done   sync.WaitGroup
	answer *Answer
	err    error
}

var errFlight = errors.New("the store read was cut off by a panic")

// flights are the store reads under way.
type flights struct {
	mu sync.Mutex // guards m
	m  map[flightKey]*flight
}

// join returns the flight for k. The leader must do the work and leave.
func (fs *flights) join(k flightKey) (f *flight, leader bool) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if f := fs.m[k]; f != nil {
		return f, false
	}
	if fs.m == nil {
		fs.m = make(map[flightKey]*flight)
	}
	f = new(flight)
	f.done.Add(1)
	fs.m[k] = f
	return f, true
}

func (fs *flights) leave(k flightKey, f *flight) {
	if f.answer == nil && f.err == nil {
		f.err = readError(errFlight) // the leader panics; the others must not wait for ever
	}
	fs.mu.Lock()
	delete(fs.m, k)
	fs.mu.Unlock()
	f.done.Done()
}

// recent holds the last answers that were built, one for each of its places. What is put into ristretto is not found
// there until its own goroutine has been at work, or not at all when it is full: without this, a herd that asks for a
// new name would read the store until then.
type recent [256]atomic.Pointer[Answer]

func (r *recent) put(a *Answer) { r[a.hash%uint64(len(r))].Store(a) }

// get returns an answer for the name in that form, which may be stale.
func (r *recent) get(host string, hash uint64, form Form) *Answer {
	a := r[hash%uint64(len(r))].Load()
	if a == nil || a.host != host || a.form != form {
		return nil
	}
	return a
}
