package gate

import "time"

const (
	// minWriteRate is what a peer must take of a long answer, in bytes a second, on top of the write timeout.
	minWriteRate = 16 << 10
	// lastLook is how long a read or write is tried once more after its deadline. The deadline may have passed while the
	// process was stopped (a paused container, SIGSTOP); what the peer sent in that time is still served.
	lastLook = 50 * time.Millisecond
)

// deadlines are the deadlines of one connection. Setting one on a socket is a large part of a resolve's cost, so a
// deadline that is early by less than slack stays: that is one call per slack instead of two per request.
type deadlines struct {
	limits  *Limits
	slack   time.Duration
	served  bool      // a message has been read
	message time.Time // by when the current message must be complete; zero before its first byte
	reading time.Time // the deadline that is set on the socket
	writing time.Time
	late    bool // the current message or its answer has had its last look

	answer  time.Time // when the current answer began; zero before
	written int64     // bytes of the answer
}

// beginMessage starts the read timeout of a message, at its first byte.
func (d *deadlines) beginMessage(now time.Time) {
	if d.message.IsZero() {
		d.message = now.Add(d.limits.Read)
	}
}

// endMessage is called when a message has been read, right before it is answered.
func (d *deadlines) endMessage() {
	d.message, d.served, d.late = time.Time{}, true, false
	d.answer, d.written = time.Time{}, 0
}

// forRead returns the deadline for the next read, and whether it has to be set. now is the current time.
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
	if late := by.Sub(d.reading); late >= 0 && late < d.slack {
		return time.Time{}, false
	}
	d.reading = by
	return by, true
}

// forWrite is forRead for a write. An answer gets the write timeout, and more time for each part that the peer has
// taken.
func (d *deadlines) forWrite(now time.Time) (by time.Time, set bool) {
	if d.answer.IsZero() {
		d.answer = now
	}
	by = d.answer.Add(d.limits.Write + time.Duration(d.written/minWriteRate)*time.Second)
	if late := by.Sub(d.writing); late >= 0 && late < d.slack {
		return time.Time{}, false
	}
	d.writing = by
	return by, true
}

// onceMore returns the deadline of the last look; each message and each answer has one. The socket's deadline must be
// set again after it.
func (d *deadlines) onceMore() (by time.Time, ok bool) {
	if d.late {
		return time.Time{}, false
	}
	d.late, d.reading, d.writing = true, time.Time{}, time.Time{}
	return time.Now().Add(lastLook), true
}
