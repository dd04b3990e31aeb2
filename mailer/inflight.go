package mailer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// An inflight admits work until it is closed, and lets Drain wait for the work inside. Work is every call of the ledger or
// the carrier.
type inflight struct {
	mu     sync.Mutex // guards closed and timers, and that no work enters once it is closed
	closed chan struct{}
	timers map[string]func() bool // stop functions of every's timers
	inside sync.WaitGroup

	attempts context.Context // of all attempts; ends when Drain cuts them off
	cut      context.CancelFunc

	ledgerUse sync.RWMutex // guards abandoned, and all use of the ledger while abandoned is false
	abandoned bool         // Drain has stopped waiting for attempts
}

func newInflight() *inflight {
	f := &inflight{closed: make(chan struct{}), timers: map[string]func() bool{}}
	f.attempts, f.cut = context.WithCancel(context.Background())
	return f
}

// begin starts work that Drain waits for. It returns false once Drain has begun. Call end after the work.
func (m *Mailer) begin() bool {
	m.inflight.mu.Lock()
	defer m.inflight.mu.Unlock()
	if m.draining() {
		return false
	}
	m.inflight.inside.Add(1)
	return true
}

func (m *Mailer) end() { m.inflight.inside.Done() }

// every calls f periodically until the Mailer drains, never twice at the same time.
func (m *Mailer) every(name string, first, then time.Duration, f func()) {
	m.inflight.mu.Lock()
	defer m.inflight.mu.Unlock()
	if m.draining() {
		return
	}
	m.inflight.timers[name] = m.clock.AfterFunc(first, func() {
		if !m.begin() {
			return
		}
		defer m.end()
		f()
		m.every(name, then, then, f)
	})
}

// draining reports whether Drain has begun.
func (m *Mailer) draining() bool {
	select {
	case <-m.inflight.closed:
		return true
	default:
		return false
	}
}

// cutOffPatience is how long attempts that were cut off may take to store their outcome. Attempts that wait for the
// reply to the final dot are not cut off, see smtp.Transport.Send.
const cutOffPatience = 5 * time.Second

// Drain stops accepting mail and starting attempts, and waits for the running ones until ctx ends; then it cuts them
// off. The next Mailer tries again what had reached no server, and treats the rest as uncertain. When Drain returns,
// the ledger may be closed; an error means that an outcome could not be stored. No mail is lost, with Drain or without.
func (m *Mailer) Drain(ctx context.Context) error {
	m.inflight.mu.Lock()
	if m.draining() {
		m.inflight.mu.Unlock()
		return errors.New("drain mailer: it drains already")
	}
	close(m.inflight.closed)
	for _, stop := range m.inflight.timers {
		stop()
	}
	m.inflight.mu.Unlock()
	m.mu.Lock()
	for _, b := range m.outboxes {
		b.stop()
	}
	m.mu.Unlock()
	done := make(chan struct{})
	go func() {
		m.inflight.inside.Wait()
		close(done)
	}()
	defer m.inflight.cut()
	select {
	case <-done:
	case <-ctx.Done():
		m.inflight.cut()
		select {
		case <-done:
		case <-time.After(cutOffPatience):
			m.inflight.ledgerUse.Lock()
			defer m.inflight.ledgerUse.Unlock()
			m.inflight.abandoned = true
			m.options.Logger.Warn("mails were handed over whole, and their servers have not said whether they take them",
				"mails", m.counters.attempts.Load())
			return nil
		}
	}
	m.saveAll()
	if m.mu.Lock(); len(m.unsaved) > 0 {
		defer m.mu.Unlock()
		return fmt.Errorf("drain mailer: the outcomes of %d attempts could not be stored, and count as uncertain",
			len(m.unsaved))
	}
	m.mu.Unlock()
	return nil
}
