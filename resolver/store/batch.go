package store

import (
	"errors"
	"time"

	"fingerpost/resolver/catalog"

	"github.com/cockroachdb/pebble/v2"
)

// maxBatchBytes is below the size at which Pebble panics, 4 GiB: a million large files.
const maxBatchBytes = 3 << 30

var errTooLarge = errors.New("the change is larger than 3 GiB: apply it in parts")

// batchBytes estimates the size of a change's batch: growing by doubling would take up to three times the memory.
func batchBytes(c *catalog.Change) int {
	const perFile, perObject = 300, 250
	n := 0
	for i := range c.Files {
		f := &c.Files[i]
		n += perFile + len(f.Bytes)
		if f.Declared == nil {
			continue
		}
		for j := range f.Declared.Projects {
			n += perObject * (3 + 2*len(f.Declared.Projects[j].Domains))
		}
		// Templates are stored a second time, with texts from the file itself or from others.
		n += len(f.Bytes)
		for _, dep := range f.Row.Deps {
			n += int(dep.Stamp.Size)
		}
	}
	return min(n, maxBatchBytes)
}

// syncAfter bounds how long a commit may exist only in the memory of this process.
const syncAfter = time.Second

// commit writes a batch, or returns as soon as the write barrier trips. Pebble owns the batch from then on.
func (s *Store) commit(b *pebble.Batch) error {
	err := s.fs.Run(func() error {
		err := b.Commit(pebble.NoSync)
		if err == nil {
			err = b.Close()
		}
		return errors.Join(err, s.readers.outdate())
	})
	// One write and flush of the log is scheduled for all commits until then. Without further writes, Pebble keeps up to
	// 32 KiB of unsynced log in memory, so a kill would lose createdAt and updatedAt of objects that changed hours ago.
	if s.dir != "" && s.fs.Err() == nil && s.syncing.CompareAndSwap(false, true) {
		time.AfterFunc(syncAfter, func() {
			s.syncing.Store(false)
			s.fs.UseInBackground(func() { _ = s.db.LogData(nil, pebble.Sync) })
		})
	}
	return err
}

// commitSynced writes a batch that no Reader shows; with everything committed before, it is durable when this returns.
func (s *Store) commitSynced(b *pebble.Batch) error {
	sync := pebble.Sync
	if s.dir == "" {
		sync = pebble.NoSync // a store in memory has no log
	}
	return s.fs.Run(func() error { return errors.Join(b.Commit(sync), b.Close()) })
}
