package api

import (
	"context"
	"time"
)

// waiting bounds, by two semaphores, the requests that wait for an SMTP server, because each of them holds a
// connection. A send beyond the bound does not wait: its mail is accepted and queued. The mailer bounds the sends of
// each project. Safe for concurrent use.
type waiting struct {
	ctx   context.Context // ends all waits
	stop  context.CancelFunc
	sends chan struct{} // holds a value per waiting send
	tests chan struct{} // holds a value per running SMTP test
}

// maxTests is how many SMTP tests may run at a time.
const maxTests = 16

func newWaiting(l Limits) *waiting {
	w := &waiting{sends: make(chan struct{}, l.Sends), tests: make(chan struct{}, maxTests)}
	w.ctx, w.stop = context.WithCancel(context.Background())
	return w
}

// begin returns the context for a send's wait, a canceled one if too many sends wait already. Call done after the wait.
func (w *waiting) begin() (ctx context.Context, done func()) {
	if done, ok := take(w.sends); ok {
		return w.ctx, done
	}
	ctx, done = context.WithCancel(w.ctx)
	done()
	return ctx, done
}

// take takes one of the places; ok is false if there is none.
func take(places chan struct{}) (done func(), ok bool) {
	select {
	case places <- struct{}{}:
		return func() { <-places }, true
	default:
		return nil, false
	}
}

// endBefore ends all waits shortly before the context's deadline, while there is time left to answer, or when the
// context ends. undo cancels that.
func (w *waiting) endBefore(ctx context.Context) (undo func()) {
	atEnd := context.AfterFunc(ctx, w.stop)
	deadline, ok := ctx.Deadline()
	if !ok {
		return func() { atEnd() }
	}
	left := time.Until(deadline)
	timer := time.AfterFunc(left-min(left/4, time.Second), w.stop)
	return func() {
		atEnd()
		timer.Stop()
	}
}
