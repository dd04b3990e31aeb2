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

// catchUp sets the clock, and counts a nap if it was far behind. It may be called from any goroutine: whoever reads the
// clock after a nap sees it counted.
func (t *ticker) catchUp() {
	for {
		then, now := t.elapsed.Load(), int64(time.Since(t.zero))
		if now <= then {
			return
		}
		if time.Duration(now-then) > napSteps*t.every {
			t.naps.Add(1)
		}
		if t.elapsed.CompareAndSwap(then, now) {
			return
		}
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
	naps    int64 // of the clock, that are forgiven

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
	if d.holds(d.reading, d.readBy()) {
		return time.Time{}, false
	}
	d.forgive() // the clock may be behind
	d.reading = d.readBy()
	return d.clock.zero.Add(d.reading), true
}

func (d *deadlines) readBy() time.Duration {
	switch {
	case d.message != 0:
		return d.message
	case d.served:
		return d.clock.now() + d.limits.Idle
	}
	return d.clock.now() + d.limits.Read
}

// forWrite is forRead for a write. A peer has the write timeout, more for what it has taken and less for what it has
// kept the server waiting.
func (d *deadlines) forWrite() (by time.Time, set bool) {
	if d.holds(d.writing, d.writeBy()) {
		return time.Time{}, false
	}
	d.forgive()
	d.writing = d.writeBy()
	return d.clock.zero.Add(d.writing), true
}

func (d *deadlines) writeBy() time.Duration {
	more := time.Duration(d.written/minWriteRate) * time.Second
	return d.clock.now() + d.limits.Write + more - d.blocked
}

// holds reports whether what is set on the socket need not be moved.
func (d *deadlines) holds(have, want time.Duration) bool {
	late := want - have
	return late >= 0 && late < d.slack
}

// forgive reports whether the process has stood still since this was asked last. What is set on the socket is of before
// then, and may have passed: the next read or write sets it anew, and one that failed may be tried again.
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
