package gate

import "sync/atomic"

// A life is the state of a Conn. It decides whether the connection may be closed now. The library considers a
// connection idle while the fast path answers it, and the gate closes quiet connections to make room; neither may cut off
// an answer.
type life struct{ state atomic.Int32 }

const (
	waits   int32 = iota // for a request, or for the rest of its head
	handed               // the library or a handler has a request
	answers              // the fast path is writing an answer
	closed
)

// wait moves to waits. It returns false if the connection has been closed.
func (l *life) wait() bool { return l.state.CompareAndSwap(handed, waits) || l.state.Load() == waits }

// hand moves to handed. It returns false if the connection has been closed.
func (l *life) hand() bool { return l.state.CompareAndSwap(waits, handed) }

// beginAnswer moves to answers. It returns false if the connection has been closed.
func (l *life) beginAnswer() bool { return l.state.CompareAndSwap(waits, answers) }

// endAnswer moves back to waits. It returns false if the connection was closed during the answer; the caller then
// closes it.
func (l *life) endAnswer() bool { return l.state.CompareAndSwap(answers, waits) }

// revive undoes a close that came during the fast path, because a request still has to be answered.
func (l *life) revive() { l.state.Store(waits) }

// close reports whether the caller has to close the socket now.
func (l *life) close() bool {
	was := l.state.Swap(closed)
	return was == waits || was == handed
}

// evict is close for a connection that has no request.
func (l *life) evict() bool { return l.state.CompareAndSwap(waits, closed) }

func (l *life) quiet() bool { return l.state.Load() == waits }

func (l *life) over() bool { return l.state.Load() == closed }
