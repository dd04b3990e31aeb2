package standby

import (
	"context"
	"errors"
	"sync"
	"time"

	"fingerpost/resolver/store"
)

const (
	// maxRetryPause bounds the pause between two attempts on a disk that passes the probe and then fails. Each attempt may
	// leave parked goroutines behind.
	maxRetryPause = time.Minute
	// steadyAfter: if a store on disk lasted this long, its next failure is handled without a pause.
	steadyAfter = 10 * time.Minute
)

// watch watches the disk and recovers from its failures.
type watch struct {
	stop    context.CancelFunc
	stopped context.Context
	done    chan struct{}
	wake    chan struct{} // capacity 1: there is work

	mu    sync.Mutex // guards the fields below
	store storeState
	pause time.Duration // before the next attempt
	next  time.Time     // time of the next attempt
	since time.Time     // when the present store on disk came up

	ledger ledgerState
}

// storeState describes what is wrong with the store on disk.
type storeState struct {
	reason  string       // "" when nothing is wrong
	failed  *store.Store // the failed instance, if it had been opened
	rebuild bool         // the store in memory must still be filled from the files
	damaged bool         // move the data on disk aside, even if it opens
}

// Start begins to watch the disk.
func (s *Stores) Start() {
	w := &s.watch
	w.stopped, w.stop = context.WithCancel(context.Background())
	w.done, w.wake = make(chan struct{}), make(chan struct{}, 1)
	w.since = time.Now()
	if failure := s.failure; failure != nil {
		s.degrade(storeState{reason: failure.Error(), damaged: errors.Is(failure, store.ErrDamaged)})
	}
	go s.runWatch()
}

// Stop ends watching the disk: from here on no hook is called.
func (s *Stores) Stop() {
	s.paced.Store(false) // nobody reads any more, and the store waits for its merges
	s.watch.stop()
	<-s.watch.done
}

// degrade records and logs a failure of the disk.
func (s *Stores) degrade(lost storeState) {
	s.o.Logger.Error("store on disk unavailable: serving from memory, durable writes are refused until it is back",
		"reason", lost.reason)
	w := &s.watch
	w.mu.Lock()
	w.store = lost
	if time.Since(w.since) >= steadyAfter {
		w.pause = 0
	}
	w.next = time.Now().Add(w.pause)
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// runWatch watches the disk until stop.
func (s *Stores) runWatch() {
	defer close(s.watch.done)
	every := s.o.Disk.CheckEvery
	if every <= 0 {
		every = time.Second
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		st, l := s.writes.Load(), s.ledger.Load()
		var lost <-chan struct{}
		if l != nil {
			lost = l.Failed()
		}
		select {
		case <-s.watch.stopped.Done():
			return
		case <-s.watch.wake:
		case <-st.Failed():
			s.storeFailed(st, tick)
		case <-lost:
			if st.Check() != nil { // the same holds for the ledger, and the store's log line is enough
				s.storeFailed(st, tick)
			}
			s.loseLedger(l)
		case <-tick.C:
			_ = st.Check() // its finding arrives through Failed
			if l != nil {
				_ = l.Check()
			}
		}
		s.mend()
	}
}

// storeFailed replaces a failed store by one in memory.
func (s *Stores) storeFailed(st *store.Store, tick *time.Ticker) {
	s.o.Applying.Lock()
	err := s.TakeOver(st) // if an Apply was faster, it is not in use any more
	stuck := err != nil && s.writes.Load() == st
	s.o.Applying.Unlock()
	if l := s.ledger.Load(); l != nil && l.Check() != nil {
		s.loseLedger(l) // now, so that the store's line is the only one
	}
	if stuck {
		s.waitTick(tick)
	}
}

func (s *Stores) waitTick(tick *time.Ticker) {
	select {
	case <-s.watch.stopped.Done():
	case <-tick.C:
	}
}

// mend takes the next step towards recovery.
func (s *Stores) mend() {
	w := &s.watch
	w.mu.Lock()
	lost, due := w.store, !time.Now().Before(w.next)
	bad := lost.reason != "" || w.ledger.reason != ""
	w.mu.Unlock()
	if !bad || !due {
		return
	}
	var err error
	switch {
	case lost.rebuild:
		err = s.rebuild(lost)
	case lost.reason != "":
		err = s.wayBack(lost)
	}
	if err == nil {
		err = s.mendLedger()
	}
	if err != nil {
		s.o.Logger.Debug("store on disk not back yet", "error", err)
		s.retryLater(s.retryEvery())
	}
}

func (s *Stores) retryEvery() time.Duration {
	if s.o.Disk.RetryEvery > 0 {
		return s.o.Disk.RetryEvery
	}
	return 2 * time.Second
}

func (s *Stores) retryLater(pause time.Duration) {
	w := &s.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next = time.Now().Add(max(pause, w.pause))
}

// slower doubles the pause after an attempt that got past the probe.
func (w *watch) slower(least time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pause = min(max(2*w.pause, least), maxRetryPause)
}
