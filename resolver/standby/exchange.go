package standby

import (
	"errors"
	"fmt"
	"time"

	"fingerpost/resolver/store"
)

// TakeOver replaces a failed store by one in memory. The caller holds Applying. An error means that st is not a failed
// store in use, or that memory has failed too.
func (s *Stores) TakeOver(st *store.Store) error {
	failure := st.Err()
	if failure == nil || s.writes.Load() != st {
		return errors.New("the store in use has not failed")
	}
	lost := storeState{reason: failure.Error(), failed: st, damaged: errors.Is(failure, store.ErrDamaged)}
	mem, err := s.openMemory()
	if err != nil {
		return err
	}
	// Damaged data must not be copied; any other content is as good as what was answered so far.
	if !errors.Is(failure, store.ErrDamaged) && mem.Import(st) == nil {
		err = s.o.Exchange(mem, false)
	} else if err = mem.Close(); err == nil {
		lost.rebuild, err = s.startRebuild(st)
	}
	if err != nil {
		return err
	}
	s.degrade(lost)
	return nil
}

// startRebuild sends changes to an empty store while answers still come from the old one, as far as it can be read.
func (s *Stores) startRebuild(old *store.Store) (rebuild bool, err error) {
	mem, err := s.openMemory()
	if err != nil {
		return false, err
	}
	mem.Continue(old)
	if s.o.Rebuild == nil {
		return false, s.o.Exchange(mem, true)
	}
	s.writes.Store(mem)
	return true, nil
}

// rebuild lets the files fill the store in memory, and then answers from it.
func (s *Stores) rebuild(lost storeState) error {
	if err := s.o.Rebuild(s.watch.stopped); err != nil {
		return fmt.Errorf("rebuild from the files: %w", err)
	}
	s.o.Applying.Lock()
	defer s.o.Applying.Unlock()
	if err := s.o.Exchange(s.writes.Load(), true); err != nil {
		return err
	}
	lost.rebuild = false
	s.watch.mu.Lock()
	s.watch.store = lost
	s.watch.mu.Unlock()
	return nil
}

// wayBack tries to use the disk again: probe it, open the store, import what memory has, exchange.
func (s *Stores) wayBack(lost storeState) error {
	if lost.failed != nil {
		// Close releases the directory's lock once no write of the old instance is in flight.
		if err := lost.failed.Close(); err != nil && !errors.Is(err, store.ErrClosed) {
			return err
		}
	}
	if err := s.probe(s.o.Dir); err != nil {
		return err
	}
	s.watch.slower(s.retryEvery())
	disk, err := s.openDisk(lost)
	if err != nil {
		return err
	}
	mem, err := s.moveTo(disk)
	if err != nil {
		if errors.Is(disk.Err(), store.ErrDamaged) {
			w := &s.watch
			w.mu.Lock()
			w.store.damaged = true
			w.mu.Unlock()
		}
		_ = disk.Close() // it failed during the import, whose error is the reason
		return err
	}
	s.o.Logger.Info("store on disk is back", "generation", disk.Generation())
	w := &s.watch
	w.mu.Lock()
	w.store, w.since = storeState{}, time.Now()
	w.mu.Unlock()
	return mem.Close()
}

// probe checks whether the disk would take a store in dir.
func (s *Stores) probe(dir string) error {
	if probe := s.o.Disk.Probe; probe != nil {
		return probe(dir)
	}
	return store.Probe(dir)
}

// moveTo imports what memory has into disk and answers from there. It returns the replaced store.
func (s *Stores) moveTo(disk *store.Store) (mem *store.Store, err error) {
	s.o.Applying.Lock()
	defer s.o.Applying.Unlock()
	mem = s.writes.Load()
	if err := disk.Import(mem); err != nil {
		return nil, err
	}
	return mem, s.o.Exchange(disk, false)
}
