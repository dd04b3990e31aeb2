package plumbing

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// lockAge is how old a lock of a git of ours is when it counts as left behind: git holds it for milliseconds.
const lockAge = 2 * time.Second

var errNotForWrites = errors.New("git's folder cannot be written")

// A lockRecord knows which of git's locks a git of this service may have left behind, because it was killed or the
// power was cut: locks have no owner. A file in git's folder has the locks of the calls that run, and is synced before
// each of them. It is written in place: a change in git's folder looks like a git at work (configsrc/gitguard.go).
type lockRecord struct {
	gitDir string

	mu   sync.Mutex // guards what follows
	file *os.File
	open []string // of the calls that run
	left []string // of calls that were killed, and of an earlier process
}

// start takes up the record of an earlier process, whose gits have ended, and removes the locks that they have left. It
// returns these.
func (l *lockRecord) start() (removed []string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f, err := os.OpenFile(filepath.Join(l.gitDir, "fingerpost-locks"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(f)
	if err != nil {
		f.Close()
		return nil, err
	}
	l.file = f
	for name := range strings.Lines(string(b)) { // a line that a power cut has spoilt is no lock's name
		if name = strings.TrimSuffix(name, "\n"); strings.HasSuffix(name, ".lock") && filepath.IsLocal(name) {
			l.left = append(l.left, name)
		}
		if name == packIndex+".lock" {
			dropPackIndex(l.gitDir)
		}
	}
	for end := time.Now().Add(lockAge); ; time.Sleep(10 * time.Millisecond) {
		removed = append(removed, l.sweep(time.Now().After(end))...)
		if len(l.left) == 0 {
			break
		}
	}
	return removed, errors.Join(l.write(), SyncFolder(l.gitDir))
}

// sweep removes the locks that calls have left behind, once they are old enough, or with now. The caller holds mu.
func (l *lockRecord) sweep(now bool) (removed []string) {
	l.left = slices.DeleteFunc(l.left, func(name string) bool {
		if slices.Contains(l.open, name) {
			return false
		}
		path := filepath.Join(l.gitDir, filepath.FromSlash(name))
		info, err := os.Lstat(path)
		if err != nil {
			return errors.Is(err, fs.ErrNotExist) || now
		}
		if !now && time.Since(info.ModTime()) < lockAge {
			return false
		}
		if err = os.Remove(path); err == nil {
			removed = append(removed, name)
		}
		return err == nil || now
	})
	return removed
}

// begin notes the locks of a call that is about to run. end takes the call's error. The record is on the disk before
// begin returns.
func (l *lockRecord) begin(names ...string) (end func(error), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil, errNotForWrites
	}
	if len(l.left) > 0 {
		l.sweep(false)
	}
	l.open = append(l.open, names...)
	if err = l.write(); err == nil {
		err = l.file.Sync()
	}
	end = func(failed error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, name := range names {
			if i := slices.Index(l.open, name); i >= 0 {
				l.open = slices.Delete(l.open, i, i+1)
			}
		}
		if failed != nil && ExitCode(failed) < 0 { // git removes its locks, unless it is killed
			l.left = append(l.left, names...)
		}
		_ = l.write() // else it has a lock too many until the next call
	}
	if err != nil {
		l.open = l.open[:len(l.open)-len(names)]
		return nil, err
	}
	return end, nil
}

// write writes the record. The caller holds mu.
func (l *lockRecord) write() error {
	text := ""
	for _, name := range slices.Concat(l.open, l.left) {
		text += name + "\n"
	}
	_, err := l.file.WriteAt([]byte(text), 0)
	if err == nil {
		err = l.file.Truncate(int64(len(text)))
	}
	return err
}

// ours reports whether a lock is that of a call of ours.
func (l *lockRecord) ours(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Contains(l.open, name) || slices.Contains(l.left, name)
}

func (l *lockRecord) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		l.file.Close()
	}
}

// locksOf returns the locks that git takes to change refs. HEAD has one if it names the ref, and packed-refs if a ref
// is removed.
func locksOf(refs ...string) []string {
	names := []string{"HEAD.lock", "packed-refs.lock"}
	for _, ref := range refs {
		names = append(names, ref+".lock")
	}
	return names
}

// A HeldLock is a lock of git that holds commits up, and that no git of this service has.
type HeldLock struct {
	Path  string // below git's folder
	Since time.Time
}

// HeldLocks returns the locks, of all those that hold up a commit on a branch, that others have held for longer than a
// git at work does. It may be called from any goroutine.
func (g *Store) HeldLocks(branch string, index *IndexLock) (list []HeldLock) {
	for _, name := range append([]string{"index.lock"}, locksOf(branch)...) {
		info, err := os.Lstat(filepath.Join(g.GitDir, filepath.FromSlash(name)))
		if err != nil || time.Since(info.ModTime()) < lockAge || g.locks.ours(name) ||
			name == "index.lock" && index.Ours() {
			continue
		}
		list = append(list, HeldLock{name, info.ModTime().UTC()})
	}
	return list
}
