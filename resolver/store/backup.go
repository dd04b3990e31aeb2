package store

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"fingerpost/resolver/pebblefs"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// ErrBackupRuns: another backup of the same store is under way.
var ErrBackupRuns = errors.New("another backup is under way")

// checkpointDir is where a checkpoint is made and read: in the store's directory, because its tables are hard links.
func (s *Store) checkpointDir() string { return filepath.Join(s.dirName(), "checkpoint.tmp") }

// Backup writes an archive of the store as it is at one moment: every change whose Apply has returned before, none in
// part. Reads and writes go on meanwhile. The disk holds for so long what compactions would have freed, and a copy of
// the log; where there is no room for that, the backup fails and not the store. Nothing is written to w if the error is
// of the time before the first byte. A Store without a directory has no backup.
func (s *Store) Backup(w io.Writer, now time.Time) error {
	if s.dir == "" {
		return fmt.Errorf("back up the store: %w: it is in memory only", ErrUnavailable)
	}
	if !s.backups.TryLock() {
		return ErrBackupRuns
	}
	defer s.backups.Unlock()
	dir := s.checkpointDir()
	defer s.fs.Base().RemoveAll(dir)
	if err := s.checkpoint(dir); err != nil {
		return fmt.Errorf("back up the store: %w", err)
	}
	// The numbers are those of the checkpoint, which is behind the store by now.
	copied, err := Open(dir, Options{FS: s.fs.Base(), CacheBytes: inspectCacheBytes, ReadOnly: true})
	if err != nil {
		return fmt.Errorf("back up the store: %w", err)
	}
	defer copied.Close()
	return copied.archive(w, now)
}

// inspectCacheBytes is enough to look into a store once.
const inspectCacheBytes = 8 << 20

// checkpoint has Pebble make one. In a goroutine of its own, because syncing the log may meet the write barrier.
func (s *Store) checkpoint(dir string) error {
	var failed error // of the checkpoint, which is no failure of the store
	err := s.fs.Use(func() error {
		failed = s.fs.Err()
		if failed == nil {
			failed = pebblefs.WithoutPath(s.fs.Base().RemoveAll(dir))
		}
		if failed == nil {
			failed = s.fs.Run(func() error { return s.makeCheckpoint(dir) })
		}
		return nil
	})
	return errors.Join(err, failed)
}

// makeCheckpoint recovers from a panic: Pebble takes a marker's folder that cannot be synced for the end of the process.
// Here it is a folder that is thrown away, and Pebble gives back by deferred calls what it holds.
func (s *Store) makeCheckpoint(dir string) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			failed, ok := cause.(error)
			if !ok {
				panic(cause)
			}
			err = failed
		}
		if err != nil {
			err = fmt.Errorf("make a checkpoint: %w", pebblefs.WithoutPath(err))
		}
	}()
	return s.db.Checkpoint(dir, pebble.WithFlushedWAL())
}

// BackupDir writes an archive of the store in dir, which no process may have open: ErrLocked. It writes nothing into dir
// but its pid into the lock file, and reads the store through before: a damaged one is ErrDamaged.
func BackupDir(w io.Writer, dir string, now time.Time) error {
	s, err := openToRead(dir)
	if err != nil {
		return fmt.Errorf("back up the store: %w", err)
	}
	defer s.Close()
	if err := s.verify(); err != nil {
		return fmt.Errorf("back up the store: %w", err)
	}
	return s.archive(w, now)
}

// openToRead opens a store that must be there.
func openToRead(dir string) (*Store, error) {
	names, err := vfs.Default.List(dir)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", dir, pebblefs.RootCause(err))
	}
	if !holdsStore(names) {
		return nil, fmt.Errorf("open %s: there is no store in it", dir)
	}
	return Open(dir, Options{CacheBytes: inspectCacheBytes, ReadOnly: true})
}

func holdsStore(names []string) bool {
	for _, name := range names {
		if pebblefs.IsStoreFile(name) {
			return true
		}
	}
	return false
}

// archive writes an archive of a store that is open read-only, so that its files stay as they are.
func (s *Store) archive(w io.Writer, now time.Time) error {
	counts := s.Counts()
	format, err := s.uint(keyFormat)
	if err != nil && !errors.Is(err, pebble.ErrNotFound) { // of an empty one
		return fmt.Errorf("back up the store: %w", err)
	}
	m := &Manifest{
		Kind: archiveKind, Version: archiveVersion, CreatedAt: now.UTC(), StoreFormat: max(format, 1),
		PebbleFormat: uint64(s.db.FormatMajorVersion()), Generation: s.Generation(), Projects: counts.Projects, Domains: counts.Domains,
	}
	names, err := s.fs.Base().List(s.dirName())
	if err != nil {
		return fmt.Errorf("back up the store: %w", pebblefs.WithoutPath(err))
	}
	open := func(name string) (io.ReadCloser, error) {
		return s.fs.Base().Open(filepath.Join(s.dirName(), name), vfs.SequentialReadsOption)
	}
	for _, name := range names {
		if !pebblefs.IsStoreFile(name) {
			continue
		}
		f, err := describe(name, open)
		if err != nil {
			return fmt.Errorf("back up the store: %w", pebblefs.WithoutPath(err))
		}
		m.Files = append(m.Files, f)
	}
	if err := writeArchive(w, m, open); err != nil {
		return fmt.Errorf("back up the store: %w", err)
	}
	return nil
}

func describe(name string, open func(string) (io.ReadCloser, error)) (Stored, error) {
	in, err := open(name)
	if err != nil {
		return Stored{}, err
	}
	sum := sha256.New()
	size, err := io.Copy(sum, in)
	return Stored{Name: name, Size: size, SHA256: hex.EncodeToString(sum.Sum(nil))}, errors.Join(err, in.Close())
}

// verify reads every record, whose blocks have checksums, and counts projects, domains and the entries of the mail log.
func (s *Store) verify() error {
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
		_, importing := s.uint(keyImporting) // nil: half of it may be there, and Open wipes it
		if want := s.Counts(); err == nil && importing != nil && (have.Projects != want.Projects || have.Domains != want.Domains) {
			err = fmt.Errorf("%w: it holds %d projects and %d domains, and has counted %d and %d",
				ErrDamaged, have.Projects, have.Domains, want.Projects, want.Domains)
		}
		return errors.Join(err, s.checkMailCounts())
	})
}
