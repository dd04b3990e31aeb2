package pebblefs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A Dir is one opening of a store's directory, from Start to Close, on a fail-stop file system. It tracks the users of
// the store, and checks that the directory on disk is still the one that was opened.
type Dir struct {
	*FS
	Path string // "" in memory

	users   users
	closing atomic.Bool
	inodes  [2]os.FileInfo // of the directory and its lock file, on a disk; set by Note
	shrink  func()
}

// NewDir returns an unopened Dir. base may be nil: the disk then, or memory if path is "". shrink frees the memory of a
// store that cannot be closed.
func NewDir(path string, base vfs.FS, o Options, shrink func()) *Dir {
	if base == nil {
		if base = vfs.Default; path == "" {
			base = vfs.NewMem()
		}
	}
	return &Dir{FS: New(base, o), Path: path, shrink: shrink}
}

// Name is Path, or a name in memory.
func (d *Dir) Name() string {
	if d.Path == "" {
		return "store"
	}
	return filepath.Clean(d.Path)
}

// Run runs f in a goroutine of its own and returns as soon as the disk fails: an operation that meets a tripped barrier
// never returns.
func (d *Dir) Run(f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-d.Failed():
		return d.Err()
	}
}

// Start runs open, which opens the store. It does not hang when the disk refuses. Errors are ErrLocked, ErrNewer,
// ErrOlder, ErrUnavailable and ErrDamaged; the Dir is closed then.
func (d *Dir) Start(open func() error) error {
	err := d.Run(open)
	if err == nil {
		return nil
	}
	d.abandon()
	if Final(err) {
		return err
	}
	return fmt.Errorf("open %s: %w", d.Path, Classify(err, d.Missing()))
}

// Inspect checks the directory before Pebble does. format is Pebble's newest known format. Pebble reports an unknown
// format as damage; the marker's name is marker.format-version.<iteration>.<version>. And if the marker of the manifest
// is lost, Pebble starts an empty store and deletes the tables of the old one.
func (d *Dir) Inspect(format uint64) error {
	names, err := d.List(d.Name())
	switch {
	case err != nil && d.ReadOnly && errors.Is(err, os.ErrNotExist):
		return ErrNoStore
	case err != nil:
		return nil //nolint:nilerr // Pebble's Open will report the error
	}
	var data, manifest bool
	for _, name := range names {
		if rest, ok := strings.CutPrefix(name, "marker.format-version."); ok {
			_, version, _ := strings.Cut(rest, ".")
			if v, err := strconv.ParseUint(version, 10, 64); err == nil && v > format {
				return d.CheckFormat("Pebble format", v, format)
			}
		}
		manifest = manifest || strings.HasPrefix(name, "marker.manifest.")
		data = data || strings.HasPrefix(name, "MANIFEST-") || IsTable(name)
		d.keepTable(filepath.Join(d.Name(), name))
	}
	if data && !manifest {
		return fmt.Errorf("%w: the marker that names the manifest is missing", ErrDamaged)
	}
	if d.ReadOnly && !manifest {
		return ErrNoStore
	}
	return nil
}

// Note records which directory is open, for Missing.
func (d *Dir) Note() error {
	if !d.Disk {
		return nil
	}
	for i, name := range d.identity() {
		info, err := os.Stat(name)
		if err != nil {
			return err
		}
		d.inodes[i] = info
	}
	return nil
}

func (d *Dir) identity() [2]string { return [...]string{d.Name(), filepath.Join(d.Name(), "LOCK")} }

// Missing reports whether the directory on disk is not the one that was opened. It ignores errors other than "not
// there": the disk reports them itself.
func (d *Dir) Missing() bool {
	if !d.Disk {
		return false
	}
	for i, name := range d.identity() {
		info, err := os.Stat(name)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			return true
		}
		if err == nil && d.inodes[i] != nil && !os.SameFile(info, d.inodes[i]) {
			return true
		}
	}
	return false
}

