package configsrc

import (
	"path/filepath"

	"fingerpost/configsrc/watch"
)

// watchFolder is called for every folder before a look lists it, so that no change is missed.
func (s *Source) watchFolder(dir string) {
	if s.watch != nil {
		if folder := filepath.Join(s.o.Dir, filepath.FromSlash(dir)); !s.watch.Watches(folder) {
			s.watch.Add(folder)
		}
	}
}

// rewatch starts or restarts the watch. If the system has no watches left, only the timer triggers looks.
func (s *Source) rewatch() {
	s.unwatch()
	w, err := watch.New(s.o.Dir)
	if err != nil {
		if !s.blind {
			s.o.Logger.Warn("no file system events, changes are found by the timer alone", "error", err)
		}
		s.blind = true
		s.noteWatching(false)
		return
	}
	s.blind = false
	s.known.Lock()
	s.watch = w
	s.known.Unlock()
	s.watchFolder("")
	s.noteWatching(true)
}

// unwatch ends the watch.
func (s *Source) unwatch() {
	if s.watch != nil {
		s.watch.Close()
		s.known.Lock()
		s.watch = nil
		s.known.Unlock()
	}
}

// watched reports whether a watch is on the present folder; true if there are no watches at all.
func (s *Source) watched(dir string) bool {
	s.known.RLock()
	w := s.watch
	s.known.RUnlock()
	if w == nil {
		return true
	}
	return w.Watches(filepath.Join(s.o.Dir, filepath.FromSlash(dir)))
}
