package ledger

import (
	"encoding/binary"
	"errors"
	"log/slog"
	"path/filepath"
	"sync/atomic"

	"fingerpost/resolver/pebblefs"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Format is the version of the key layout in doc.go, and of its records.
const Format = 2

// startEmpty says how to start without the ledger, and what that loses.
const startEmpty = "move the folder away: the mail log, mail queue, idempotency keys, audit trail, uses of API keys, " +
	"proposals, checks of domains, suppression lists and the places of webhooks are then in the moved folder only"

// Folder is the ledger's folder in a data directory.
const Folder = "ledger"

// The errors of Open, of writes, reads and Err; test with errors.Is.
var (
	ErrLocked      = pebblefs.ErrLocked
	ErrUnavailable = pebblefs.ErrUnavailable
	ErrDamaged     = pebblefs.ErrDamaged
	ErrNewer       = pebblefs.ErrNewer
	ErrOlder       = pebblefs.ErrOlder
	ErrNoStore     = pebblefs.ErrNoStore
	ErrClosed      = pebblefs.ErrClosed
)

// MoveAside renames the directory of a damaged ledger, see pebblefs.MoveAside.
var MoveAside = pebblefs.MoveAside

// ownFiles are the names of files in a ledger's directory that are not Pebble's.
var ownFiles = []string{highWaterFile, salvageMark}

// Options are the settings of a Ledger. The zero value is usable.
type Options struct {
	Logger *slog.Logger // nil: slog.Default. Pebble logs at debug level
	FS     vfs.FS       // nil: the disk, or memory for a Ledger without a directory
	// ReadOnly opens an existing ledger, locks out other processes, and changes nothing in it. The error for a missing
	// ledger is an ErrNoStore. Only reads may be called.
	ReadOnly bool
	damaged  bool // with ReadOnly: open it to find out whether Pebble can, see salvage.go
}

// A Ledger is an open ledger. Its methods are safe for concurrent use.
type Ledger struct {
	dir   string // "" in memory
	db    *pebble.DB
	fs    *pebblefs.Dir
	cache *pebble.Cache
	log   *slog.Logger
	mail  mailState
	marks marks

	lastAudit atomic.Int64 // id of the last entry of the audit trail; changed with the turn
}

// Open opens or creates the ledger in dir; "" makes one in memory. It does not hang when the disk refuses: errors are
// ErrLocked, ErrNewer, ErrOlder, ErrUnavailable or ErrDamaged.
func Open(dir string, o Options) (*Ledger, error) {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	l := &Ledger{dir: dir, log: o.Logger, cache: pebble.NewCache(cacheBytes)}
	l.mail.turn = make(chan struct{}, 1)
	l.fs = pebblefs.NewDir(dir, o.FS, pebblefs.Options{ReadOnly: o.ReadOnly, StartEmpty: startEmpty}, func() {
		if l.fs.Err() == nil {
			l.cache.Unref()
		} else {
			l.cache.Reserve(cacheBytes) // evicts the blocks: a ledger that failed cannot close its cache
		}
	})
	l.fs.Spare = l.checkpointDir()
	if l.fs.Disk && !o.ReadOnly {
		pebblefs.Narrow(l.fs.Name(), ownFiles, o.Logger)
	}
	if err := l.fs.Start(func() error { return l.open(o) }); err != nil {
		return nil, err
	}
	return l, nil
}

func (l *Ledger) open(o Options) error {
	if err := l.fs.Inspect(uint64(pebbleFormat)); err != nil {
		return err
	}
	db, err := pebble.Open(l.fs.Name(), l.pebbleOptions())
	if err != nil {
		return err
	}
	l.db = db
	if o.damaged {
		return nil
	}
	if err = l.begin(); err != nil {
		l.fs.EndStart()
		_ = db.Close() // begin's error is the one to return
	}
	return err
}

func (l *Ledger) begin() error {
	found, err := now{l.db}.get(keyFormat, func(value []byte) error {
		v, n := binary.Uvarint(value)
		if n <= 0 {
			return errRecord
		}
		return l.fs.CheckFormat("ledger format", v, Format)
	})
	if err != nil {
		return err
	}
	b := l.db.NewBatch() // of what a new ledger has
	if !found {
		err = b.Set(keyFormat, binary.AppendUvarint(nil, Format), nil)
	}
	err = errors.Join(err, l.loadMailState(), l.loadAudit(), l.loadEvents(b))
	if err == nil && !b.Empty() && !l.fs.ReadOnly {
		err = b.Commit(l.durable())
	}
	if err = errors.Join(err, b.Close()); err != nil {
		return err
	}
	if !l.fs.ReadOnly {
		_ = l.fs.Base().RemoveAll(l.checkpointDir()) // left by a killed process
	}
	return l.fs.Note()
}

// durable returns the options of a durable commit: a ledger in memory has no log.
func (l *Ledger) durable() *pebble.WriteOptions {
	if l.dir == "" {
		return pebble.NoSync
	}
	return pebble.Sync
}

// InMemory reports whether the ledger has no directory.
func (l *Ledger) InMemory() bool { return l.dir == "" }

// Failed is closed when the ledger can no longer be written; Err then returns the reason.
func (l *Ledger) Failed() <-chan struct{} { return l.fs.Failed() }

// Err returns nil, or the first ErrUnavailable or ErrDamaged. Its text has no path.
func (l *Ledger) Err() error { return l.fs.Err() }

// Check fails the ledger when its directory is not the one that was opened.
func (l *Ledger) Check() error { return l.fs.Check() }

// Close waits for running reads and writes and closes the ledger; a failed ledger is abandoned and its lock released.
// Later calls, and a second Close, get ErrClosed.
func (l *Ledger) Close() error {
	defer l.mail.mark.close()
	return l.fs.Close(func() error { return l.db.Close() })
}

// sync makes all writes durable.
func (l *Ledger) sync() error {
	if l.dir == "" {
		return nil
	}
	return l.read(func() error {
		return l.fs.Run(func() error { return l.db.LogData(nil, pebble.Sync) })
	})
}

// checkpointDir is where a checkpoint is made and read: inside the ledger's directory, because its tables are hard
// links.
func (l *Ledger) checkpointDir() string { return filepath.Join(l.fs.Name(), "checkpoint.tmp") }

// Snapshot calls f with a read-only copy of the ledger as of one moment, and removes the copy afterwards. An error in
// making the copy does not fail the ledger.
func (l *Ledger) Snapshot(f func(dir string, copied *Ledger) error) error {
	dir := l.checkpointDir()
	defer l.fs.Base().RemoveAll(dir)
	if err := l.fs.Checkpoint(func() error { return l.db.Checkpoint(dir, pebble.WithFlushedWAL()) }); err != nil {
		return err
	}
	copied, err := Open(dir, Options{FS: l.fs.Base(), Logger: l.log, ReadOnly: true})
	if err != nil {
		return err
	}
	return errors.Join(f(dir, copied), copied.Close())
}

// Verify reads every record (blocks have checksums) and compares the counts of the mail log and of suppression lists with
// their entries.
func (l *Ledger) Verify() error {
	return l.read(func() error {
		err := l.walk(span{}, func(_, _ []byte) error { return nil })
		return errors.Join(err, l.checkMailCounts(), l.checkLists())
	})
}
