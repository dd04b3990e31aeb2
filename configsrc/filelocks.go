package configsrc

import (
	"slices"
	"sync"
)

// writers serialises writes to the same file. Waiting writers get their turn: a sync.Mutex hands itself to one that has
// waited for a millisecond, where a sync.Cond let some of 64 clients wait for more than ten seconds.
type writers struct {
	mu sync.Mutex // guards m
	m  map[string]*fileLock
}

type fileLock struct {
	sync.Mutex
	users int
}

// lock locks the files, in the order of their paths, and returns the function that unlocks them.
func (w *writers) lock(paths ...string) (unlock func()) {
	slices.Sort(paths)
	var unlocks []func()
	for _, path := range slices.Compact(paths) {
		unlocks = append(unlocks, w.lockOne(path))
	}
	return func() {
		for _, unlock := range unlocks {
			unlock()
		}
	}
}

func (w *writers) lockOne(path string) (unlock func()) {
	w.mu.Lock()
	if w.m == nil {
		w.m = make(map[string]*fileLock)
	}
	l := w.m[path]
	if l == nil {
		l = new(fileLock)
		w.m[path] = l
	}
	l.users++
	w.mu.Unlock()
	l.Lock()
	return func() {
		l.Unlock()
		w.mu.Lock()
		if l.users--; l.users == 0 {
			delete(w.m, path)
		}
		w.mu.Unlock()
	}
}
