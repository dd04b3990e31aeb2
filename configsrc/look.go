package configsrc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sort"
	"strings"
	"sync/atomic"
	"time"

	"fingerpost/configsrc/atomicfile"
	"fingerpost/configsrc/background"
	"fingerpost/configsrc/folder"
	"fingerpost/configsrc/hclfile"
	"fingerpost/configsrc/watch"
	"fingerpost/resolver/catalog"
)

// A scope selects the paths of a look.
type scope struct {
	watch.Seen
	hash bool // read and hash every file, whatever its size and times
}

// A finding is the result of gather.
type finding struct {
	candidates []*candidate // sorted by path
	touched    []*candidate // same content with another time or inode: only the row is new
}

// look is one reload, from top to bottom: gather what has changed, judge it, commit what is accepted. An error means
// that nothing was changed.
func (s *Source) look(ctx context.Context, sc scope) error {
	start := time.Now()
	t, err := s.openTree()
	if err != nil {
		return s.holdTree(fmt.Sprintf("the config folder cannot be opened: %v", atomicfile.Cause(err)))
	}
	defer t.Close()
	if len(s.table.files) == 0 && sc.All && !s.live.Load() {
		return s.firstLoad(ctx, t, start)
	}
	if s.status.Held != nil {
		sc.All = true // otherwise a held change would be accepted piece by piece
	}
	found, err := s.gather(ctx, t, sc)
	if err == nil && sc.All && len(s.clearLeftovers(t.Temps())) > 0 {
		found, err = s.gather(ctx, t, sc)
	}
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return s.holdTree(err.Error())
	}
	if len(found.candidates)+len(found.touched) == 0 { // such as after the events of our own writes
		s.settled(sc.All, nil)
		s.report(start, "reloaded")
		return nil
	}
	s.nameNew(t, found.candidates)
	j := s.judge(t, found.candidates, start)
	j.run()
	loss, removed := j.loss()
	through, held, err := s.brake(found, loss, start)
	if held {
		return err
	}
	if len(removed) > 0 {
		_ = s.noteRemovals(removed) // a Sink whose disk has failed takes the change without the note
	}
	// ---- Up to here nothing that is served has changed. From here on only the Sink can refuse, and then nothing has
	// changed either. ----
	j.release() // as large as the change, and no longer needed
	if err := s.commitPart(found, false); err != nil {
		return err
	}
	if waiting := s.noteSuspects(found, start); !waiting {
		s.settled(sc.All, through)
	}
	s.report(start, "reloaded")
	return nil
}

// judge makes the judge of a reload.
func (s *Source) judge(t *folder.Tree, candidates []*candidate, now time.Time) *judge {
	return &judge{
		table: s.table, candidates: candidates, require: s.sealed,
		row:        s.o.Sink.File,
		display:    s.display,
		locate:     func(p string) (*hclfile.Result, error) { return locate(t, s.display(p), p) },
		suspicious: func(c *candidate) bool { return s.suspicious(c, now) },
		removed:    s.removing,
		meant:      func(project catalog.UUID) bool { return s.removing[projectClaim(project)] },
	}
}

// gather finds what differs from the accepted state. An error means that the folder could not be listed, and nothing
// may be concluded.
func (s *Source) gather(ctx context.Context, t *folder.Tree, sc scope) (*finding, error) {
	var f finding
	var todo []folder.Entry
	s.lookNo++
	s.byHash = sc.hash
	consider := func(e folder.Entry) {
		if e.Folder {
			s.keepBelow(e.Path)
		}
		prev := s.table.files[e.Path]
		if prev != nil {
			prev.seen = s.lookNo
		}
		if s.isUnchanged(t, prev, e, &sc) {
			return
		}
		todo = append(todo, e)
	}
	var gone []string
	if sc.All {
		if err := t.List(s.watchFolder, consider); err != nil {
			return nil, err
		}
		for p, prev := range s.table.files {
			if prev.seen != s.lookNo {
				gone = append(gone, p)
			}
		}
		s.forgetAbsent(todo)
	} else {
		for _, p := range s.expand(sc.Paths) {
			e, isDir, ok := t.Stat(p)
			switch {
			case isDir:
				if err := t.ListBelow(p, s.watchFolder, consider); err != nil {
					return nil, err
				}
			case ok && folder.IsConfigPath(p):
				consider(e)
			case !ok && s.table.files[p] != nil:
				gone = append(gone, p)
			case !ok:
				s.unquarantine(p)
				delete(s.suspects, p)
			}
		}
	}
	sort.Slice(todo, func(i, j int) bool { return todo[i].Path < todo[j].Path })
	s.examine(ctx, t, todo, &f)
	for _, p := range gone {
		f.candidates = append(f.candidates, &candidate{path: p, prev: s.table.files[p], gone: true, stamp: t.FolderStamp(p),
			named: sc.Names(p)})
	}
	sortByPath(f.candidates)
	return &f, ctx.Err()
}

