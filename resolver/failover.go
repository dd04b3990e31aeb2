package resolver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"fingerpost/resolver/ledger"
	"fingerpost/resolver/store"
)

// DiskOptions configure how the store's disk is watched. Zero values mean the defaults.
type DiskOptions struct {
	Store      func(dir string, o store.Options) (*store.Store, error)    // nil: store.Open
	Ledger     func(dir string, o ledger.Options) (*ledger.Ledger, error) // nil: ledger.Open
	Probe      func(dir string) error                                     // nil: store.Probe
	CheckEvery time.Duration                                              // between checks of the directory; 0: one second
	// first pause between recovery attempts; 0: two seconds
	RetryEvery time.Duration
}

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
	state state
	pause time.Duration // before the next attempt
	next  time.Time     // time of the next attempt
	since time.Time     // when the present store on disk came up

	ledger ledgerState
}

// state describes what is wrong with the store on disk.
type state struct {
	reason  string       // "" when nothing is wrong
	failed  *store.Store // the failed instance, if it had been opened
	rebuild bool         // the store in memory must still be filled from the files
	damaged bool         // move the data on disk aside, even if it opens
}

// firstStore opens the store at the start. failure says why the store is one in memory; nil if that was requested.
func (r *Resolver) firstStore() (st *store.Store, failure, err error) {
	if r.options.DataDir == "" {
		st, err = r.openMemory()
		return st, nil, err
	}
	if st, err = r.openDisk(state{}); err == nil {
		return st, nil, nil
	}
	if store.Final(err) {
		return nil, nil, err
	}
	failure = err
	st, err = r.openMemory()
	return st, failure, err
}

func (r *Resolver) openMemory() (*store.Store, error) {
	return store.Open("", store.Options{Logger: r.log, CacheBytes: r.options.StoreCacheBytes, Paced: &r.paced})
}

// openDisk opens the store in DataDir and moves a damaged one aside. A store that was found damaged in use may still
// open: the damage may be in a part that opening does not read.
func (r *Resolver) openDisk(s state) (*store.Store, error) {
	st, err := r.openSound()
	if err == nil && s.damaged {
		err = errors.Join(fmt.Errorf("%w: %s", store.ErrDamaged, s.reason), st.Close())
	}
	if !errors.Is(err, store.ErrDamaged) {
		return st, err
	}
	aside, moveErr := store.MoveAside(r.options.DataDir, r.options.Now())
	if moveErr != nil {
		return nil, fmt.Errorf("%w; move it aside: %w", err, moveErr)
	}
	r.log.Warn("store damaged: moved aside, it is rebuilt from the files",
		"error", err, "moved_to", aside)
	r.watch.mu.Lock()
	r.watch.state.damaged = false
	r.watch.mu.Unlock()
	return r.openSound()
}

// openSound opens the store and reads what the first answer needs.
func (r *Resolver) openSound() (*store.Store, error) {
	open := r.options.Disk.Store
	if open == nil {
		open = store.Open
	}
	st, err := open(r.options.DataDir, store.Options{Logger: r.log, CacheBytes: r.options.StoreCacheBytes,
		Paced: &r.paced})
	if err != nil {
		return nil, err
	}
	if _, err = readSettled(st); err != nil {
		_ = st.Close() // the read error is the reason to return
		return nil, err
	}
	return st, nil
}

func (r *Resolver) startWatch(failure error) {
	w := &r.watch
	w.stopped, w.stop = context.WithCancel(context.Background())
	w.done, w.wake = make(chan struct{}), make(chan struct{}, 1)
	w.since = time.Now()
	if failure != nil {
		r.degrade(state{reason: failure.Error(), damaged: errors.Is(failure, store.ErrDamaged)})
	}
	go r.runWatch()
}

func (r *Resolver) stopWatch() {
	r.watch.stop()
	<-r.watch.done
}

