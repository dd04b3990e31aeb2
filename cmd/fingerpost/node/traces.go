package node

import (
	"context"
	"time"
)

// runTraces sends spans to the collector, and returns a function that sends the last ones, after all that makes some
// has ended.
func (n *service) runTraces() (end func()) {
	if n.o.Trace == nil {
		return func() {}
	}
	ctx, stop := context.WithCancel(context.Background())
	sending := n.run(func() error { n.o.Trace.Run(ctx); return nil })
	return func() {
		stop()
		<-sending
		last, cancel := context.WithTimeout(context.Background(), n.flushTime())
		defer cancel()
		n.o.Trace.Flush(last)
	}
}

// flushTime is what is left of the grace period once requests and mails have ended; at least abruptly, at most lastWords.
func (n *service) flushTime() time.Duration {
	return max(min(time.Until(n.manager.ends), lastWords), abruptly)
}