// keepBelow marks the files of a folder that cannot be listed as seen.
func (s *Source) keepBelow(dir string) {
	for p, f := range s.table.files {
		if strings.HasPrefix(p, dir+"/") {
			f.seen = s.lookNo
		}
	}
}

// expand adds the paths that must be examined as well: the users of a file that file() names, and quarantined and
// suspect files, which the change may repair.
func (s *Source) expand(paths []string) []string {
	set := map[string]bool{}
	for _, p := range paths {
		set[p] = true
		for _, f := range s.table.usersOf(p) {
			set[f.path] = true
		}
	}
	if len(s.quarantine) <= manyQuarantined {
		for p := range s.quarantine {
			set[p] = true
		}
	}
	for p := range s.suspects {
		set[p] = true
	}
	out := make([]string, 0, len(set))
	for p := range set {
		out = append(out, p)
	}
	sort.Strings(out)
	return out
}

// isUnchanged decides by stat alone.
func (s *Source) isUnchanged(t *folder.Tree, prev *file, e folder.Entry, sc *scope) bool {
	switch s.stateOf(e.Path) {
	case pathAccepted:
	case pathRacy:
		if s.redecode || !sc.Replaced[e.Path] {
			return false
		}
	default: // a suspect with its old stat: only reading it tells
		return false
	}
	return !sc.hash && sameAsKnown(t, prev, e)
}

// examine reads and decodes the files that stat did not settle.
func (s *Source) examine(ctx context.Context, t *folder.Tree, todo []folder.Entry, f *finding) {
	start := time.Now()
	results := make([]*candidate, len(todo))
	var done atomic.Int64
	background.Each(len(todo), s.live.Load(), func(i int) {
		if s.progress != nil {
			defer func() { s.progress(int(done.Add(1)), len(todo)) }()
		}
		e, prev := todo[i], s.table.files[todo[i].Path]
		bad := s.quarantine[e.Path]
		switch {
		case ctx.Err() != nil:
		case bad != nil && bad.broken != nil && !s.byHash && e.Err == nil && e.Stat.SameStat(bad.stamp) && depsUnchanged(t,
			bad.deps):
			results[i] = &candidate{path: e.Path, prev: prev, refused: bad, content: content{diags: bad.broken}}
		default:
			results[i] = s.examineOne(t, e, prev)
		}
	})
	if ctx.Err() != nil {
		return
	}
	for _, c := range results {
		switch {
		case c == nil:
			continue
		case !c.touched:
			f.candidates = append(f.candidates, c)
			continue
		}
		if c.stamp.SameStat(c.prev.stamp) { // it was read because its stamp was racy
			c.prev.racy.Store(age(c.stamp, start) < racyFor)
		} else {
			f.touched = append(f.touched, c)
		}
		s.unquarantine(c.path)
		delete(s.suspects, c.path)
	}
}

// examineOne reads one file and decodes it unless its content equals that of prev, its accepted state. It returns nil
// for a file that is gone and was never accepted. It only reads the Source, so several may run at once.
func (s *Source) examineOne(t *folder.Tree, e folder.Entry, prev *file) *candidate {
	c := &candidate{path: e.Path, prev: prev}
	if e.Err != nil {
		what := "the file "
		if e.Folder {
			what = "the folder "
		}
		c.diags = hclfile.Diagnostics{hclfile.FileProblem(s.display(e.Path), what+e.Err.Error(), "")}
		return c
	}
	b, stamp, err := t.Read(e.Path, folder.MaxFileBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist) && prev == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		c.gone = true
		return c
	case err != nil:
		c.diags = hclfile.Diagnostics{hclfile.FileProblem(s.display(e.Path),
			"the file cannot be read: "+atomicfile.Cause(err).Error(), "")}
		return c
	}
	c.stamp, c.bytes = stamp, b
	if prev != nil && stamp.Hash == prev.stamp.Hash && depsUnchanged(t, prev.deps) && !s.redecode && (!s.byHash ||
		depsAsKnown(t, prev.deps)) {
		c.deps, c.touched = prev.deps, true
		return c
	}
	c.decode(s.display(e.Path), t, s.today())
	return c
}

