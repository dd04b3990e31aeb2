package mailapi

import (
	"context"
	"sync"
	"time"

	"fingerpost/resolver/share"
)

// Waits bounds the requests that wait for an SMTP server, because each of them holds a
// connection. A send beyond the bound does not wait: its mail is accepted and queued. The mailer bounds the sends of
// each project. Safe for concurrent use.
type Waits struct {
	ctx   context.Context // ends all waits
	stop  context.CancelFunc
	sends chan struct{} // holds a value per waiting send
	// tests are the places of running SMTP tests, shared by key: a silent server holds each for 15 s.
	tests *share.Places

	watched sync.Map // see Watch
}

// maxTests is how many SMTP tests may run at a time.
const maxTests = 16

// NewWaits makes the Waits of a server, of which at most the given number of sends wait.
func NewWaits(sends int) *Waits {
	w := &Waits{sends: make(chan struct{}, sends), tests: share.New(maxTests)}
	w.ctx, w.stop = context.WithCancel(context.Background()) //nolint:gosec // stop ends it
	return w
}

// begin returns the context for a send's wait, a canceled one if too many sends wait already. Call done after the wait.
func (w *Waits) begin() (ctx context.Context, done func()) {
	select {
	case w.sends <- struct{}{}:
		return w.ctx, func() { <-w.sends }
	default:
		ctx, done = context.WithCancel(w.ctx)
		done()
		return ctx, done
	}
}

// EndBefore ends all waits shortly before the context's deadline, while there is time left to answer, or when the
// context ends. undo cancels that.
func (w *Waits) EndBefore(ctx context.Context) (undo func()) {
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

// Watch has the steps of the SMTP test with a request id told while it runs: the answer comes at its end. stop ends
// that.
func (w *Waits) Watch(requestID string, tell func(name string, took time.Duration)) (stop func()) {
	w.watched.Store(requestID, tell)
	return func() { w.watched.Delete(requestID) }
}
