package configsrc

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"fingerpost/configsrc/folder"
	"github.com/fsnotify/fsnotify"
)

// The times of configsrc/README.md, Reload.
const (
	quiet       = 25 * time.Millisecond // pause between the last event and the look
	quietAtMost = time.Second           // longest wait from the first event
	gitAtMost   = 10 * time.Second      // while git holds its index lock
	gitPoll     = 10 * time.Millisecond
	statEvery   = 5 * time.Second
	hashEvery   = 60 * time.Second
	manyPaths   = 4096 // from that many changed paths on: list the folder instead
	sweepAtMost = 200  // the sweeps of a kind may take this fraction of a core: 1/200, the two kinds 1/100
)

// A watch collects file system events, so that none is lost during a look.
type watch struct {
	dir    string // as given
	notify *fsnotify.Watcher
	ready  chan struct{} // capacity 1: something was collected
	done   chan struct{}

	mu      sync.Mutex        // guards the fields below
	folders map[string]uint64 // watched → inode
	paths   map[string]bool   // value: whether there was a write into the file
	named   map[string]bool   // the paths of all events, also if all is set; nil: too many
	all     bool              // look at everything
	stale   bool              // watches may be gone: rebuild them
}

// newWatch starts collecting. The caller adds folders as its looks find them.
func newWatch(dir string) (*watch, error) {
	n, err := fsnotify.NewBufferedWatcher(4096)
	if err != nil {
		return nil, err
	}
	w := &watch{dir: dir, notify: n, ready: make(chan struct{}, 1), done: make(chan struct{}),
		folders: map[string]uint64{}, paths: map[string]bool{}, named: map[string]bool{}}
	w.addAbove()
	go w.collect()
	return w, nil
}

// addAbove watches the folders in which the config folder itself, or a link in its path, may be replaced.
func (w *watch) addAbove() {
	abs, err := filepath.Abs(w.dir)
	if err != nil {
		return
	}
	w.add(filepath.Dir(abs))
	for range 16 { // links that lead to links
		next := ""
		for at := abs; at != filepath.Dir(at); at = filepath.Dir(at) {
			target, err := os.Readlink(at)
			if err != nil {
				continue
			}
			w.add(filepath.Dir(at))
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
		w.add(filepath.Dir(abs))
	}
}

// add watches one folder. If it fails, only the timer finds changes there.
func (w *watch) add(dir string) {
	info, err := os.Stat(dir)
	if err != nil {
		return
	}
	if w.notify.Add(dir) == nil {
		w.mu.Lock()
		w.folders[dir] = folder.StatOf(info).Inode
		w.mu.Unlock()
	}
}

// on reports whether the present folder is watched.
func (w *watch) on(dir string) bool {
	info, err := os.Stat(dir)
	w.mu.Lock()
	defer w.mu.Unlock()
	return err == nil && w.folders[dir] == folder.StatOf(info).Inode
}

// moved reports whether a watched folder was replaced.
func (w *watch) moved() bool {
	w.mu.Lock()
	folders := maps.Clone(w.folders)
	w.mu.Unlock()
	for dir, ino := range folders {
		if info, err := os.Stat(dir); err != nil || folder.StatOf(info).Inode != ino {
			return true
		}
	}
	return false
}

func (w *watch) close() {
	w.notify.Close()
	<-w.done
}

// collect drains events and errors: the kernel's queue must never wait for a look.
func (w *watch) collect() {
	defer close(w.done)
	root := w.dir
	for {
		select {
		case e, ok := <-w.notify.Events:
			if !ok {
				return
			}
			if !w.note(root, e) {
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
		case w.ready <- struct{}{}:
		default:
		}
	}
}

// note records what an event indicates, and reports whether that is anything.
func (w *watch) note(root string, e fsnotify.Event) bool {
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
	case folder.IgnoredName(name):
		return false
	default:
		at := filepath.ToSlash(rel)
		if w.named != nil {
			w.named[at] = true
		}
		if len(w.named) > manyPaths {
			w.named = nil
		}
		if !w.all { // otherwise all of them are examined anyway
			w.paths[at] = w.paths[at] || e.Op.Has(fsnotify.Write)
		}
		if e.Op.Has(fsnotify.Remove) || e.Op.Has(fsnotify.Rename) {
			if !folder.IsConfigName(name) && filepath.Ext(name) == "" {
				w.all, w.stale = true, true // perhaps a folder, whose watch is gone or stale
			}
		}
		if len(w.paths) > manyPaths {
			w.all = true
		}
	}
	return true
}

// concerns reports whether an event outside the folder is about the folder itself or a link in its path.
func (w *watch) concerns(name string) bool {
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

// take returns what was collected and starts again.
func (w *watch) take() (sc scope, stale bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	sc = scope{all: w.all, paths: make([]string, 0, len(w.paths)), replaced: make(map[string]bool, len(w.paths)),
		named: w.named, allNamed: w.named == nil}
	for p, written := range w.paths {
		sc.paths = append(sc.paths, p)
		if !written {
			sc.replaced[p] = true
		}
	}
	if w.all { // some writes were not recorded then
		sc.replaced = nil
	}
	stale = w.stale
	w.paths, w.named, w.all, w.stale = map[string]bool{}, map[string]bool{}, false, false
	return sc, stale
}

// watchFolder is called for every folder before a look lists it, so that no change is missed.
func (s *Source) watchFolder(dir string) {
	if s.watch != nil {
		if folder := filepath.Join(s.o.Dir, filepath.FromSlash(dir)); !s.watch.on(folder) {
			s.watch.add(folder)
		}
	}
}

// rewatch starts or restarts the watch. If the system has no watches left, only the timer triggers looks.
func (s *Source) rewatch() {
	s.unwatch()
	w, err := newWatch(s.o.Dir)
	if err != nil {
		if !s.blind {
			s.o.Logger.Warn("no file system events, changes are found by the timer alone", "error", err)
		}
		s.blind = true
		s.setWatching(false)
		return
	}
	s.blind = false
	s.known.Lock()
	s.watch = w
	s.known.Unlock()
	s.watchFolder("")
	s.setWatching(true)
}

// unwatch ends the watch.
func (s *Source) unwatch() {
	if s.watch != nil {
		s.watch.close()
		s.known.Lock()
		s.watch = nil
		s.known.Unlock()
	}
}
