package store

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// A fence stands between Pebble and the disk. Pebble takes a failed write for the end of the process (Logger.Fatalf), or
// for a reason to try again at once and for ever; neither may happen to a service whose answers do not depend on the
// disk. So the first failure trips the fence: the operation that failed and every later one that would change the
// directory park their goroutines for good, before they return to Pebble. Pebble then waits, silently; its reads, which
// need neither those goroutines nor their locks, go on.
//
// A tripped instance can never touch the directory again. That is what makes it safe to open the same directory a second
// time in one process, once quiet says that no operation is still under way in the kernel.
type fence struct {
	failed  chan struct{} // closed by trip
	tripped atomic.Bool
	pending atomic.Int64 // operations between enter and leave

	mu  sync.Mutex // guards err
	err error
}

func newFence() *fence { return &fence{failed: make(chan struct{})} }

// park never returns. It is a variable of nothing: no lock is held here that a read would need, see makeRoomForWrite,
// UpdateVersionLocked and flush1 in Pebble, which do their I/O outside DB.mu.
func park() { select {} }

// enter is called before an operation that changes the directory; leave must follow.
func (f *fence) enter() {
	f.pending.Add(1)
	// Looked at after the operation was counted: either quiet sees the count, or this sees the trip.
	if f.tripped.Load() {
		f.pending.Add(-1)
		park()
	}
}

// leave ends an operation. It does not return when err is a failure.
func (f *fence) leave(op, name string, err error) {
	if err == nil {
		f.pending.Add(-1)
		return
	}
	f.trip(fmt.Errorf("%w: %s %s: %w", ErrUnavailable, op, name, rootCause(err)))
	f.pending.Add(-1)
	park()
}

// trip records the first failure. Later ones are dropped: they are its consequences.
func (f *fence) trip(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = err
		f.tripped.Store(true)
		close(f.failed)
	}
}

// cause returns what tripped the fence, or nil.
func (f *fence) cause() error {
	if !f.tripped.Load() {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// quiet reports that the fence is down and no operation is under way: nothing of this instance will ever reach the
// directory again.
func (f *fence) quiet() bool { return f.tripped.Load() && f.pending.Load() == 0 }
