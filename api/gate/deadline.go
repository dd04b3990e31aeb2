package gate

import "time"

const (
	// minWriteRate is what a peer must take of a long answer, in bytes a second, on top of the write timeout.
	minWriteRate = 16 << 10
	// lastLook is how long a read or write may take that is tried once more after its deadline. The deadline may have
	// passed while the process stood still (a paused container, SIGSTOP): what the peer sent meanwhile is still served.
	lastLook = 50 * time.Millisecond
)

// deadlines are those of one connection. Setting one on a socket is a large part of a resolve's cost, so one that falls
// early by less than slack stays as it is: that is one call per slack, and not two per request.
type deadlines struct {
	limits  *Limits
	slack   time.Duration
	served  bool      // a message has been read
	message time.Time // by when the present message must be there; zero while none has begun
	reading time.Time // what is set on the socket
	writing time.Time
	late    bool // the present message or its answer has had its last look

	answer  time.Time // when the present answer began; zero before
	written int64     // of it
}

// beginMessage gives the peer the read timeout for the message of which a part has come.
func (d *deadlines) beginMessage(now time.Time) {
	if d.message.IsZero() {
		d.message = now.Add(d.limits.Read)
	}
}

// endMessage is called when a message has been read, right before its answer.
func (d *deadlines) endMessage() {
	d.message, d.served, d.late = time.Time{}, true, false
	d.answer, d.written = time.Time{}, 0
}

// forRead returns the deadline to set before the next read, if it needs setting. now is the present time.
func (d *deadlines) forRead(now time.Time) (by time.Time, set bool) {
	d.answer, d.written = time.Time{}, 0
	switch {
	case !d.message.IsZero():
		by = d.message
	case d.served:
		by = now.Add(d.limits.Idle)
	default:
		by = now.Add(d.limits.Read)
	}
	if d.holds(d.reading, by) {
		return time.Time{}, false
	}
	d.reading = by
	return by, true
}

// forWrite is forRead for a write. A peer has the write timeout for an answer, and more for what it has taken of it.
func (d *deadlines) forWrite(now time.Time) (by time.Time, set bool) {
	if d.answer.IsZero() {
		d.answer = now
	}
	by = d.answer.Add(d.limits.Write + time.Duration(d.written/minWriteRate)*time.Second)
	if d.holds(d.writing, by) {
		return time.Time{}, false
	}
	d.writing = by
	return by, true
}

// holds reports whether what is set on the socket need not be moved.
func (d *deadlines) holds(have, want time.Time) bool {
	late := want.Sub(have)
	return late >= 0 && late < d.slack
}

// onceMore returns the deadline of a last look, of which each message and its answer have one. What is set on the socket
// must be set anew after it.
func (d *deadlines) onceMore() (by time.Time, ok bool) {
	if d.late {
		return time.Time{}, false
	}
	d.late, d.reading, d.writing = true, time.Time{}, time.Time{}
	return time.Now().Add(lastLook), true
}
