package store

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// InspectCacheBytes is a block cache large enough to read a store once.
const InspectCacheBytes = 8 << 20

// PebbleFormat is the newest format of Pebble's that this release reads.
const PebbleFormat = uint64(pebbleFormat)

// checkpointDir is where a checkpoint is made and read: inside the store's directory, because its tables are hard
// links.
func (s *Store) checkpointDir() string { return filepath.Join(s.dirName(), "checkpoint.tmp") }

// InMemory reports whether the store has no directory.
func (s *Store) InMemory() bool { return s.dir == "" }

// FS is the file system that the store lies on.
func (s *Store) FS() vfs.FS { return s.fs.Base() }

// Snapshot calls f with a read-only copy of the store as of one moment, and removes the copy afterwards. Every change
// whose Apply has returned is in it; no change is in it in part. Reads and writes continue. Until the end the disk also
// holds what compactions would have freed, and a copy of the log. An error in making the copy does not fail the store.
func (s *Store) Snapshot(f func(dir string, copied *Store) error) error {
	dir := s.checkpointDir()
	defer s.fs.Base().RemoveAll(dir)
	if err := s.fs.Checkpoint(func() error { return s.db.Checkpoint(dir, pebble.WithFlushedWAL()) }); err != nil {
		return err
	}
	copied, err := Open(dir, Options{FS: s.fs.Base(), CacheBytes: InspectCacheBytes, ReadOnly: true})
	if err != nil {
		return err
	}
	return errors.Join(f(dir, copied), copied.Close())
}

// Verify reads every record (blocks have checksums) and compares the counts of projects and domains.
func (s *Store) Verify() error {
	return s.read(func() error {
		it, err := s.db.NewIter(nil)
		if err != nil {
			return err
		}
		var have Counts
		for ok := it.First(); ok && err == nil; ok = it.Next() {
			switch key := it.Key(); key[0] {
			case prefixProject:
				have.Projects++
			case prefixDomain:
				have.Domains++
			}
			_, err = it.ValueAndErr()
		}
		err = errors.Join(err, it.Error(), it.Close())
		_, importing, _ := s.uint(keyImporting) // an import was interrupted, and Open wipes it
		if want := s.Counts(); err == nil && !importing && (have.Projects != want.Projects || have.Domains != want.Domains) {
			err = fmt.Errorf("%w: it holds %d projects and %d domains, and has counted %d and %d",
				ErrDamaged, have.Projects, have.Domains, want.Projects, want.Domains)
		}
		return err
	})
}
