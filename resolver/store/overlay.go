package store

import (
	"fmt"
	"time"

	"fingerpost/resolver/catalog"

	"github.com/cockroachdb/pebble/v2"
)

// An Overlay is the newest state of a Store with other declarations in some files, of which nothing is stored: the state
// of a proposal. What the Store commits meanwhile shows as well. It is for one goroutine. Its files need not be judged: of
// two that claim one name, the one that was put last has it.
type Overlay struct {
	State
	batch  *pebble.Batch
	at     time.Time
	counts Counts
}

// Overlay returns an Overlay without files. at is the time of what differs from what is stored.
func (s *Store) Overlay(at time.Time) (o *Overlay, err error) {
	err = s.read(func() error {
		b := s.db.NewIndexedBatch()
		o = &Overlay{State: State{fs: s.fs, from: b, overlaid: true}, batch: b, at: at, counts: s.Counts()}
		return nil
	})
	return o, err
}

// Put makes a change of files part of the Overlay, as Store.Apply would make it. An object whose content stays keeps its
// times. After an error the Overlay shows a part of the change.
func (o *Overlay) Put(files ...catalog.FileChange) (*Effect, error) {
	w := &writer{s: &o.State, b: o.batch, now: o.at.UTC().Truncate(time.Microsecond), counts: o.counts,
		effect: new(Effect), unaudited: true}
	err := o.read(func() error {
		if err := w.change(&catalog.Change{Files: files}); err != nil {
			return err
		}
		return w.err
	})
	if err != nil {
		return nil, fmt.Errorf("put files over what is stored: %w", err)
	}
	o.counts = w.counts
	return w.effect, nil
}

// Close releases the Overlay.
func (o *Overlay) Close() error { return o.batch.Close() }
