package configsrc

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A swept is what a sweep found: hints, like those of events.
type swept struct {
	scope
	temps []string      // temporary files
	stale bool          // some watch is not on the folder that is there now
	cost  time.Duration // without the pauses
	hash  bool
}

// sweep compares the whole folder with the table by stat, and tells what is not the same. It runs beside the looks, in
// small steps with pauses, so that a save is never kept waiting; what it finds, a look judges.
func (s *Source) sweep(ctx context.Context) (out swept) {
	if !s.o.ReadOnly {
		_ = s.checkRoom() // for the status; a write asks again
	}
	pace := s.sweepPace(ctx)
	defer func() { out.cost = pace.worked() }()
	t, err := openTree(s.o.Dir)
	if err != nil {
		out.all = true
		return out
	}
	defer t.Close()
	seen := make(map[string]bool, s.knownFiles())
	var closed []string // folders that cannot be listed
	err = t.list(func(dir string) {
		if !s.watched(dir) {
			out.stale = true
		}
	}, func(e entry) {
		if ctx.Err() != nil {
			return
		}
		seen[e.path] = true
		if e.folder {
			closed = append(closed, e.path+"/")
		}
		if _, same := s.statAsKnown(t, e); !same {
			out.paths = append(out.paths, e.path)
		}
		if len(seen)%32 == 0 {
			pace.rest()
		}
	})
	out.temps = t.temps()
	if err != nil || ctx.Err() != nil || len(seen) == 0 {
		out.all = true
		return out
	}
	s.known.RLock()
	for p := range s.table.files {
		in := func(dir string) bool { return strings.HasPrefix(p, dir) }
		if !seen[p] && !slices.ContainsFunc(closed, in) {
			out.paths = append(out.paths, p)
		}
	}
	for p := range s.bad {
		out.paths = append(out.paths, p)
	}
	s.known.RUnlock()
	if len(out.paths) > manyPaths {
		out.all = true
	}
	return out
}

// hashSweep reads every known file and tells whose content is not what was accepted, though size, times and inode are.
// What these tell is left to sweep.
func (s *Source) hashSweep(ctx context.Context) (out swept) {
	out.hash = true
	pace := s.sweepPace(ctx)
	defer func() { out.cost = pace.worked() }()
	t, err := openTree(s.o.Dir)
	if err != nil {
		return out // a sweep says so, too
	}
	defer t.Close()
	s.known.RLock()
	paths := slices.Sorted(maps.Keys(s.table.files)) // folder by folder, as they lie on the disk
	s.known.RUnlock()
	for _, p := range paths {
		if ctx.Err() != nil {
			return out
		}
		if !s.hashAsKnown(t, p) {
			out.paths = append(out.paths, p)
		}
		pace.rest()
	}
	return out
}

// statAsKnown reports whether a file is, by stat, as it was accepted, and what it was then.
func (s *Source) statAsKnown(t *tree, e entry) (prev *file, same bool) {
	s.known.RLock()
	prev = s.table.files[e.path]
	s.known.RUnlock()
	if prev == nil || e.err != nil || !e.sameStat(prev.stamp) || !depsUnchanged(t, prev.deps) {
		return nil, false
	}
	return prev, !prev.young // a look takes a young stamp again, now that it can be trusted
}

// hashAsKnown reports whether a file that is as it was by stat has the content that was accepted.
func (s *Source) hashAsKnown(t *tree, path string) bool {
	e, _, ok := t.stat(path)
	if !ok {
		return true // a sweep's
	}
	prev, same := s.statAsKnown(t, e)
	if !same {
		return true // a sweep's
	}
	_, stamp, err := t.read(path, MaxFileBytes)
	return err == nil && stamp.Hash == prev.stamp.Hash
}

func (s *Source) knownFiles() int {
	s.known.RLock()
	defer s.known.RUnlock()
	return len(s.table.files)
}

// watched reports whether a watch is on the folder that is there now; true when there are no watches at all.
func (s *Source) watched(dir string) bool {
	s.known.RLock()
	w := s.watch
	s.known.RUnlock()
	if w == nil {
		return true
	}
	return w.on(filepath.Join(s.o.Dir, filepath.FromSlash(dir)))
}
