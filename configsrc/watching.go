package configsrc

import (
	"log/slog"
	"path/filepath"
	"sync"

	"fingerpost/configsrc/folder"
)

// A watching is the watch on the config folder, which begins again when the folder is replaced.
type watching struct {
	dir    string
	log    *slog.Logger
	report *reporter
	blind  bool // there is no watch, which was logged

	// mu guards watch for the sweeps. Only the goroutine that looks writes it, so it reads it without the lock.
	mu    sync.Mutex
	watch *folder.Watch // nil: only the timer triggers looks
}

// restart starts or restarts the watch. If the system has no watches left, only the timer triggers looks.
func (w *watching) restart() {
	w.end()
	started, err := folder.NewWatch(w.dir)
	if err != nil {
		if !w.blind {
			w.log.Warn("no file system events, changes are found by the timer alone", "error", err)
		}
		w.blind = true
		w.report.noteWatching(false)
		return
	}
	w.blind = false
	w.setWatch(started)
	w.addFolder("")
	w.report.noteWatching(true)
}

// end ends the watch.
func (w *watching) end() {
	if w.watch != nil {
		w.watch.Close()
		w.setWatch(nil)
	}
}

func (w *watching) setWatch(to *folder.Watch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watch = to
}

// isOn reports whether events arrive.
func (w *watching) isOn() bool { return w.watch != nil }

// ready receives once events have arrived; nil if none can.
func (w *watching) ready() <-chan struct{} {
	if w.watch == nil {
		return nil
	}
	return w.watch.Ready
}

// takeSeen returns what the events since the last call have named. stale: a watched folder was replaced.
func (w *watching) takeSeen() (seen folder.Seen, stale bool) {
	if w.watch == nil {
		return seen, false
	}
	return w.watch.Take()
}

// hasMoved reports whether the watched folder was moved.
func (w *watching) hasMoved() bool { return w.watch != nil && w.watch.Moved() }

// addFolder is called for every folder before a look lists it, so that no change is missed.
func (w *watching) addFolder(dir string) {
	if w.watch != nil {
		if folder := w.folder(dir); !w.watch.Watches(folder) {
			w.watch.Add(folder)
		}
	}
}

// covers reports whether a watch is on the present folder; true if there are no watches at all.
func (w *watching) covers(dir string) bool {
	w.mu.Lock()
	now := w.watch
	w.mu.Unlock()
	return now == nil || now.Watches(w.folder(dir))
}

func (w *watching) folder(dir string) string { return filepath.Join(w.dir, filepath.FromSlash(dir)) }
