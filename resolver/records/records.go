// Package records gives what package ledger keeps to those who need it, while the ledger fails, is replaced or is being
// recovered.
//
// # What it promises
//
// A call works on the ledger that is in use, and again if that was replaced before the call did anything. While there is
// none, calls are refused with UNAVAILABLE. Mail that was refused is not sent later. The ids of mails increase over
// restarts and lost ledgers. What a damaged ledger still has is copied into the new one in the background: first what
// decides whether a mail is accepted and sent, then the log. What is lost is told as a MailGap.
//
// # What it needs
//
// Package standby opens the ledger and moves a damaged one aside; it calls TakeUp before a ledger is used and Back when one
// is in use again.
//
// # What it does not do
//
// It makes no entries of the audit trail (package trail does), sends no mail, and knows nothing of the files. Its users
// declare the interfaces that they need of it.
package records

import (
	"errors"
	"log/slog"
	"sync"
	"time"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/ledger"
	"fingerpost/resolver/standby"
)

// Options configure Records. All are required but Recovered.
type Options struct {
	DataDir string // "" for a ledger in memory
	Logger  *slog.Logger
	Now     func() time.Time
	// Recovered is called when the queue and the audit trail of damaged ledgers are in the one in use.
	Recovered func()
}

// Records are what the ledger in use keeps. The methods may be called from any goroutine.
type Records struct {
	o      Options
	stores *standby.Stores

	// accepting is read-locked by AcceptMail: a writer of it knows all doubtful mails.
	accepting sync.RWMutex
	named     sync.Mutex // held while named values are changed

	mu        sync.Mutex     // guards the fields below
	former    *ledger.Ledger // the last one that was taken up
	last      int64          // highest id of a mail given out
	stored    int64          // highest id accepted
	doubtful  []int64        // mails whose AcceptMail failed; their batches may still be on disk
	refused   []int64        // the doubtful mails that may be in one of asides
	gaps      []MailGap      // of the ledger in use
	asides    []string       // damaged ledgers whose mail is not yet salvaged
	recovered bool           // the parts of those that decide whether a mail is accepted and sent
	salvaged  chan struct{}  // closed when the last salvage has ended; nil before the first
}

// New returns the records of a ledger that is still to be opened. Call Use before the ledger is.
func New(o Options) *Records { return &Records{o: o} }

// Use sets the stores, which open the ledger and call TakeUp.
func (r *Records) Use(stores *standby.Stores) { r.stores = stores }

// recovering reports whether mail of damaged ledgers is not in the ledger yet. The caller holds mu.
func (r *Records) recovering() bool { return len(r.asides) > 0 }

// TrailLedger returns the ledger that takes entries of the audit trail, nil while none does: the entries of a damaged one
// come before new ones.
func (r *Records) TrailLedger() *ledger.Ledger {
	l := r.stores.Ledger()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.recovering() && !r.recovered {
		return nil
	}
	return l
}

// Auditable reports whether the audit trail takes entries: otherwise a write of a client is refused.
func (r *Records) Auditable() bool { return r.TrailLedger() != nil }

// ledgerInUse returns the ledger. It refuses mail while a store in memory replaces the one on disk, because both are on
// the same disk, and until the queue of a damaged ledger is known.
func (r *Records) ledgerInUse() (*ledger.Ledger, error) {
	l := r.stores.Ledger()
	if l == nil || r.stores.StandIn(r.stores.Writes()) {
		return nil, catalog.Unavailable("mail cannot be stored until the store on disk is back")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.recovering() && !r.recovered {
		return nil, catalog.Unavailable("mail is being recovered from a damaged store")
	}
	return l, nil
}

// withLedger runs f on the ledger, and again if the ledger was replaced before f did anything.
func (r *Records) withLedger(f func(l *ledger.Ledger) error) error {
	for {
		l, err := r.ledgerInUse()
		if err != nil {
			return err
		}
		err = f(l)
		if errors.Is(err, ledger.ErrClosed) && l != r.stores.Ledger() {
			continue
		}
		return clientError(err)
	}
}

// withLog runs f on the ledger, also while mail of a damaged one is being recovered into it.
func (r *Records) withLog(f func(l *ledger.Ledger) error) error {
	for {
		l := r.stores.Ledger()
		if l == nil || r.stores.StandIn(r.stores.Reads()) {
			return catalog.Unavailable("neither mail log nor audit trail can be read until the store on disk is back")
		}
		err := f(l)
		if errors.Is(err, ledger.ErrClosed) && l != r.stores.Ledger() {
			continue
		}
		if err != nil {
			return catalog.Unreadable(err)
		}
		return nil
	}
}

// clientError maps the ledger's error to the client's.
func clientError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ledger.ErrNoMail):
		return catalog.NotFound("mail")
	case errors.Is(err, ledger.ErrMailEnded):
		return &catalog.Error{Code: catalog.CodeConflict, Message: "the mail has reached its end"}
	case errors.Is(err, ledger.ErrUnavailable), errors.Is(err, ledger.ErrDamaged), errors.Is(err, ledger.ErrClosed),
		errors.Is(err, ledger.ErrNewer):
		return catalog.Unavailable("the mail store is not available at the moment")
	}
	return err
}
