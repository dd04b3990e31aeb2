// Package standby keeps a store and a ledger in use while their disk fails, is full, is damaged or goes away.
//
// The store always answers. When the disk refuses, a store in memory takes over with what the failed one declares; when
// its data is damaged, that is moved aside and the files fill a new store, while answers still come from the old one as
// far as it can be read. A goroutine probes the disk and goes back to it as soon as it can be used: it opens the store
// there, imports what memory has, and exchanges the two. The ledger has no stand-in: while it cannot be used there is
// none, and its users refuse. A damaged one is moved aside, and a new one taken up.
//
// The package decides which store and which ledger are in use. What that means for answers, caches and mail is its
// user's part, in the hooks of Options: Exchange lets answers come from another store, TakeUp prepares a ledger. Hooks
// that change the store run under the user's lock Applying, so that a change is never made while stores are exchanged.
//
// Reads and writes go to one store, but while the files fill a new one: then reads come from the old store. A Stores that
// was asked for without a directory keeps all in memory, and has nothing to watch.
package standby

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"fingerpost/resolver/ledger"
	"fingerpost/resolver/store"
)

// Options configure a Stores. Dir, StoreCacheBytes, Disk and Rebuild may be zero.
type Options struct {
	Dir             string // the data directory; "" for memory, which is then not a failure
	StoreCacheBytes int64
	Disk            DiskOptions
	Logger          *slog.Logger
	Now             func() time.Time

	// Rebuild applies all files again, because the store has lost their content. It is called again after an error. Nil:
	// only later changes fill the store.
	Rebuild func(ctx context.Context) error
	// Applying is held by its user while the store is changed, and here while it is replaced.
	Applying sync.Locker
	// Check reads what the first answer needs. A store that fails it is not used.
	Check func(st *store.Store) error
	// Exchange makes st the store in use: it calls Use. content says that its content may differ from that of the store
	// before. It is called under Applying.
	Exchange func(st *store.Store, content bool) error
	// TakeUp prepares a ledger before it is used. With an error the ledger is not used.
	TakeUp func(l *ledger.Ledger) error
	// Back is called when a ledger is in use again.
	Back func(l *ledger.Ledger)
}

// DiskOptions configure how the store's disk is watched. Zero values mean the defaults.
type DiskOptions struct {
	Store      func(dir string, o store.Options) (*store.Store, error)    // nil: store.Open
	Ledger     func(dir string, o ledger.Options) (*ledger.Ledger, error) // nil: ledger.Open
	Probe      func(dir string) error                                     // nil: store.Probe
	CheckEvery time.Duration                                              // between checks of the directory; 0: one second
	// first pause between recovery attempts; 0: two seconds
	RetryEvery time.Duration
}

// A Stores is the store and the ledger in use. Its methods may be called from any goroutine.
type Stores struct {
	o Options

	// reads is the store that answers come from, writes the one that changes go to. They differ only while a new store is
	// being filled from the files.
	reads, writes atomic.Pointer[store.Store]
	ledger        atomic.Pointer[ledger.Ledger] // nil while it cannot be used
	paced         atomic.Bool                   // see Pace
	failure       error                         // why the first store is one in memory; nil if that was requested
	watch         watch
}

// Open opens the store, and nothing else yet. It moves a damaged store aside and replaces one that the disk refuses by
// one in memory. It fails only with errors of store.Final.
func Open(o Options) (*Stores, error) {
	s := &Stores{o: o}
	st, failure, err := s.firstStore()
	if err != nil {
		return nil, err
	}
	s.failure = failure
	s.Use(st)
	// Merges that the previous process left wait until the files have been compared with the store.
	s.paced.Store(st.Generation() > 0)
	return s, nil
}

// Reads returns the store that answers come from.
func (s *Stores) Reads() *store.Store { return s.reads.Load() }

// Writes returns the store that changes go to.
func (s *Stores) Writes() *store.Store { return s.writes.Load() }

