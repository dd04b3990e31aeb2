package configsrc

import (
	"path/filepath"
	"sync"
	"time"
)

// A whereabouts remembers where the config folder is, links followed, so that not every write goes the way to it link by
// link. It is safe for concurrent use.
type whereabouts struct {
	dir string // as given

	mu    sync.Mutex // guards what follows
	is    fileID     // the folder that was found; zero: none
	root  string     // its path without links
	above []string   // where its checkout may have its .git, the nearest first
	until time.Time  // by then it is looked for anew, since the folder may have been moved
}

// whereFor is how long a folder that is the same is taken to be in the same place.
const whereFor = time.Second

// find returns the folder's path without links, and the names under which its checkout's .git may be. Of what it returns
// nothing may be changed.
func (w *whereabouts) find() (root string, above []string, err error) {
	is, err := identify(w.dir)
	if err != nil {
		return "", nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if w.is != (fileID{}) && w.is == is && now.Before(w.until) {
		if there, err := identify(w.root); err == nil && there == is {
			return w.root, w.above, nil
		}
	}
	if root, err = filepath.EvalSymlinks(w.dir); err != nil {
		return "", nil, err
	}
	w.is, w.root, w.above, w.until = fileID{}, root, nil, now.Add(whereFor)
	if at, err := filepath.Abs(root); err == nil {
		w.above = gitNames(at)
	}
	if there, err := identify(root); err == nil && there == is { // else it has just been exchanged
		w.is = is
	}
	return w.root, w.above, nil
}

// gitNames are the names of what makes a folder part of a checkout, the nearest first.
func gitNames(at string) (names []string) {
	for {
		names = append(names, filepath.Join(at, ".git"))
		up := filepath.Dir(at)
		if up == at {
			return names
		}
		at = up
	}
}
