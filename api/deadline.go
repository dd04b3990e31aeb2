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
// no deadline.
type ticker struct {
	zero    time.Time // with a monotonic reading
	every   time.Duration
	elapsed atomic.Int64
	once    sync.Once
	stopped chan struct{}
}

func newTicker(every time.Duration) *ticker {
	return &ticker{zero: time.Now(), every: every, stopped: make(chan struct{})}
}

// start sets the clock going; further calls do nothing.
func (t *ticker) start() {
	t.once.Do(func() {
		t.elapsed.Store(int64(time.Since(t.zero)))
		go func() {
			beat := time.NewTicker(t.every)
			defer beat.Stop()
			for {
				select {
				case <-beat.C:
					t.elapsed.Store(int64(time.Since(t.zero)))
				case <-t.stopped:
					return
				}
			}
		}()
	})
}

// now is the time since zero, a little late.
func (t *ticker) now() time.Duration { return time.Duration(t.elapsed.Load()) }

// deadlines are those of one connection. They may fall early by the ticker's step and by slack: setting one on a socket
// is dear, so it is done once per slack and not once per request.
type deadlines struct {
	clock   *ticker
	limits  *Limits
	slack   time.Duration
	served  bool          // a message has been read
	message time.Duration // by when the present message must be there; 0 while none has begun
	reading time.Duration // what is set on the socket
	writing time.Duration

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
	*have = want
	return d.clock.zero.Add(want), true
}
