package store

import (
	"errors"
	"fmt"

	"fingerpost/resolver/pebblefs"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
)

// pebbleFormat is Pebble's on-disk format: the newest of the release in go.mod. It is named explicitly, not
// FormatNewest, because an upgrade of a directory is irreversible and must not happen with an upgrade of the library.
const pebbleFormat = pebble.FormatValueSeparation

const (
	// memTableBytes: a memtable takes twice its size while it is flushed. 16 MiB holds the changes of hours.
	memTableBytes = 16 << 20
	// maxOpenFiles leaves descriptors for connections; 100,000 projects are a few dozen tables.
	maxOpenFiles = 256
	// bloomBits gives a false positive for 1 in 100 absent names; each costs one block read.
	bloomBits = 10
	// indexBlockBytes keeps a table's index in one block: a larger index gets two levels, and each read one more search.
	// The index of a table of 32 MiB, compressed, takes up to 1 MiB.
	indexBlockBytes = 4 << 20
	// oneLevelBytes is the size up to which all tables but the flushed ones are on one level, so that a read searches one
	// table instead of one on each of two or three levels. Merges rewrite more for it; files change seldom.
	oneLevelBytes = 1 << 30
	// tableBytes is the size of a table. Random reads open another table each time they leave one.
	tableBytes = 32 << 20
	// flushedTables is twice the number of flushed tables that wait to be merged into that level. The merge rewrites the
	// whole level: 2.5 s of CPU with 100,000 projects, once every eight flushes under a flood of writes. A read of a name
	// asks the filter of each flushed table.
	flushedTables = 16
)

// pebbleOptions are Pebble's settings; settings not made here keep Pebble's default on purpose.
func (s *Store) pebbleOptions(o Options) *pebble.Options {
	po := &pebble.Options{
		FS:                 s.fs.FS,
		Cache:              s.cache,
		FormatMajorVersion: pebbleFormat,
		MemTableSize:       memTableBytes,
		MaxOpenFiles:       maxOpenFiles,
		ReadOnly:           s.fs.ReadOnly,
		Logger:             pebblefs.Logger{Log: o.Logger, Dir: s.fs},
		// A store in memory is lost with the process: a log would only take memory.
		DisableWAL:                 s.dir == "",
		CompactionConcurrencyRange: s.compactions,
		L0CompactionThreshold:      flushedTables,
		L0StopWritesThreshold:      stopTables,
		LBaseMaxBytes:              oneLevelBytes,
	}
	for i := range po.TargetFileSizes {
		po.TargetFileSizes[i] = tableBytes
	}
	for i := range po.Levels {
		po.Levels[i].FilterPolicy = bloom.FilterPolicy(bloomBits)
		po.Levels[i].IndexBlockSize = indexBlockBytes
	}
	// Compactions by read statistics would make reads take DB.mu, which a parked flush may hold. They would gain nothing:
	// the data is small and rarely changes.
	po.Experimental.ReadSamplingMultiplier = -1
	// A second merge begins at this number of flushed tables; the first merge of a store that is being opened too, see
	// compactions.
	po.Experimental.L0CompactionConcurrency = 2 * hurryTables
	po.Experimental.EnableColumnarBlocks = func() bool { return true }
	po.EventListener = &pebble.EventListener{
		BackgroundError: s.backgroundError,
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			s.fs.Trip(pebblefs.Classify(fmt.Errorf("read %s: %w", s.fs.PathBase(info.Path), errors.Join(info.Details,
				errRecord)), s.fs.Missing()))
		},
	}
	s.backlog.listen(po.EventListener)
	return po
}

// compactions returns how many merges may run: one, paced, and a second while a bulk load piles up, because the machine
// is there for resolve. None starts while the store is being opened, because Pebble would wait for it to end; see Tidy.
func (s *Store) compactions() (lower, upper int) {
	if s.opening.Load() {
		return 0, 1
	}
	return 1, 2
}

// Tidy starts the merges that were due at Open and returns at once. Without it they start after enough writes.
func (s *Store) Tidy() {
	go func() {
		// Pebble starts due merges only with a flush. A failure of the store is reported elsewhere.
		_ = s.read(func() error {
			if 2*s.db.Metrics().Levels[0].Sublevels < flushedTables {
				return nil
			}
			_, err := s.db.AsyncFlush()
			return err
		})
	}()
}

// backgroundError handles a failed flush or compaction, which Pebble would otherwise retry at once.
func (s *Store) backgroundError(err error) {
	if !s.fs.Closing() {
		s.fs.Fail(err)
	}
}
