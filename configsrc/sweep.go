package configsrc

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"fingerpost/configsrc/folder"
	"fingerpost/configsrc/judge"
)

// A swept is the result of a sweep: hints, like events.
type swept struct {
	scope
	read     int           // files read because of racy stamps
	outlived []*judge.File // of these: have the accepted content, and a stamp that is old enough to trust now
	temps    []string      // temporary files
	stale    bool          // a watch is on a folder that was replaced
	cost     time.Duration // without the pauses
	hash     bool
}

// A sweeper looks for what no event has named. Its methods run next to the goroutine that looks.
type sweeper struct {
	*base
	watching *watching
	report   *reporter
}

// sweepStats compares the whole folder with the table by stat, and by content if a stamp is racy, and returns the
// differences. It runs in a goroutine of its own, in small steps with pauses; a look judges its findings.
func (w *sweeper) sweepStats(ctx context.Context) (out swept) {
	_ = w.checkWritable(w.report) // for the status; a write asks again
	pace := w.newPace(ctx)
	defer func() { out.cost = pace.worked() }()
	t, err := w.OpenTree()
	if err != nil {
		out.All = true
		return out
	}
	defer t.Close()
	w.Known.RLock()
	unseen := make(map[string]bool, len(w.Table.Files)) // known files that the list has not shown
	for p := range w.Table.Files {
		unseen[p] = true
	}
	w.Known.RUnlock()
	n := 0
	var closed []string // folders that cannot be listed
	err = t.List(func(dir string) {
		if !w.watching.covers(dir) {
			out.stale = true
		}
	}, func(e folder.Entry) {
		if ctx.Err() != nil {
			return
		}
		if e.Folder {
			closed = append(closed, e.Path+"/")
		}
		delete(unseen, e.Path)
		prev := w.knownAs(e.Path)
		if !sameAsKnown(t, prev, e) || prev.Racy.Load() && !out.readRacy(t, prev, pace) {
			out.Paths = append(out.Paths, e.Path)
		}
		if n++; n%32 == 0 {
			pace.rest()
		}
	})
	out.temps = t.Temps()
	if err != nil || ctx.Err() != nil || n == 0 {
		out.All = true
		return out
	}
	for p := range unseen {
		if !slices.ContainsFunc(closed, func(dir string) bool { return strings.HasPrefix(p, dir) }) {
			out.Paths = append(out.Paths, p)
		}
	}
	w.Known.RLock()
	for p := range w.Quarantine {
		out.Paths = append(out.Paths, p)
	}
	w.Known.RUnlock()
	if len(out.Paths) > folder.ManyPaths {
		out.All = true
	}
	return out
}

// sweepHashes reads every known file and returns those whose content differs from the accepted one although size, times
// and inode are equal.
func (w *sweeper) sweepHashes(ctx context.Context) (out swept) {
	out.hash = true
	pace := w.newPace(ctx)
	defer func() { out.cost = pace.worked() }()
	t, err := w.OpenTree()
	if err != nil {
		return out // sweepStats reports it, too
	}
	defer t.Close()
	w.Known.RLock()
	paths := slices.Sorted(maps.Keys(w.Table.Files)) // folder by folder, as on the disk
	w.Known.RUnlock()
	for _, p := range paths {
		if ctx.Err() != nil {
			return out
		}
		if !w.hashAsKnown(t, p) {
			out.Paths = append(out.Paths, p)
		}
		pace.rest()
	}
	return out
}

// sweepWhole is the number of files up to which a sweep needs no rests.
const sweepWhole = 256

func (w *sweeper) newPace(ctx context.Context) *pacer {
	w.Known.RLock()
	defer w.Known.RUnlock()
	return newPacer(ctx, w.live.Load() && len(w.Table.Files) > sweepWhole)
}

// knownAs returns the table's entry of a file, nil if there is none.
func (w *sweeper) knownAs(path string) *judge.File {
	w.Known.RLock()
	defer w.Known.RUnlock()
	return w.Table.Files[path]
}

// racyPerSweep bounds the files that a sweep reads because of racy stamps, so that it takes little longer.
const racyPerSweep = 250

// readRacy reads a file with a racy stamp once the stamp is old enough to trust, so that no look has to, which could
// delay a save: the API may have written thousands of files. It returns false if the file differs from the accepted
// one. Stamps that are still too young, or exceed racyPerSweep, are left to the next sweep. A time in the future is
// never old enough.
func (out *swept) readRacy(t *folder.Tree, f *judge.File, pace *pacer) (same bool) {
	old := age(f.Stamp, time.Now())
	if out.read == racyPerSweep || 0 <= old && old < racyFor {
		return true
	}
	out.read++
	_, stamp, err := t.Read(f.Path, folder.MaxFileBytes)
	pace.rest()
	if err != nil || !stamp.SameStat(f.Stamp) || stamp.Hash != f.Stamp.Hash {
		return false
	}
	if old >= racyFor {
		out.outlived = append(out.outlived, f)
	}
	return true
}

// hashAsKnown reports whether a file that is unchanged by stat, and the files it takes text from, have the accepted
// content. Differences in stat are left to sweepStats.
func (w *sweeper) hashAsKnown(t *folder.Tree, path string) bool {
	e, _, ok := t.Stat(path)
	prev := w.knownAs(path)
	if !ok || !sameAsKnown(t, prev, e) {
		return true
	}
	_, stamp, err := t.Read(path, folder.MaxFileBytes)
	return err == nil && stamp.Hash == prev.Stamp.Hash && depsAsKnown(t, prev.Deps)
}
