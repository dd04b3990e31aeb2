package folder

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"github.com/fsnotify/fsnotify"
)

// ManyPaths is from how many changed paths on the whole folder is to be looked at.
const ManyPaths = 4096

// A Watch collects the events of a folder, of its sub-folders that were added, and of what its path leads through. It is
// safe for concurrent use.
type Watch struct {
	dir    string // as given
	notify *fsnotify.Watcher
	// Ready has a value if something was collected.
	Ready chan struct{}
	done  chan struct{}

	mu      sync.Mutex        // guards the fields below
	folders map[string]uint64 // watched → inode
	paths   map[string]bool   // value: whether there was a write into the file
	named   map[string]bool   // the paths of all events, also if all is set; nil: too many
	all     bool              // look at everything
	stale   bool              // watches may be gone: rebuild them
}

// NewWatch starts collecting. The caller adds folders as its looks find them.
func NewWatch(dir string) (*Watch, error) {
	n, err := fsnotify.NewBufferedWatcher(4096)
	if err != nil {
		return nil, err
	}
	w := &Watch{dir: dir, notify: n, Ready: make(chan struct{}, 1), done: make(chan struct{}),
		folders: map[string]uint64{}, paths: map[string]bool{}, named: map[string]bool{}}
	w.addAbove()
	go w.collect()
	return w, nil
}

// addAbove watches the folders in which the config folder itself, or a link in its path, may be replaced.
func (w *Watch) addAbove() {
	abs, err := filepath.Abs(w.dir)
	if err != nil {
		return
	}
	w.Add(filepath.Dir(abs))
	for range 16 { // links that lead to links
		next := ""
		for at := abs; at != filepath.Dir(at); at = filepath.Dir(at) {
			target, err := os.Readlink(at)
			if err != nil {
				continue
			}
			w.Add(filepath.Dir(at))
			if !filepath.IsAbs(target) {
				target = filepath.Join(filepath.Dir(at), target)
			}
			next = filepath.Join(target, strings.TrimPrefix(abs, at))
			break
		}
		if next == "" {
			return
		}
		abs = next
		w.Add(filepath.Dir(abs))
	}
}

// Add watches one folder. If it fails, only the timer finds changes there.
func (w *Watch) Add(dir string) {
	info, err := os.Stat(dir)
	if err != nil {
		return
	}
	if w.notify.Add(dir) == nil {
		w.mu.Lock()
		w.folders[dir] = StatOf(info).Inode
		w.mu.Unlock()
	}
}

// Watches reports whether the present folder is watched.
func (w *Watch) Watches(dir string) bool {
	info, err := os.Stat(dir)
	w.mu.Lock()
	defer w.mu.Unlock()
	return err == nil && w.folders[dir] == StatOf(info).Inode
}

// Moved reports whether a watched folder was replaced.
func (w *Watch) Moved() bool {
	w.mu.Lock()
	folders := maps.Clone(w.folders)
	w.mu.Unlock()
	for dir, ino := range folders {
		if info, err := os.Stat(dir); err != nil || StatOf(info).Inode != ino {
			return true
		}
	}
	return false
}

// Close ends the Watch.
func (w *Watch) Close() {
	w.notify.Close()
	<-w.done
}

// collect drains events and errors: the kernel's queue must never wait for a look.
func (w *Watch) collect() {
	defer close(w.done)
	root := w.dir
	for {
		select {
		case e, ok := <-w.notify.Events:
			if !ok {
				return
			}
			if !w.noteEvent(root, e) {
				continue
			}
		case err, ok := <-w.notify.Errors:
			if !ok {
				return
			}
			w.mu.Lock()
			w.all = true
			w.stale = w.stale || !errors.Is(err, fsnotify.ErrEventOverflow)
			w.mu.Unlock()
		}
		select {
		case w.Ready <- struct{}{}:
		default:
		}
	}
}

// noteEvent records what an event indicates, and reports whether that is anything.
func (w *Watch) noteEvent(root string, e fsnotify.Event) bool {
	if e.Op == fsnotify.Chmod {
		return false
	}
	rel, err := filepath.Rel(root, e.Name)
	inside := err == nil && rel != "." && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
	name := filepath.Base(e.Name)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case !inside:
		if !w.concerns(e.Name) {
			return false
		}
		w.all, w.stale = true, true
	case strings.HasPrefix(name, "..") && name != "..": // Kubernetes' ..data swap: every file below may have changed
		w.all = true
	case IgnoredName(name):
		return false
	default:
		at := filepath.ToSlash(rel)
		if w.named != nil {
			w.named[at] = true
		}
		if len(w.named) > ManyPaths {
			w.named = nil
		}
		if !w.all { // otherwise all of them are examined anyway
			w.paths[at] = w.paths[at] || e.Op.Has(fsnotify.Write)
		}
		if e.Op.Has(fsnotify.Remove) || e.Op.Has(fsnotify.Rename) {
			if !IsConfigName(name) && filepath.Ext(name) == "" {
				w.all, w.stale = true, true // perhaps a folder, whose watch is gone or stale
			}
		}
		if len(w.paths) > ManyPaths {
			w.all = true
		}
	}
	return true
}

// concerns reports whether an event outside the folder is about the folder itself or a link in its path.
func (w *Watch) concerns(name string) bool {
	abs, err := filepath.Abs(w.dir)
	if err != nil {
		return true
	}
	name, err = filepath.Abs(name)
	if err != nil || name == abs || strings.HasPrefix(abs, name+string(filepath.Separator)) {
		return true
	}
	if info, err := os.Lstat(name); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return true
	}
	real, err := filepath.EvalSymlinks(abs)
	return err != nil || name == real || strings.HasPrefix(real, name+string(filepath.Separator))
}

// Seen is what events have named.
type Seen struct {
	All   bool     // every file is to be looked at; otherwise only Paths
	Paths []string // slash-separated, below the folder: files, folders or files that file() names
	// Replaced lists the paths that saw only create or rename events: such a file was put there complete, like our own
	// writes. Its stamp decides whether it is the accepted one, even if racy.
	Replaced map[string]bool

	named    map[string]bool // the paths that events named
	allNamed bool            // there were too many events to say which
}

// Names reports whether an event named a path, or a folder that it is in: it may have been there for a moment.
func (s *Seen) Names(at string) bool {
	for ; at != "."; at = path.Dir(at) {
		if s.named[at] {
			return true
		}
	}
	return s.allNamed
}

// Take returns what was collected, and starts again. stale: watches may be gone, and a new Watch is needed.
func (w *Watch) Take() (seen Seen, stale bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen = Seen{All: w.all, Paths: make([]string, 0, len(w.paths)), Replaced: make(map[string]bool, len(w.paths)),
		named: w.named, allNamed: w.named == nil}
	for p, written := range w.paths {
		seen.Paths = append(seen.Paths, p)
		if !written {
			seen.Replaced[p] = true
		}
	}
	if w.all { // some writes were not recorded then
		seen.Replaced = nil
	}
	stale = w.stale
	w.paths, w.named, w.all, w.stale = map[string]bool{}, map[string]bool{}, false, false
	return seen, stale
}

// Pending reports whether an event has named a path that was not taken yet.
func (w *Watch) Pending(path string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, named := w.paths[path]
	return named || w.all
}
