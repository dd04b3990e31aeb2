package resolver

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

// firstLedger opens the ledger at the start. An unusable ledger fails nothing but mail.
func (r *Resolver) firstLedger(st *store.Store) error {
	if r.options.DataDir == "" {
		l, err := ledger.Open("", ledger.Options{Logger: r.log})
		r.mail.ledger.Store(l)
		return err
	}
	if st.InMemory() {
		// the disk that the store cannot use has the ledger, too
		r.watch.ledger = ledgerState{reason: "the store on disk is not in use"}
		return nil
	}
	err := r.takeUpLedger(ledgerState{})
	if store.Final(err) {
		return err
	}
	if err != nil {
		r.ledgerUnusable(ledgerState{reason: err.Error(), damaged: errors.Is(err, ledger.ErrDamaged)})
	}
	return nil
}

// ledgerUnusable records and logs a failure of the ledger. If the store has failed too, its log line is enough.
func (r *Resolver) ledgerUnusable(s ledgerState) {
	w := &r.watch
	w.mu.Lock()
	s.logged = w.state.reason == ""
	w.ledger = s
	w.mu.Unlock()
	if s.logged {
		r.log.Error("ledger on disk unavailable: mail is refused until it is back", "reason", s.reason)
	}
}

// loseLedger stops using a failed ledger.
func (r *Resolver) loseLedger(l *ledger.Ledger) {
	if r.mail.ledger.CompareAndSwap(l, nil) {
		err := l.Err()
		r.ledgerUnusable(ledgerState{reason: err.Error(), failed: l, damaged: errors.Is(err, ledger.ErrDamaged)})
	}
}

// mendLedger tries to use the ledger again, once the store is on disk.
func (r *Resolver) mendLedger() error {
	w := &r.watch
	w.mu.Lock()
	s := w.ledger
	w.mu.Unlock()
	st := r.writes.Load()
	if s.reason == "" || r.standIn(st) {
		return nil
	}
	if s.failed != nil {
		if err := s.failed.Close(); err != nil && !errors.Is(err, ledger.ErrClosed) {
			return err
		}
	}
	if err := r.probe(r.ledgerDir()); err != nil {
		return err
	}
	w.slower(r.retryEvery())
	if err := r.takeUpLedger(s); err != nil {
		if errors.Is(err, ledger.ErrDamaged) {
			w.mu.Lock()
			w.ledger.damaged = true
			w.mu.Unlock()
		}
		return err
	}
	if s.logged {
		r.log.Info("ledger on disk is back")
	}
	w.mu.Lock()
	w.ledger = ledgerState{}
	w.mu.Unlock()
	r.startSalvage(r.mail.ledger.Load())
	r.flushAudit()
	return nil
}

func (r *Resolver) ledgerDir() string { return filepath.Join(r.options.DataDir, ledger.Folder) }

// openLedger opens the ledger and moves a damaged one aside.
func (r *Resolver) openLedger(s ledgerState) (*ledger.Ledger, error) {
	open := r.options.Disk.Ledger
	if open == nil {
		open = ledger.Open
	}
	o := ledger.Options{Logger: r.log}
	l, err := open(r.ledgerDir(), o)
	if err == nil && s.damaged {
		err = errors.Join(fmt.Errorf("%w: %s", ledger.ErrDamaged, s.reason), l.Close())
	}
	if !errors.Is(err, ledger.ErrDamaged) {
		return l, err
	}
	aside, moveErr := ledger.MoveAside(r.ledgerDir(), r.options.Now())
	if moveErr != nil {
		return nil, fmt.Errorf("%w; move it aside: %w", err, moveErr)
	}
	r.log.Warn("ledger damaged: moved aside, and what mail can be read of it is recovered", "error", err, "moved_to",
		aside)
	return open(r.ledgerDir(), o)
}

// takeUpLedger opens the ledger and prepares it before it is used: it deletes mails that were refused while the ledger
// failed, continues the ids after its last one, and finds the damaged ledgers whose mail must be copied to it.
func (r *Resolver) takeUpLedger(s ledgerState) error {
	l, err := r.openLedger(s)
	if err != nil {
		return err
	}
	if err := r.takeUpMail(l); err != nil {
		_ = l.Close() // it failed with err
		return err
	}
	r.mail.ledger.Store(l)
	return nil
}
