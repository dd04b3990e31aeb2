package atomicfile

import (
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
)

// A Folder is a folder tree in which files are replaced. Its fields must not change; only one goroutine at a time may
// call Clear.
type Folder struct {
	Dir  string
	Disk Disk
	Log  *slog.Logger

	leftovers map[string]*leftover // left by the last Clear
}

// A Swap replaces, creates or removes one file, which people may save at the same time. The calls are Stage, Put,
// TakeBack if the write fails elsewhere, and Discard. It is not safe for concurrent use.
type Swap struct {
	Folder  *Folder
	Name    string            // the file's name in messages
	Target  string            // path with links resolved, see Target
	Content []byte            // the new content
	Like    fs.FileInfo       // of the replaced file: mode, owner and attributes stay
	Old     [sha256.Size]byte // hash of the replaced or removed content
	Creates bool              // the file does not exist yet
	Removes bool              // the file is removed

	Info fs.FileInfo // of the staged content, set by Stage

	temp   string            // holds the new content, synced; after Put the old content
	hash   [sha256.Size]byte // of Content
	placed bool
	lock   io.Closer // on the folder, while temp may exist
}

// Stage writes the new content next to the file and syncs it. Nothing live is touched. After an error nothing is left.
func (w *Swap) Stage() (err error) {
	d := w.Folder.Disk
	w.hash = sha256.Sum256(w.Content)
	defer func() {
		if err != nil {
			w.Discard()
		}
	}()
	if w.lock, err = Lock(filepath.Dir(w.Target)); err != nil {
		return err
	}
	if w.Creates {
		w.temp, w.Info, err = writeTemp(d, filepath.Dir(w.Target), w.Content, nil, "")
	} else {
		w.temp, w.Info, err = writeSwap(d, w.Target, w.Content, w.Like, w.Old)
	}
	if err != nil || w.Like == nil {
		return err
	}
	// The kernel must report who writes the file: ask it about the new content, which has the same owner.
	h, err := holdStill(w.temp)
	if unfit, is := errors.AsType[*UnfitError](err); is {
		return unknownWriter(w.Target, unfit.Why)
	} else if err == nil {
		h.Close()
	}
	return nil // an error says that a process that is just being started has it open
}

// Put puts the new content in place if the file still has the content with the hash Old and no program is writing it:
// otherwise ErrChanged, or fs.ErrExist for a file to be created. Any other error is a *Fault. The caller syncs the
// folder.
func (w *Swap) Put() (err error) {
	switch {
	case w.Creates:
		err = w.create()
	case w.Removes:
		err = w.remove()
	default:
		err = w.replace(w.Old, w.hash)
	}
	w.placed = err == nil
	return err
}

func (w *Swap) create() error {
	d := w.Folder.Disk
	if err := d.Link(w.temp, w.Target); errors.Is(err, fs.ErrExist) { // link, unlike rename, never replaces
		return fs.ErrExist
	} else if err != nil {
		return &Fault{"create " + w.Name, Cause(err)}
	}
	if d.Remove(w.temp) == nil { // otherwise Clear does it
		w.temp = ""
	}
	return nil
}

// replace exchanges the file, which has the hash want, and temp, which has the hash ours.
func (w *Swap) replace(want, ours [sha256.Size]byte) error {
	kept, err := exchange(w.Folder.Disk, w.temp, w.Target, want, ours)
	if kept != "" {
		w.Folder.logKept(w.Target, kept)
	}
	if err == nil || errors.Is(err, ErrChanged) {
		return err
	}
	if errors.Is(err, errStranded) {
		w.temp = ""
	}
	return &Fault{"replace " + w.Name, err}
}

func (w *Swap) remove() error {
	d := w.Folder.Disk
	old, err := holdAs(d, w.Target, w.Old)
	if errors.Is(err, ErrChanged) {
		return err
	}
	if err != nil {
		return &Fault{"remove " + w.Name, err}
	}
	defer old.Close()
	if err := d.Rename(w.Target, w.temp); err != nil {
		return &Fault{"remove " + w.Name, Cause(err)}
	}
	changed := old.check(d, w.temp, w.Old)
	if changed == nil {
		return nil
	}
	backErr := d.Link(w.temp, w.Target)
	if errors.Is(backErr, fs.ErrExist) { // a newer save is in place
		var kept string
		if kept, backErr = keepNextTo(d, w.temp, w.Target); backErr == nil {
			w.Folder.logKept(w.Target, kept)
		}
	}
	if backErr != nil {
		w.temp = ""
		return &Fault{"put " + w.Name + " back after a save in between", errors.Join(Cause(backErr), errStranded)}
	}
	_ = d.Remove(w.temp) // the save has its name again
	if !errors.Is(changed, ErrChanged) {
		return &Fault{"read what " + w.Name + " was", changed}
	}
	return ErrChanged
}

// TakeBack undoes Put, unless the file was saved since.
func (w *Swap) TakeBack() {
	if !w.placed {
		return
	}
	w.placed = false
	d := w.Folder.Disk
	switch {
	case w.Creates:
		if info, err := d.Stat(w.Target); err == nil && os.SameFile(info, w.Info) {
			_ = d.Remove(w.Target)
		}
	case w.Removes:
		_ = d.Link(w.temp, w.Target)
	default:
		_ = w.replace(w.hash, w.Old)
	}
}

// Discard removes what Stage wrote, or what Put replaced, and unlocks the folder.
func (w *Swap) Discard() {
	if w.temp != "" {
		removeSwapped(w.Folder.Disk, w.temp)
		w.temp = ""
	}
	if w.lock != nil {
		w.lock.Close()
		w.lock = nil
	}
}