// degrade records and logs a failure of the disk.
func (r *Resolver) degrade(s state) {
	r.log.Error("store on disk unavailable: serving from memory, durable writes are refused until it is back", "reason",
		s.reason)
	w := &r.watch
	w.mu.Lock()
	w.state = s
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

// Degraded returns why the store or the ledger on disk is not in use. The reason is written for an operator.
func (r *Resolver) Degraded() (reason string, bad bool) {
	w := &r.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	if reason = w.state.reason; reason == "" {
		reason = w.ledger.reason
	}
	return reason, reason != ""
}

// Writable reports whether a change written now survives the process. The ledger does not matter for it.
func (r *Resolver) Writable() bool {
	r.watch.mu.Lock()
	bad := r.watch.state.reason != ""
	r.watch.mu.Unlock()
	return !bad && r.writes.Load().Err() == nil
}

// takeOver replaces a failed store by one in memory. The caller holds applying. An error means that st is not a failed
// store in use, or that memory has failed too.
func (r *Resolver) takeOver(st *store.Store) error {
	failure := st.Err()
	if failure == nil || r.writes.Load() != st {
		return errors.New("the store in use has not failed")
	}
	s := state{reason: failure.Error(), failed: st, damaged: errors.Is(failure, store.ErrDamaged)}
	mem, err := r.openMemory()
	if err != nil {
		return err
	}
	// Damaged data must not be copied; any other content is as good as what was answered so far.
	if !errors.Is(failure, store.ErrDamaged) && mem.Import(st) == nil {
		err = r.exchange(mem)
	} else if err = mem.Close(); err == nil {
		s.rebuild, err = r.startRebuild(st)
	}
	if err != nil {
		return err
	}
	r.degrade(s)
	return nil
}

// startRebuild sends changes to an empty store while answers still come from the old one, as far as it can be read.
func (r *Resolver) startRebuild(old *store.Store) (rebuild bool, err error) {
	mem, err := r.openMemory()
	if err != nil {
		return false, err
	}
	mem.Continue(old)
	if r.options.Rebuild == nil {
		return false, r.exchangeContent(mem)
	}
	r.writes.Store(mem)
	return true, nil
}

// runWatch watches the disk until stop.
func (r *Resolver) runWatch() {
	defer close(r.watch.done)
	every := r.options.Disk.CheckEvery
	if every <= 0 {
		every = time.Second
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		st, l := r.writes.Load(), r.mail.ledger.Load()
		var lost <-chan struct{}
		if l != nil {
			lost = l.Failed()
		}
		select {
		case <-r.watch.stopped.Done():
			return
		case <-r.watch.wake:
		case <-st.Failed():
			r.storeFailed(st, tick)
		case <-lost:
			if st.Check() != nil { // the same holds for the ledger, and the store's log line is enough
				r.storeFailed(st, tick)
			}
			r.loseLedger(l)
		case <-tick.C:
			_ = st.Check() // its finding arrives through Failed
			if l != nil {
				_ = l.Check()
			}
		}
		r.mend()
	}
}

// storeFailed replaces a failed store by one in memory.
func (r *Resolver) storeFailed(st *store.Store, tick *time.Ticker) {
	r.applying.Lock()
	err := r.takeOver(st) // if an Apply was faster, it is not in use any more
	stuck := err != nil && r.writes.Load() == st
	r.applying.Unlock()
	if l := r.mail.ledger.Load(); l != nil && l.Check() != nil {
		r.loseLedger(l) // now, so that the store's line is the only one
	}
	if stuck {
		r.waitTick(tick)
	}
}

func (r *Resolver) waitTick(tick *time.Ticker) {
	select {
	case <-r.watch.stopped.Done():
	case <-tick.C:
	}
}

// mend takes the next step towards recovery.
func (r *Resolver) mend() {
	w := &r.watch
	w.mu.Lock()
	s, due := w.state, !time.Now().Before(w.next)
	bad := s.reason != "" || w.ledger.reason != ""
	w.mu.Unlock()
	if !bad || !due {
		return
	}
	var err error
	switch {
	case s.rebuild:
		err = r.rebuild(s)
	case s.reason != "":
		err = r.wayBack(s)
	}
	if err == nil {
		err = r.mendLedger()
	}
	if err != nil {
		r.log.Debug("store on disk not back yet", "error", err)
		r.retryLater(r.retryEvery())
	}
}

func (r *Resolver) retryEvery() time.Duration {
	if r.options.Disk.RetryEvery > 0 {
		return r.options.Disk.RetryEvery
	}
	return 2 * time.Second
}

func (r *Resolver) retryLater(pause time.Duration) {
	w := &r.watch
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

// rebuild lets the files fill the store in memory, and then answers from it.
func (r *Resolver) rebuild(s state) error {
	if err := r.options.Rebuild(r.watch.stopped); err != nil {
		return fmt.Errorf("rebuild from the files: %w", err)
	}
	r.applying.Lock()
	defer r.applying.Unlock()
	if err := r.exchangeContent(r.writes.Load()); err != nil {
		return err
	}
	s.rebuild = false
	r.watch.mu.Lock()
	r.watch.state = s
	r.watch.mu.Unlock()
	return nil
}

// wayBack tries to use the disk again: probe it, open the store, import what memory has, exchange.
func (r *Resolver) wayBack(s state) error {
	if s.failed != nil {
		// Close releases the directory's lock once no write of the old instance is in flight.
		if err := s.failed.Close(); err != nil && !errors.Is(err, store.ErrClosed) {
			return err
		}
	}
	if err := r.probe(r.options.DataDir); err != nil {
		return err
	}
	r.watch.slower(r.retryEvery())
	disk, err := r.openDisk(s)
	if err != nil {
		return err
	}
	mem, err := r.moveTo(disk)
	if err != nil {
		if errors.Is(disk.Err(), store.ErrDamaged) {
			w := &r.watch
			w.mu.Lock()
			w.state.damaged = true
			w.mu.Unlock()
		}
		_ = disk.Close() // it failed during the import, whose error is the reason
		return err
	}
	r.log.Info("store on disk is back", "generation", disk.Generation())
	w := &r.watch
	w.mu.Lock()
	w.state, w.since = state{}, time.Now()
	w.mu.Unlock()
	return mem.Close()
}

// probe checks whether the disk would take a store in dir.
func (r *Resolver) probe(dir string) error {
	if probe := r.options.Disk.Probe; probe != nil {
		return probe(dir)
	}
	return store.Probe(dir)
}

// moveTo imports what memory has into disk and answers from there. It returns the replaced store.
func (r *Resolver) moveTo(disk *store.Store) (mem *store.Store, err error) {
	r.applying.Lock()
	defer r.applying.Unlock()
	mem = r.writes.Load()
	if err := disk.Import(mem); err != nil {
		return nil, err
	}
	return mem, r.exchange(disk)
}
