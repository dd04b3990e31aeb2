package gate

import "sync/atomic"

// A life is the state of a Conn. It decides whether the connection may be closed now: the library takes one in the fast
// path for idle, and the gate closes quiet ones to make room; neither may cut off an answer.
type life struct{ state atomic.Int32 }

const (
	waits   int32 = iota // for a request, or for the rest of its head
	handed               // the library or a handler has a request
	answers              // the fast path has one
	closed
)

// wait reports false where the connection has been closed.
func (l *life) wait() bool { return l.state.CompareAndSwap(handed, waits) || l.state.Load() == waits }

// hand reports false where the connection has been closed.
func (l *life) hand() bool { return l.state.CompareAndSwap(waits, handed) }

// beginAnswer reports false where the connection has been closed.
func (l *life) beginAnswer() bool { return l.state.CompareAndSwap(waits, answers) }

// endAnswer reports false where the connection has been closed meanwhile, which is left to the caller.
func (l *life) endAnswer() bool { return l.state.CompareAndSwap(answers, waits) }

// revive makes a connection that was closed meanwhile what it was, for a request that is still to be answered.
func (l *life) revive() { l.state.Store(waits) }

// close reports whether there is something to close now.
func (l *life) close() bool {
	was := l.state.Swap(closed)
	return was == waits || was == handed
}

// evict is close for a connection that has no request.
func (l *life) evict() bool { return l.state.CompareAndSwap(waits, closed) }

func (l *life) quiet() bool { return l.state.Load() == waits }

func (l *life) over() bool { return l.state.Load() == closed }