// Ledger returns the ledger, nil while it cannot be used.
func (s *Stores) Ledger() *ledger.Ledger { return s.ledger.Load() }

// Use lets reads and writes go to st.
func (s *Stores) Use(st *store.Store) {
	s.reads.Store(st)
	s.writes.Store(st)
}

// StandIn reports whether st is in memory because the disk has failed.
func (s *Stores) StandIn(st *store.Store) bool { return st.InMemory() && s.o.Dir != "" }

// Context ends with Stop.
func (s *Stores) Context() context.Context { return s.watch.stopped }

// Pace says whether clients wait for answers: if so, flushes and merges of the store are paced.
func (s *Stores) Pace(on bool) {
	if s.paced.Store(on); on {
		s.writes.Load().Tidy() // the merges that the start postponed
	}
}

// Close closes the stores, after Stop. The ledger is its user's to close. The caller holds Applying.
func (s *Stores) Close() error {
	writes, reads := s.writes.Load(), s.reads.Load()
	err := writes.Close()
	if reads != writes {
		_ = reads.Close() // it has failed already
	}
	return err
}

// Degraded returns why the store or the ledger on disk is not in use. The reason is written for an operator.
func (s *Stores) Degraded() (reason string, bad bool) {
	w := &s.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	if reason = w.store.reason; reason == "" {
		reason = w.ledger.reason
	}
	return reason, reason != ""
}

// Writable reports whether a change written now survives the process. The ledger does not matter for it.
func (s *Stores) Writable() bool {
	s.watch.mu.Lock()
	bad := s.watch.store.reason != ""
	s.watch.mu.Unlock()
	return !bad && s.writes.Load().Err() == nil
}

// firstStore opens the store at the start. failure says why the store is one in memory; nil if that was requested.
func (s *Stores) firstStore() (st *store.Store, failure, err error) {
	if s.o.Dir == "" {
		st, err = s.openMemory()
		return st, nil, err
	}
	if st, err = s.openDisk(storeState{}); err == nil {
		return st, nil, nil
	}
	if store.Final(err) {
		return nil, nil, err
	}
	failure = err
	st, err = s.openMemory()
	return st, failure, err
}

func (s *Stores) openMemory() (*store.Store, error) {
	return store.Open("", store.Options{Logger: s.o.Logger, CacheBytes: s.o.StoreCacheBytes, Paced: &s.paced})
}

// openDisk opens the store in DataDir and moves a damaged one aside. A store that was found damaged in use may still
// open: the damage may be in a part that opening does not read.
func (s *Stores) openDisk(lost storeState) (*store.Store, error) {
	st, err := s.openSound()
	if err == nil && lost.damaged {
		err = errors.Join(fmt.Errorf("%w: %s", store.ErrDamaged, lost.reason), st.Close())
	}
	if !errors.Is(err, store.ErrDamaged) {
		return st, err
	}
	aside, moveErr := store.MoveAside(s.o.Dir, s.o.Now())
	if moveErr != nil {
		return nil, fmt.Errorf("%w; move it aside: %w", err, moveErr)
	}
	s.o.Logger.Warn("store damaged: moved aside, it is rebuilt from the files",
		"error", err, "moved_to", aside)
	s.watch.mu.Lock()
	s.watch.store.damaged = false
	s.watch.mu.Unlock()
	return s.openSound()
}

// openSound opens the store and lets its user read what the first answer needs.
func (s *Stores) openSound() (*store.Store, error) {
	open := s.o.Disk.Store
	if open == nil {
		open = store.Open
	}
	st, err := open(s.o.Dir, store.Options{Logger: s.o.Logger, CacheBytes: s.o.StoreCacheBytes,
		Paced: &s.paced})
	if err != nil {
		return nil, err
	}
	if err = s.o.Check(st); err != nil {
		_ = st.Close() // the read error is the reason to return
		return nil, err
	}
	return st, nil
}
