package standby

import (
	"errors"
	"fmt"
	"path/filepath"

	"fingerpost/resolver/ledger"
	"fingerpost/resolver/store"
)

// ledgerState describes what is wrong with the ledger.
type ledgerState struct {
	reason  string         // "" when nothing is wrong
	failed  *ledger.Ledger // the failed instance, if it had been opened
	damaged bool           // move the data on disk aside, even if it opens
	logged  bool           // the failure was logged, so the recovery is logged, too
}

// OpenLedger opens the ledger, once the store is in use. It fails only with errors of store.Final: an unusable ledger
// fails nothing but mail.
func (s *Stores) OpenLedger() error {
	st := s.writes.Load()
	if s.o.Dir == "" {
		l, err := ledger.Open("", ledger.Options{Logger: s.o.Logger})
		s.ledger.Store(l)
		return err
	}
	if st.InMemory() {
		// the disk that the store cannot use has the ledger, too
		s.watch.ledger = ledgerState{reason: "the store on disk is not in use"}
		return nil
	}
	err := s.takeUpLedger(ledgerState{})
	if store.Final(err) {
		return err
	}
	if err != nil {
		s.ledgerUnusable(ledgerState{reason: err.Error(), damaged: errors.Is(err, ledger.ErrDamaged)})
	}
	return nil
}

// ledgerUnusable records and logs a failure of the ledger. If the store has failed too, its log line is enough.
func (s *Stores) ledgerUnusable(state ledgerState) {
	w := &s.watch
	w.mu.Lock()
	state.logged = w.store.reason == ""
	w.ledger = state
	w.mu.Unlock()
	if state.logged {
		s.o.Logger.Error("ledger on disk unavailable: mail is refused until it is back", "reason", state.reason)
	}
}

// loseLedger stops using a failed ledger.
func (s *Stores) loseLedger(l *ledger.Ledger) {
	if s.ledger.CompareAndSwap(l, nil) {
		err := l.Err()
		s.ledgerUnusable(ledgerState{reason: err.Error(), failed: l, damaged: errors.Is(err, ledger.ErrDamaged)})
	}
}

// mendLedger tries to use the ledger again, once the store is on disk.
func (s *Stores) mendLedger() error {
	w := &s.watch
	w.mu.Lock()
	state := w.ledger
	w.mu.Unlock()
	st := s.writes.Load()
	if state.reason == "" || s.StandIn(st) {
		return nil
	}
	if state.failed != nil {
		if err := state.failed.Close(); err != nil && !errors.Is(err, ledger.ErrClosed) {
			return err
		}
	}
	if err := s.probe(s.ledgerDir()); err != nil {
		return err
	}
	w.slower(s.retryEvery())
	if err := s.takeUpLedger(state); err != nil {
		if errors.Is(err, ledger.ErrDamaged) {
			w.mu.Lock()
			w.ledger.damaged = true
			w.mu.Unlock()
		}
		return err
	}
	if state.logged {
		s.o.Logger.Info("ledger on disk is back")
	}
	w.mu.Lock()
	w.ledger = ledgerState{}
	w.mu.Unlock()
	s.o.Back(s.ledger.Load())
	return nil
}

func (s *Stores) ledgerDir() string { return filepath.Join(s.o.Dir, ledger.Folder) }

// openLedger opens the ledger and moves a damaged one aside.
func (s *Stores) openLedger(state ledgerState) (*ledger.Ledger, error) {
	open := s.o.Disk.Ledger
	if open == nil {
		open = ledger.Open
	}
	o := ledger.Options{Logger: s.o.Logger}
	l, err := open(s.ledgerDir(), o)
	if err == nil && state.damaged {
		err = errors.Join(fmt.Errorf("%w: %s", ledger.ErrDamaged, state.reason), l.Close())
	}
	if !errors.Is(err, ledger.ErrDamaged) {
		return l, err
	}
	aside, moveErr := ledger.MoveAside(s.ledgerDir(), s.o.Now())
	if moveErr != nil {
		return nil, fmt.Errorf("%w; move it aside: %w", err, moveErr)
	}
	s.o.Logger.Warn("ledger damaged: moved aside, and what mail can be read of it is recovered", "error", err, "moved_to",
		aside)
	return open(s.ledgerDir(), o)
}

// takeUpLedger opens the ledger and lets its user prepare it before it is used.
func (s *Stores) takeUpLedger(state ledgerState) error {
	l, err := s.openLedger(state)
	if err != nil {
		return err
	}
	if err := s.o.TakeUp(l); err != nil {
		_ = l.Close() // it failed with err
		return err
	}
	s.ledger.Store(l)
	return nil
}