// Check fails the Dir when the directory is not the one that was opened: writes into a deleted directory would succeed
// and be lost. It costs two stat calls.
func (d *Dir) Check() error {
	if err := d.Err(); err != nil || d.inodes[0] == nil {
		return err
	}
	if d.Missing() {
		d.Trip(fmt.Errorf("%w: it was removed or replaced while in use", ErrUnavailable))
	}
	return d.Err()
}

// Use runs f while the store stays open, and fails the Dir when f finds damage. Running out of file descriptors, or a
// record of a later release, fails nothing.
func (d *Dir) Use(f func() error) error {
	if !d.users.enter() {
		return ErrClosed
	}
	defer d.users.leave()
	err := f()
	if err == nil || errors.Is(err, ErrClosed) || errors.Is(err, ErrNewer) {
		return err
	}
	err = Classify(err, d.Missing())
	if !errors.Is(err, syscall.EMFILE) && !errors.Is(err, syscall.ENFILE) {
		d.Trip(err)
	}
	return err
}

// Fail trips the barrier with err and never returns. Pebble's callbacks use it when Pebble cannot continue.
func (d *Dir) Fail(err error) {
	d.Trip(Classify(err, d.Missing()))
	park()
}

// EndStart says that open has failed after Pebble was opened: errors from closing Pebble are no failure then.
func (d *Dir) EndStart() { d.closing.Store(true) }

// Closing reports whether Close was called: closing Pebble interrupts running work, which is no failure.
func (d *Dir) Closing() bool { return d.closing.Load() && d.Err() == nil }

// Close waits for running uses and runs end, which closes the store. A failed store is abandoned and its lock released.
// A second Close, and later uses, get ErrClosed.
func (d *Dir) Close(end func() error) error {
	if !d.closing.CompareAndSwap(false, true) {
		return ErrClosed
	}
	if d.Err() != nil {
		d.users.refuse()
		d.abandon()
		return nil //nolint:nilerr // the file system has reported it
	}
	d.users.drain(d.Barrier)
	err := d.Run(end)
	if d.Err() != nil {
		d.abandon()
		return nil //nolint:nilerr // the file system has reported it
	}
	d.closeTables()
	d.shrink()
	if err != nil {
		return fmt.Errorf("close %s: %w", d.Path, err)
	}
	return nil
}

// abandon gives up a store that cannot be closed: its parked goroutines stay. It frees the memory, and releases the
// lock and the tables once no write of the store is in flight and no reader uses it.
func (d *Dir) abandon() {
	d.shrink()
	if d.Err() == nil || d.idle() {
		d.release() // in the first case Pebble did not get far, or has closed itself
		return
	}
	go func() {
		for !d.idle() {
			time.Sleep(100 * time.Millisecond)
		}
		d.release()
	}()
}

func (d *Dir) idle() bool { return d.Quiet() && d.users.idle() }

func (d *Dir) release() {
	d.closeTables()
	d.unlock()
}

// UseInBackground is Use for a goroutine that a failed disk may park: it counts as a use only until then.
func (d *Dir) UseInBackground(f func()) {
	if d.Err() != nil || !d.users.enter() {
		return
	}
	defer d.users.leave()
	_ = d.Run(func() error { f(); return nil })
}

// Checkpoint runs take, which makes a checkpoint in the folder Options.Spare. An error is returned and does not fail
// the store. A panic of Pebble's becomes an error: Pebble panics if the folder of a marker cannot be synced, and
// releases what it holds by deferred calls.
func (d *Dir) Checkpoint(take func() error) error {
	var failed error
	err := d.Use(func() error {
		if failed = d.Err(); failed != nil {
			return nil //nolint:nilerr // returned by Checkpoint
		}
		if failed = WithoutPath(d.Base().RemoveAll(d.Spare)); failed != nil {
			return nil //nolint:nilerr // returned by Checkpoint
		}
		failed = d.Run(func() (err error) {
			defer func() {
				if cause := recover(); cause != nil {
					ofPebble, ok := cause.(error)
					if !ok {
						panic(cause)
					}
					err = ofPebble
				}
				if err != nil {
					err = fmt.Errorf("make a checkpoint: %w", WithoutPath(err))
				}
			}()
			return take()
		})
		return nil
	})
	return errors.Join(err, failed)
}
