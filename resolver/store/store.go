package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"fingerpost/resolver/pebblefs"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Format is the version of the key layout in doc.go.
const Format = 13

// startEmpty says how to start without the store, and what that loses.
const startEmpty = "move everything in it but the folder \"ledger\" away: the files fill a new store, and only createdAt " +
	"and updatedAt begin again"

// DefaultCacheBytes is the default of Options.CacheBytes: room for the records of 100,000 projects with 300,000 domains
// and for the memtables, which Pebble counts against it. Memory is taken as needed.
const DefaultCacheBytes = 256 << 20

// Options are the settings of a Store. The zero value is usable.
type Options struct {
	Logger     *slog.Logger // nil: slog.Default. Pebble logs at debug level
	FS         vfs.FS       // nil: the disk, or memory for a Store without a directory
	CacheBytes int64        // size of the block cache; 0: DefaultCacheBytes
	Paced      *atomic.Bool // while true, flushes and compactions are paced; may be nil
	// ReadOnly opens an existing store, locks out other processes, and changes nothing in it. The error for a missing
	// store is an ErrNoStore. Only reads may be called.
	ReadOnly bool
	// NewEpoch starts a new epoch, for a store that goes back to an earlier state.
	NewEpoch bool
}

// A Store is an open store. Its methods are safe for concurrent use; Apply, Import and SetDecoderRevision exclude each
// other.
type Store struct {
	State
	dir     string // "" in memory
	db      *pebble.DB
	backlog backlog
	paced   *atomic.Bool // see Options
	cache   *pebble.Cache
	options *pebble.Options
	readers readers
	opening atomic.Bool    // Pebble is being opened
	syncing atomic.Bool    // a sync of the log is scheduled
	bulks   sync.WaitGroup // bulks being cleared away

	write      sync.Mutex // held by Apply, Import and every other writer of what the files declare
	filling    bool       // guarded by write: the store was empty, and its first load has not ended
	reserved   uint64     // guarded by write, see position.go
	epoch      atomic.Pointer[string]
	generation atomic.Uint64
	counts     atomic.Pointer[Counts]
}

// Counts are the numbers of objects in a store.
type Counts struct {
	Projects, Domains int
	Wildcards         int // how many of the domains
}

// Open opens or creates the store in dir; "" makes one in memory. It does not hang when the disk refuses: errors are
// ErrLocked, ErrNewer, ErrOlder, ErrUnavailable or ErrDamaged.
func Open(dir string, o Options) (*Store, error) {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.CacheBytes <= 0 {
		o.CacheBytes = DefaultCacheBytes
	}
	s := &Store{dir: dir, paced: o.Paced}
	s.cache = pebble.NewCache(o.CacheBytes)
	fsOptions := pebblefs.Options{ReadOnly: o.ReadOnly, AtEase: s.atEase, StartEmpty: startEmpty}
	s.fs = pebblefs.NewDir(dir, o.FS, fsOptions, func() {
		if s.fs.Err() == nil {
			s.cache.Unref()
		} else {
			s.cache.Reserve(int(o.CacheBytes)) // evicts the blocks: a store that failed cannot close its cache
		}
	})
	s.fs.Spare = s.checkpointDir()
	if s.fs.Disk && !s.fs.ReadOnly {
		pebblefs.Narrow(s.dirName(), ownFiles, o.Logger)
	}
	if err := s.fs.Start(func() error { return s.open(o) }); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Store) open(o Options) error {
	if err := s.fs.Inspect(uint64(pebbleFormat)); err != nil {
		return err
	}
	s.opening.Store(true)
	s.options = s.pebbleOptions(o)
	s.options.EnsureDefaults()
	db, err := pebble.Open(s.dirName(), s.options)
	s.opening.Store(false)
	if err != nil {
		return err
	}
	s.db, s.from = db, db
	s.backlog.flushed.Store(db.Metrics().Levels[0].TablesCount)
	if err = s.begin(o.NewEpoch); err != nil {
		s.fs.EndStart()
		_ = db.Close() // begin's error is the one to return
	}
	return err
}

func (s *Store) dirName() string { return s.fs.Name() }

