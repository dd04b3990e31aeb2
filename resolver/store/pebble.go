package store

import (
	"errors"
	"fmt"

	"fingerpost/resolver/pebblefs"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
)

// pebbleFormat is Pebble's on-disk format: the newest of the release that is in go.mod, by its own name and not as
// FormatNewest, because an upgrade of a directory cannot be taken back and must not come with an upgrade of the library.
const pebbleFormat = pebble.FormatValueSeparation

const (
	// memTableBytes: a memtable is in memory twice while one is being flushed. 16 MiB holds the changes of hours.
	memTableBytes = 16 << 20
	// maxOpenFiles leaves descriptors for connections; 100,000 projects make some tens of tables.
	maxOpenFiles = 256
	// bloomBits gives a false positive in 1 of 100 absent names, each of which costs one block read.
	bloomBits = 10
	// indexBlockBytes keeps a table's index in one block: when it grows beyond that it gets two levels, and each read one
	// more search. A table of 32 MiB, compressed, has up to 1 MiB of it.
	indexBlockBytes = 4 << 20
	// oneLevelBytes is the size up to which all tables are on one level (but for what was flushed lately), so that a read
	// searches one table and not one on each of two or three levels. Merging into it rewrites more; files change seldom.
	oneLevelBytes = 1 << 30
	// tableBytes is the size of its tables. Who reads here and there opens a table anew whenever it leaves one.
	tableBytes = 32 << 20
	// flushedTables is twice the number of flushed tables that wait until they are merged into that level, all of which is
	// rewritten then: 2.5 s of CPU with 100,000 projects, which a flood of writes pays every eight flushes. A read of a
	// name asks each one's filter.
	flushedTables = 16
)

// pebbleOptions are Pebble's settings; what is not set here is at Pebble's default on purpose.
func (s *Store) pebbleOptions(o Options) *pebble.Options {
	po := &pebble.Options{
		FS:                 s.fs.FS,
		Cache:              s.cache,
		FormatMajorVersion: pebbleFormat,
		MemTableSize:       memTableBytes,
		MaxOpenFiles:       maxOpenFiles,
		ReadOnly:           s.fs.ReadOnly,
		Logger:             pebblefs.Logger{Log: o.Logger, Dir: s.fs},
		// A store in memory is lost with the process: a log of it would only take memory.
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
	// Compactions by read statistics would make reads take DB.mu, which a flush that is parked may hold; the data is small and
	// mostly at rest, so they would gain nothing.
	po.Experimental.ReadSamplingMultiplier = -1
	// A second merge begins with so many flushed tables; so would the first of a store that is being opened, see compactions.
	po.Experimental.L0CompactionConcurrency = 2 * hurryTables
	po.Experimental.EnableColumnarBlocks = func() bool { return true }
	po.EventListener = &pebble.EventListener{
		BackgroundError: s.backgroundError,
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			s.fs.Trip(pebblefs.Classify(fmt.Errorf("read %s: %w", s.fs.PathBase(info.Path), errors.Join(info.Details, errRecord)), s.fs.Missing()))
		},
	}
	s.backlog.listen(po.EventListener)
	return po
}

// compactions is how many merges may run: one at rest, a second one while a bulk load piles up, as the machine is there for
// resolve. None begins while the store is opened, because Pebble would wait for it to end; see Tidy.
func (s *Store) compactions() (lower, upper int) {
	if s.opening.Load() {
		return 0, 1
	}
	return 1, 2
}

// Tidy begins the merges that were due when the store was opened, and returns at once. Without it they begin when the
// store has been written to for long enough.
func (s *Store) Tidy() {
	go func() {
		// Pebble takes up what is due with a flush only. A store that fails here has said so itself.
		_ = s.read(func() error {
			if 2*s.db.Metrics().Levels[0].Sublevels < flushedTables {
				return nil
			}
			_, err := s.db.AsyncFlush()
			return err
		})
	}()
}

// backgroundError is called by a flush or compaction that failed, which Pebble would start again at once.
func (s *Store) backgroundError(err error) {
	if !s.fs.Closing() {
		s.fs.Fail(err)
	}
}