// commitPart commits the accepted candidates. partial: it is a part of a first load.
func (s *Source) commitPart(found *finding, partial bool) error {
	accepted := found.touched
	for _, c := range found.candidates {
		switch {
		case c.rejected && !c.suspect && !s.live.Load():
			if old := s.lastGood(c); old != nil {
				accepted = append(accepted, old)
			}
		case c.out(), c.gone && c.prev == nil:
		default:
			accepted = append(accepted, c)
		}
	}
	return s.commit(catalog.Change{Texts: s.texts(accepted)}, accepted, found.candidates, partial ||
		len(accepted) == len(found.touched))
}

// commit adds accepted candidates to a change and applies it to the Sink, updates the table, and records the problems
// of all that were judged. fill: no answer changes, because a first load is under way, or only stamps differ.
func (s *Source) commit(change catalog.Change, accepted, judged []*candidate, fill bool) error {
	for _, c := range accepted {
		f := catalog.FileChange{Path: c.path}
		switch {
		case c.gone:
		case c.touched:
			f.Row = &catalog.FileRow{Stamp: c.stamp, Deps: c.deps, Warned: c.prev.warned}
		default:
			warned := len(c.diags)+len(c.cross) > 0 || s.warnings.names.Overlaps(c.path)
			f.Row = &catalog.FileRow{Stamp: c.stamp, Deps: c.deps, Warned: warned}
			f.Declared, f.Bytes, f.Times = c.declared, c.bytes, c.times
		}
		if f.By = c.by; f.By == nil && !c.touched {
			f.By = s.broughtBy(c)
		}
		change.Files = append(change.Files, f)
	}
	gone := s.warnings.names.Leaving(changing(accepted))
	err := s.serve(&change, accepted, judged, fill)
	if errors.Is(err, catalog.ErrUnaudited) {
		return err // the caller takes the files back
	}
	if err != nil {
		err = fmt.Errorf("store the change: %w", err)
		s.fail(err)
		return err
	}
	for i, c := range accepted {
		if !c.touched {
			s.changed.add(c.path, change.Files[i].By)
		}
	}
	s.warnings.committed(accepted, gone, s.redecode)
	return nil
}

// serve applies a change to the Sink, and then to the table.
func (s *Source) serve(change *catalog.Change, accepted, judged []*candidate, fill bool) (err error) {
	s.committing.Lock()
	defer s.committing.Unlock()
	switch {
	case len(accepted) == 0 && change.Position == nil:
	case fill:
		err = s.o.Sink.Fill(change)
	default:
		var generation uint64
		if generation, err = s.o.Sink.Apply(change); err == nil {
			s.setGeneration(generation)
		}
	}
	if err != nil {
		return err
	}
	// ---- From here on nothing can fail. ----
	if s.o.OnCommit != nil && !fill {
		s.o.OnCommit(s.committed(change))
	}
	now := time.Now()
	s.known.Lock()
	for i, c := range accepted {
		row := change.Files[i].Row
		if row == nil {
			s.table.drop(c.path)
			continue
		}
		f := &file{path: c.path, stamp: row.Stamp, deps: row.Deps, warned: row.Warned, seen: s.lookNo,
			claims: c.claims, objects: len(c.refs), counts: c.counts}
		if c.touched {
			f.claims, f.objects, f.counts = c.prev.claims, c.prev.objects, c.prev.counts
		}
		f.racy.Store(age(row.Stamp, now) < racyFor)
		s.table.put(f)
		if c.declared != nil && c.declared.Sealing != nil {
			s.sealed = c.declared.Sealing.Require
		}
	}
	if len(accepted) > 0 && s.sealed && s.table.owner(claimOf(string(catalog.KindSealing), "")) == nil {
		s.sealed = false
	}
	for _, c := range judged {
		switch {
		case c.suspect:
		case c.rejected:
			s.noteQuarantined(c)
		default:
			s.accept(c)
		}
	}
	s.known.Unlock()
	return nil
}
