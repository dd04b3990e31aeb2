package api

import (
	"sync"
	"sync/atomic"
	"time"
)

// minWriteRate is what a peer must take of a long answer, in bytes a second, on top of the write timeout.
const minWriteRate = 16 << 10

// A ticker is a clock that costs nothing to read: the library's three deadlines a request take as long as all that
// resolve does. It runs between start and stop and counts from when it was made, so that a jump of the wall clock moves
// no deadline. While the process stands still (a paused container, SIGSTOP, a suspended machine) it does, too: then it is
// behind until somebody lets it catch up.
type ticker struct {
	zero    time.Time // with a monotonic reading
	every   time.Duration
	elapsed atomic.Int64
	naps    atomic.Int64 // how often it was behind by several steps
	once    sync.Once
	stopped chan struct{}
}

func newTicker(every time.Duration) *ticker {
	return &ticker{zero: time.Now(), every: every, stopped: make(chan struct{})}
}

// start sets the clock going; further calls do nothing.
func (t *ticker) start() {
	t.once.Do(func() {
		t.catchUp()
		t.naps.Store(0)
		go func() {
			beat := time.NewTicker(t.every)
			defer beat.Stop()
			for {
				select {
				case <-beat.C:
					t.catchUp()
				case <-t.stopped:
					return
				}
			}
		}()
	})
}

// now is the time since zero, a little late.
func (t *ticker) now() time.Duration { return time.Duration(t.elapsed.Load()) }

// napSteps is how many steps of the ticker are no delay any more.
const napSteps = 4

// catchUp sets the clock and returns by how much it was behind, if that was a nap, else 0. It may be called from any
// goroutine.
func (t *ticker) catchUp() time.Duration {
	for {
		then, now := t.elapsed.Load(), int64(time.Since(t.zero))
		if now <= then {
			return 0
		}
		if !t.elapsed.CompareAndSwap(then, now) {
			continue
		}
		if late := time.Duration(now - then); late > napSteps*t.every {
			t.naps.Add(1)
			return late
		}
		return 0
	}
}

// deadlines are those of one connection. They may fall early by the ticker's step and by slack: setting one on a socket
// is dear, so it is done once per slack and not once per request. Time for which the process stood still does not count:
// the peer could do nothing about it.
type deadlines struct {
	clock   *ticker
	limits  *Limits
	slack   time.Duration
	served  bool          // a message has been read
	message time.Duration // by when the present message must be there; 0 while none has begun
	reading time.Duration // what is set on the socket
	writing time.Duration
	naps    int64 // of the clock, when a deadline was set last

	written int64         // since the last read
	blocked time.Duration // in writing it
}

// beginMessage gives the peer the read timeout for the message of which a part has come.
func (d *deadlines) beginMessage() {
	if d.message == 0 {
		d.message = d.clock.now() + d.limits.Read
	}
}

func (d *deadlines) endMessage() { d.message, d.served = 0, true }

// forRead returns the deadline to set before the next read, if it needs setting.
func (d *deadlines) forRead() (by time.Time, set bool) {
	d.written, d.blocked = 0, 0
	want := d.message
	switch {
	case want != 0:
	case d.served:
		want = d.clock.now() + d.limits.Idle
	default:
		want = d.clock.now() + d.limits.Read
	}
	return d.move(&d.reading, want)
}

// forWrite is forRead for a write. A peer has the write timeout, more for what it has taken and less for what it has
// kept the server waiting.
func (d *deadlines) forWrite() (by time.Time, set bool) {
	more := time.Duration(d.written/minWriteRate) * time.Second
	return d.move(&d.writing, d.clock.now()+d.limits.Write+more-d.blocked)
}

func (d *deadlines) move(have *time.Duration, want time.Duration) (by time.Time, set bool) {
	if late := want - *have; late >= 0 && late < d.slack {
		return time.Time{}, false
	}
	nap := d.clock.catchUp()
	if d.message != 0 {
		d.message += nap
	}
	want += nap
	*have = want
	d.naps = d.clock.naps.Load()
	return d.clock.zero.Add(want), true
}

// forgive is asked when a deadline has passed. It reports whether the process stood still meanwhile; the next read or
// write sets a new one then, and may be tried again.
func (d *deadlines) forgive() bool {
	d.clock.catchUp()
	naps := d.clock.naps.Load()
	if naps == d.naps {
		return false
	}
	d.naps, d.reading, d.writing = naps, 0, 0
	if d.message != 0 {
		d.message = d.clock.now() + d.limits.Read
	}
	return true
}
