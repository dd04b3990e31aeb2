package configsrc

import (
	"context"
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

// sweep compares the whole folder with the table, by stat or by hash, and tells what is not the same. It runs beside the
// looks, in small steps with pauses, so that a save is never kept waiting; what it finds, a look judges.
func (s *Source) sweep(ctx context.Context, hash bool) (out swept) {
	out.hash = hash
	if !s.o.ReadOnly {
		_ = s.checkRoom() // for the status; a write asks again
	}
	start, pace := time.Now(), s.pace(bulk+1)
	defer func() { out.cost = time.Since(start) - pace.rested }()
	t, err := openTree(s.o.Dir)
	if err != nil {
		out.all = true
		return out
	}
	defer t.Close()
	seen := make(map[string]bool, s.knownFiles())
	n := 0
	var closed []string // folders that cannot be listed
	err = t.list(func(dir string) {
		if !s.watched(dir) {
			out.stale = true
		}
	}, func(e entry) {
		seen[e.path] = true
		if e.folder {
			closed = append(closed, e.path+"/")
		}
		if !s.sameAsKnown(t, e, hash) {
			out.paths = append(out.paths, e.path)
		}
		if n++; n%32 == 0 || hash {
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

// sameAsKnown reports whether a file is as it was accepted.
func (s *Source) sameAsKnown(t *tree, e entry, hash bool) bool {
	s.known.RLock()
	prev := s.table.files[e.path]
	s.known.RUnlock()
	if prev == nil || e.err != nil || !e.sameStat(prev.stamp) || !depsUnchanged(t, prev.deps) {
		return false
	}
	if prev.young {
		return false // a look takes its stamp again, now that it can be trusted
	}
	if !hash {
		return true
	}
	_, stamp, err := t.read(e.path, MaxFileBytes)
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
