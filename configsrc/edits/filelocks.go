package edits

import (
	"slices"
	"sync"
)

// fileLocks serialises writes to the same file. Waiting writers get their turn: a sync.Mutex hands itself to one that
// has waited for a millisecond, where a sync.Cond let some of 64 clients wait for more than ten seconds.
type fileLocks struct {
	mu sync.Mutex // guards m
	m  map[string]*fileLock
}

type fileLock struct {
	sync.Mutex
	users int
}

// lock locks the files, in the order of their paths, and returns the function that unlocks them.
func (w *fileLocks) lock(paths ...string) (unlock func()) {
	slices.Sort(paths)
	paths = slices.Compact(paths)
	locks := make([]*fileLock, len(paths))
	for i, path := range paths {
		w.mu.Lock()
		if w.m == nil {
			w.m = make(map[string]*fileLock)
		}
		if w.m[path] == nil {
			w.m[path] = new(fileLock)
		}
		locks[i] = w.m[path]
		locks[i].users++
		w.mu.Unlock()
		locks[i].Lock()
	}
	return func() {
		for i, l := range locks {
			l.Unlock()
			w.mu.Lock()
			if l.users--; l.users == 0 {
				delete(w.m, paths[i])
			}
			w.mu.Unlock()
		}
	}
}
