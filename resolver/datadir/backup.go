package datadir

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"fingerpost/resolver/ledger"
	"fingerpost/resolver/pebblefs"
	"fingerpost/resolver/store"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// ErrBackupRuns: another backup of the same store is running.
var ErrBackupRuns = errors.New("another backup is under way")

// A Source makes the backups of a running service. The zero value is ready to use.
type Source struct {
	running sync.Mutex
}

// Backup writes an archive of st and l, each as of one moment: it contains every change that has returned before, none
// in part. Reads and writes continue. If the disk has no room for the checkpoints, the backup fails and the store does
// not. After an error in preparing it, nothing was written to w. A store in memory has no backup.
func (s *Source) Backup(w io.Writer, st *store.Store, l *ledger.Ledger, now time.Time) error {
	if st.InMemory() {
		return fmt.Errorf("back up the store: %w: it is in memory only", store.ErrUnavailable)
	}
	if !s.running.TryLock() {
		return ErrBackupRuns
	}
	defer s.running.Unlock()
	err := st.Snapshot(func(storeDir string, copied *store.Store) error {
		return l.Snapshot(func(ledgerDir string, _ *ledger.Ledger) error {
			return write(w, copied, storeDir, ledgerDir, now)
		})
	})
	if err != nil {
		return fmt.Errorf("back up the store: %w", err)
	}
	return nil
}

// BackupDir writes an archive of the store and the ledger in dir, which no process may have open: ErrLocked. It writes
// nothing into dir except its pid into the lock files, and first reads everything: damage is ErrDamaged.
func BackupDir(w io.Writer, dir string, now time.Time) error {
	if err := backupDir(w, dir, now); err != nil {
		return fmt.Errorf("back up the store: %w", err)
	}
	return nil
}

func backupDir(w io.Writer, dir string, now time.Time) (err error) {
	names, err := vfs.Default.List(dir)
	if err != nil {
		return fmt.Errorf("open %s: %w", dir, pebblefs.RootCause(err))
	}
	if !holdsStore(names) {
		return fmt.Errorf("open %s: there is no store in it", dir)
	}
	s, err := store.Open(dir, store.Options{CacheBytes: store.InspectCacheBytes, ReadOnly: true})
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.Verify(); err != nil {
		return err
	}
	ledgerDir := filepath.Join(dir, ledger.Folder)
	l, err := ledger.Open(ledgerDir, ledger.Options{Logger: slog.New(slog.DiscardHandler), ReadOnly: true})
	switch {
	case errors.Is(err, ledger.ErrNoStore): // a damaged one was moved aside, and no start has made another
		ledgerDir = ""
	case err != nil:
		return err
	default:
		defer l.Close()
		if err := l.Verify(); err != nil {
			return err
		}
	}
	return write(w, s, dir, ledgerDir, now)
}

func holdsStore(names []string) bool {
	for _, name := range names {
		if pebblefs.IsStoreFile(name) {
			return true
		}
	}
	return false
}

// write writes an archive of read-only stores, whose files do not change. ledgerDir may be "".
func write(w io.Writer, s *store.Store, storeDir, ledgerDir string, now time.Time) error {
	counts := s.Counts()
	m := &Manifest{
		Kind: archiveKind, Version: archiveVersion, CreatedAt: now.UTC(),
		StoreFormat: store.Format, LedgerFormat: ledger.Format, PebbleFormat: store.PebbleFormat,
		Generation: s.Generation(), Projects: counts.Projects, Domains: counts.Domains,
	}
	paths := make(map[string]string) // by name in the manifest
	for prefix, dir := range map[string]string{"": storeDir, ledgerFolder: ledgerDir} {
		if dir == "" {
			continue
		}
		names, err := s.FS().List(dir)
		if err != nil {
			return pebblefs.WithoutPath(err)
		}
		for _, name := range names {
			if pebblefs.IsStoreFile(name) {
				paths[prefix+name] = filepath.Join(dir, name)
			}
		}
	}
	open := func(name string) (io.ReadCloser, error) { return s.FS().Open(paths[name], vfs.SequentialReadsOption) }
	for _, name := range slices.Sorted(maps.Keys(paths)) {
		f, err := describe(name, open)
		if err != nil {
			return pebblefs.WithoutPath(err)
		}
		m.Files = append(m.Files, f)
	}
	return writeArchive(w, m, open)
}

func describe(name string, open func(string) (io.ReadCloser, error)) (StoredFile, error) {
	in, err := open(name)
	if err != nil {
		return StoredFile{}, err
	}
	sum := sha256.New()
	size, err := io.Copy(sum, in)
	return StoredFile{Name: name, Size: size, SHA256: hex.EncodeToString(sum.Sum(nil))}, errors.Join(err, in.Close())
}
