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
	"fingerpost/configsrc/folder"
	"fingerpost/configsrc/hclfile"
	"fingerpost/configsrc/judge"
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
	candidates []*judge.Candidate   // sorted by path
	touched    []*judge.Candidate   // same content with another time or inode: only the row is new
	recording  func() (done func()) // see catalog.Change
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
	if len(s.table.Files) == 0 && sc.All && !s.live.Load() {
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
	waits := s.holdReplaced(t, found.candidates)
	j := s.judge(t, found.candidates, start)
	j.Suspicious = func(c *judge.Candidate) bool { return waits[c.Path] || s.suspicious(c, start) }
	j.Run()
	loss, removed := j.Loss()
	through, held, err := s.brake(found, loss, start)
	if held {
		return err
	}
	s.settleFormers(found.candidates)
	if len(removed) > 0 {
		s.rememberRemoved(found, removed)
		_ = s.noteRemovals(removed) // a Sink whose disk has failed takes the change without the note
	}
	// ---- Up to here nothing that is served has changed. From here on only the Sink can refuse, and then nothing has
	// changed either. ----
	j.Release() // as large as the change, and no longer needed
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
func (s *Source) judge(t *folder.Tree, candidates []*judge.Candidate, now time.Time) *judge.Case {
	return &judge.Case{
		Table: s.table, Candidates: candidates, Require: s.sealed,
		Row:        s.o.Sink.File,
		Display:    s.display,
		Locate:     func(p string) (*hclfile.Result, error) { return locate(t, s.display(p), p) },
		Suspicious: func(c *judge.Candidate) bool { return s.suspicious(c, now) },
		Removed:    s.removing,
		Meant:      func(project catalog.UUID) bool { return s.removing[judge.ProjectClaim(project)] },
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
		prev := s.table.Files[e.Path]
		if prev != nil {
			prev.Seen = s.lookNo
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
		for p, prev := range s.table.Files {
			if prev.Seen != s.lookNo {
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
			case !ok && s.table.Files[p] != nil:
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
		f.candidates = append(f.candidates, &judge.Candidate{Path: p, Prev: s.table.Files[p], Gone: true,
			Stamp: t.FolderStamp(p), Named: sc.Names(p)})
	}
	judge.SortByPath(f.candidates)
	return &f, ctx.Err()
}

// keepBelow marks the files of a folder that cannot be listed as seen.
func (s *Source) keepBelow(dir string) {
	for p, f := range s.table.Files {
		if strings.HasPrefix(p, dir+"/") {
			f.Seen = s.lookNo
		}
	}
}

// expand adds the paths that must be examined as well: the users of a file that file() names, and quarantined and
// suspect files, which the change may repair.
func (s *Source) expand(paths []string) []string {
	set := map[string]bool{}
	for _, p := range paths {
		set[p] = true
		for _, f := range s.table.UsersOf(p) {
			set[f.Path] = true
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
func (s *Source) isUnchanged(t *folder.Tree, prev *judge.File, e folder.Entry, sc *scope) bool {
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
	results := make([]*judge.Candidate, len(todo))
	var done atomic.Int64
	each(len(todo), s.live.Load(), func(i int) {
		if s.progress != nil {
			defer func() { s.progress(int(done.Add(1)), len(todo)) }()
		}
		e, prev := todo[i], s.table.Files[todo[i].Path]
		bad := s.quarantine[e.Path]
		switch {
		case ctx.Err() != nil:
		case bad != nil && bad.Broken != nil && !s.byHash && e.Err == nil && e.Stat.SameStat(bad.Stamp) && depsUnchanged(t,
			bad.Deps):
			results[i] = &judge.Candidate{Path: e.Path, Prev: prev, Refused: bad, Content: judge.Content{Diags: bad.Broken}}
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
		case !c.Touched:
			f.candidates = append(f.candidates, c)
			continue
		}
		if c.Stamp.SameStat(c.Prev.Stamp) { // it was read because its stamp was racy
			c.Prev.Racy.Store(age(c.Stamp, start) < racyFor)
		} else {
			f.touched = append(f.touched, c)
		}
		s.unquarantine(c.Path)
		delete(s.suspects, c.Path)
	}
}

// examineOne reads one file and decodes it unless its content equals that of prev, its accepted state. It returns nil
// for a file that is gone and was never accepted. It only reads the Source, so several may run at once.
func (s *Source) examineOne(t *folder.Tree, e folder.Entry, prev *judge.File) *judge.Candidate {
	c := &judge.Candidate{Path: e.Path, Prev: prev}
	if e.Err != nil {
		what := "the file "
		if e.Folder {
			what = "the folder "
		}
		c.Diags = hclfile.Diagnostics{hclfile.FileProblem(s.display(e.Path), what+e.Err.Error(), "")}
		return c
	}
	b, stamp, err := t.Read(e.Path, folder.MaxFileBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist) && prev == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		c.Gone = true
		return c
	case err != nil:
		c.Diags = hclfile.Diagnostics{hclfile.FileProblem(s.display(e.Path),
			"the file cannot be read: "+atomicfile.Cause(err).Error(), "")}
		return c
	}
	c.Stamp, c.Bytes = stamp, b
	if prev != nil && stamp.Hash == prev.Stamp.Hash && depsUnchanged(t, prev.Deps) && !s.redecode && (!s.byHash ||
		depsAsKnown(t, prev.Deps)) {
		c.Deps, c.Touched = prev.Deps, true
		return c
	}
	c.Decode(s.display(e.Path), t, s.today())
	return c
}

// commitPart commits the accepted candidates. partial: it is a part of a first load.
func (s *Source) commitPart(found *finding, partial bool) error {
	accepted := found.touched
	for _, c := range found.candidates {
		switch {
		case c.Rejected && !c.Suspect && !s.live.Load():
			if old := s.lastGood(c); old != nil {
				accepted = append(accepted, old)
			}
		case c.Out(), c.Gone && c.Prev == nil:
		default:
			accepted = append(accepted, c)
		}
	}
	c := catalog.Change{Texts: s.texts(accepted), Recording: found.recording}
	return s.commit(c, accepted, found.candidates, partial ||
		len(accepted) == len(found.touched))
}

// commit adds accepted candidates to a change and applies it to the Sink, updates the table, and records the problems
// of all that were judged. fill: no answer changes, because a first load is under way, or only stamps differ.
func (s *Source) commit(change catalog.Change, accepted, judged []*judge.Candidate, fill bool) error {
	for _, c := range accepted {
		f := catalog.FileChange{Path: c.Path}
		switch {
		case c.Gone:
		case c.Touched:
			f.Row = &catalog.FileRow{Stamp: c.Stamp, Deps: c.Deps, Warned: c.Prev.Warned}
		default:
			warned := len(c.Diags)+len(c.Cross) > 0 || s.warnings.names.Overlaps(c.Path)
			f.Row = &catalog.FileRow{Stamp: c.Stamp, Deps: c.Deps, Warned: warned}
			f.Declared, f.Bytes, f.Times = c.Declared, c.Bytes, c.Times
		}
		f.By, f.Others, f.Waits = c.By, c.Others, c.By != nil
		if f.By == nil && !c.Touched {
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
		if !c.Touched {
			s.changed.add(c.Path, change.Files[i].By)
		}
	}
	s.warnings.committed(accepted, gone, s.redecode)
	return nil
}

// serve applies a change to the Sink, and then to the table.
func (s *Source) serve(change *catalog.Change, accepted, judged []*judge.Candidate, fill bool) (err error) {
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
			s.table.Drop(c.Path)
			continue
		}
		f := &judge.File{Path: c.Path, Stamp: row.Stamp, Deps: row.Deps, Warned: row.Warned, Seen: s.lookNo,
			Claims: c.Claims, Objects: len(c.Refs), Counts: c.Counts}
		if c.Touched {
			f.Claims, f.Objects, f.Counts = c.Prev.Claims, c.Prev.Objects, c.Prev.Counts
		}
		f.Racy.Store(age(row.Stamp, now) < racyFor)
		s.table.Put(f)
		if c.Declared != nil && c.Declared.Sealing != nil {
			s.sealed = c.Declared.Sealing.Require
		}
	}
	if len(accepted) > 0 && s.sealed && s.table.Owner(judge.ClaimOf(string(catalog.KindSealing), "")) == nil {
		s.sealed = false
	}
	for _, c := range judged {
		switch {
		case c.Suspect:
		case c.Rejected:
			s.noteQuarantined(c)
		default:
			s.accept(c)
		}
	}
	s.known.Unlock()
	return nil
}