// begin checks the version of the layout, cleans up after an interrupted Import, and loads what is kept in memory.
func (s *Store) begin(newEpoch bool) error {
	if err := s.checkFormat(); err != nil {
		return err
	}
	_, importing, err := s.uint(keyImporting)
	if err != nil {
		return err
	}
	if importing {
		if s.fs.ReadOnly {
			return fmt.Errorf("%w: its first load was cut short; the next start fills it anew", ErrDamaged)
		}
		if err := s.wipe(); err != nil {
			return err
		}
	}
	if err := s.loadCounters(); err != nil {
		return err
	}
	if err := s.loadPosition(newEpoch); err != nil {
		return err
	}
	if !s.fs.ReadOnly {
		// Left by a killed process; a failure to remove them harms nothing.
		_, _ = s.fs.Base().RemoveAll(s.checkpointDir()), s.fs.Base().RemoveAll(s.bulkDir())
	}
	return s.fs.Note()
}

func (s *Store) checkFormat() error {
	v, found, err := s.uint(keyFormat)
	if err != nil {
		return err
	}
	if found {
		return s.fs.CheckFormat("store format", v, Format)
	}
	it, err := s.db.NewIter(nil)
	if err != nil {
		return err
	}
	foreign := it.First()
	if err := it.Close(); err != nil {
		return err
	}
	if foreign {
		return fmt.Errorf("%w: it holds data, but no store format", ErrDamaged)
	}
	if s.fs.ReadOnly {
		return nil // empty
	}
	return s.db.Set(keyFormat, binary.AppendUvarint(nil, Format), pebble.NoSync)
}

func (s *Store) loadCounters() error {
	generation, _, err := s.uint(keyGeneration)
	if err != nil {
		return err
	}
	s.generation.Store(generation)
	counts, err := readCounts(s)
	if err != nil {
		return err
	}
	s.counts.Store(&counts)
	return s.loadFilling()
}

// loadFilling finds out whether a first load has to fill the store, or to go on filling it.
func (s *Store) loadFilling() error {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{prefixFile}, UpperBound: []byte{prefixFile + 1}})
	if err != nil {
		return err
	}
	s.filling = !it.First() || s.generation.Load() == 0
	return errors.Join(it.Error(), it.Close())
}

// uint reads a number; a missing key and an empty value are 0.
func (s *State) uint(key []byte) (n uint64, found bool, err error) {
	v, err := s.load(key)
	if len(v) > 0 {
		size := 0
		if n, size = binary.Uvarint(v); size <= 0 {
			err = errRecord
		}
	}
	return n, v != nil, err
}

// Generation returns the number of applied changes; 0 in a new store.
func (s *Store) Generation() uint64 { return s.generation.Load() }

// Counts returns the number of objects from memory.
func (s *Store) Counts() Counts { return *s.counts.Load() }

// DecoderRevision returns the value that SetDecoderRevision stored, initially 0.
func (s *Store) DecoderRevision() (v uint64, err error) {
	err = s.read(func() error { v, _, err = s.uint(keyDecoder); return err })
	return v, err
}

// SetDecoderRevision stores the revision of the files' decoder that produced the content. With another revision all
// files have to be parsed again, whatever the file table says.
func (s *Store) SetDecoderRevision(v uint64) error {
	s.write.Lock()
	defer s.write.Unlock()
	return s.read(func() error {
		b := s.db.NewBatch()
		if err := b.Set(keyDecoder, binary.AppendUvarint(nil, v), nil); err != nil {
			return err
		}
		return s.commit(b)
	})
}

// Failed is closed when the store can no longer be written; Err then returns the reason.
func (s *Store) Failed() <-chan struct{} { return s.fs.Failed() }

// Err returns nil, or the first ErrUnavailable or ErrDamaged. Its text has no path.
func (s *Store) Err() error { return s.fs.Err() }

// Check fails the store when its directory is not the one that was opened: writes into a deleted directory would
// succeed and be lost. It costs two stat calls.
func (s *Store) Check() error { return s.fs.Check() }

// Close waits for running reads and writes and closes the store; a failed store is abandoned and its lock released.
// Later calls, and a second Close, get ErrClosed.
func (s *Store) Close() error {
	if s.fs.Err() == nil {
		s.write.Lock()
		defer s.write.Unlock()
	}
	return s.fs.Close(func() error {
		s.bulks.Wait()
		return errors.Join(s.freeReserved(), s.readers.close(), s.db.Close())
	})
}
