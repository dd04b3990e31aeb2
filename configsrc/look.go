package configsrc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"fingerpost/configsrc/atomicfile"
	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// A scope selects the paths of a look.
type scope struct {
	all   bool     // every file; otherwise only paths
	hash  bool     // read and hash every file, whatever its size and times
	paths []string // slash-separated, below the folder: files, folders or files that file() names
	// replaced lists the paths that saw only create or rename events: such a file was put there complete, like our own
	// writes. Its stamp decides whether it is the accepted one, even if racy.
	replaced map[string]bool
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
	t, err := openTree(s.o.Dir)
	if err != nil {
		return s.holdTree(fmt.Sprintf("the config folder cannot be opened: %v", atomicfile.Cause(err)))
	}
	defer t.Close()
	if len(s.table.files) == 0 && sc.all && !s.live.Load() {
		return s.firstLoad(ctx, t, start)
	}
	if s.heldNow() {
		sc.all = true // otherwise a held change would be accepted piece by piece
	}
	found, err := s.gather(ctx, t, sc)
	if err == nil && sc.all && len(s.clearLeftovers(t.temps())) > 0 {
		found, err = s.gather(ctx, t, sc)
	}
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return s.holdTree(err.Error())
	}
	if len(found.candidates)+len(found.touched) == 0 { // such as after the events of our own writes
		s.settled(sc.all)
		s.report(start, "reloaded")
		return nil
	}
	s.nameNew(t, found.candidates)
	j := s.judge(t, found.candidates, start)
	j.run()
	loss, removed := j.loss()
	if !s.confirmed {
		if held, err := s.brake(found, j, loss, start); held {
			return err
		}
	}
	_ = s.noteRemovals(removed) // a Sink whose disk has failed takes the change without the note
	// ---- Up to here nothing that is served has changed. From here on only the Sink can refuse, and then nothing has
	// changed either. ----
	j.holders = nil // as large as the change, and no longer needed
	if err := s.commitPart(found, false); err != nil {
		return err
	}
	if !j.anySuspect() {
		s.settled(sc.all)
	}
	s.noteSuspects(found, start)
	s.report(start, "reloaded")
	return nil
}

// judge makes the judge of a reload.
func (s *Source) judge(t *tree, candidates []*candidate, now time.Time) *judge {
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
func (s *Source) gather(ctx context.Context, t *tree, sc scope) (*finding, error) {
	var f finding
	var todo []entry
	s.lookNo++
	s.byHash = sc.hash
	consider := func(e entry) {
		if e.folder {
			s.keepBelow(e.path)
		}
		prev := s.table.files[e.path]
		if prev != nil {
			prev.seen = s.lookNo
		}
		if s.isUnchanged(t, prev, e, &sc) {
			return
		}
		todo = append(todo, e)
	}
	var gone []string
	if sc.all {
		if err := t.list(s.watchFolder, consider); err != nil {
			return nil, err
		}
		for p, prev := range s.table.files {
			if prev.seen != s.lookNo {
				gone = append(gone, p)
			}
		}
		s.forgetAbsent(todo)
	} else {
		for _, p := range s.expand(sc.paths) {
			e, isDir, ok := t.stat(p)
			switch {
			case isDir:
				if err := t.listBelow(p, s.watchFolder, consider); err != nil {
					return nil, err
				}
			case ok && isConfigName(filepath.Base(p)):
				consider(e)
			case !ok && s.table.files[p] != nil:
				gone = append(gone, p)
			case !ok:
				s.unquarantine(p)
				delete(s.suspects, p)
			}
		}
	}
	sort.Slice(todo, func(i, j int) bool { return todo[i].path < todo[j].path })
	s.examine(ctx, t, todo, &f)
	for _, p := range gone {
		f.candidates = append(f.candidates, &candidate{path: p, prev: s.table.files[p], gone: true})
	}
	sort.Slice(f.candidates, func(i, j int) bool { return f.candidates[i].path < f.candidates[j].path })
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
		for f := range s.table.users[p] {
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
func (s *Source) isUnchanged(t *tree, prev *file, e entry, sc *scope) bool {
	switch s.stateOf(e.path) {
	case pathAccepted:
	case pathRacy:
		if s.redecode || !sc.replaced[e.path] {
			return false
		}
	default: // a suspect with its old stat: only reading it tells
		return false
	}
	return !sc.hash && e.err == nil && e.stat.SameStat(prev.stamp) && depsUnchanged(t, prev.deps)
}

// examine reads and decodes the files that stat did not settle.
func (s *Source) examine(ctx context.Context, t *tree, todo []entry, f *finding) {
	start := time.Now()
	results := make([]*candidate, len(todo))
	s.parallel(len(todo), func(i int) {
		if ctx.Err() == nil {
			results[i] = s.examineOne(t, todo[i])
		}
	})
	if ctx.Err() != nil {
		return
	}
	for _, c := range present(results) {
		if !c.touched {
			f.candidates = append(f.candidates, c)
			continue
		}
		if c.stamp.SameStat(c.prev.stamp) { // it was read because its stamp was racy
			c.prev.racy.Store(isRacy(c.stamp, start))
		} else {
			f.touched = append(f.touched, c)
		}
		s.unquarantine(c.path)
		delete(s.suspects, c.path)
	}
}

// examineOne reads one file; nil for one that is gone and was never accepted. It only reads the Source, so several may
// run at once.
func (s *Source) examineOne(t *tree, e entry) *candidate {
	if bad := s.quarantine[e.path]; bad != nil && bad.broken != nil && !s.byHash && e.err == nil && e.stat.SameStat(bad.stamp) && depsUnchanged(t, bad.deps) {
		return &candidate{path: e.path, prev: s.table.files[e.path], refused: bad, diags: bad.broken}
	}
	return s.examineAgainst(t, e, s.table.files[e.path])
}

// examineAgainst reads one file and decodes it unless its content equals that of prev. It returns nil for a file that
// is gone and was never accepted.
func (s *Source) examineAgainst(t *tree, e entry, prev *file) *candidate {
	c := &candidate{path: e.path, prev: prev}
	if e.err != nil {
		what := "the file "
		if e.folder {
			what = "the folder "
		}
		c.diags = hclfile.Diagnostics{hclfile.FileProblem(s.display(e.path), what+e.err.Error(), "")}
		return c
	}
	b, stamp, err := t.read(e.path, MaxFileBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist) && prev == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		c.gone = true
		return c
	case err != nil:
		c.diags = hclfile.Diagnostics{hclfile.FileProblem(s.display(e.path), "the file cannot be read: "+atomicfile.Cause(err).Error(), "")}
		return c
	}
	c.stamp, c.bytes = stamp, b
	if prev != nil && stamp.Hash == prev.stamp.Hash && depsUnchanged(t, prev.deps) && !s.redecode && (!s.byHash || depsAsKnown(t, prev.deps)) {
		c.deps, c.touched = prev.deps, true
		return c
	}
	c.decode(s.display(e.path), t)
	return c
}

// A commitment is a change for the Sink, with its candidates.
type commitment struct {
	change catalog.Change
	of     []*candidate // of[i] becomes the table's entry for change.Files[i]
}

func (m *commitment) add(c *candidate, f catalog.FileChange) {
	m.change.Files, m.of = append(m.change.Files, f), append(m.of, c)
}

// put adds the content of a candidate.
func (m *commitment) put(c *candidate, warned bool) {
	m.add(c, catalog.FileChange{Path: c.path, Row: &catalog.FileRow{Stamp: c.stamp, Deps: c.deps, Warned: warned}, Declared: c.declared, Bytes: c.bytes})
}

// commitPart applies the accepted candidates to the Sink, and then updates the table. partial: it is a part of a first
// load.
func (s *Source) commitPart(found *finding, partial bool) error {
	m := new(commitment)
	for _, c := range found.touched {
		m.add(c, catalog.FileChange{Path: c.path, Row: &catalog.FileRow{Stamp: c.stamp, Deps: c.deps, Warned: c.prev.warned}})
	}
	for _, c := range found.candidates {
		switch {
		case c.rejected && !c.suspect && !s.live.Load():
			if old := s.lastGood(c); old != nil {
				m.put(old, old.warned())
			}
		case c.out():
		case c.gone && c.prev == nil:
		case c.gone:
			m.add(c, catalog.FileChange{Path: c.path})
		default:
			m.put(c, c.warned() || s.overlapping[c.path] > 0)
		}
	}
	var gone []string
	if len(m.change.Files) > 0 {
		gone = s.goneNames(m)
		var gen uint64
		var err error
		if partial || len(m.change.Files) == len(found.touched) { // no answer changes
			err = s.o.Sink.Fill(&m.change)
		} else if gen, err = s.o.Sink.Apply(&m.change); err == nil {
			s.setGeneration(gen)
		}
		if err != nil {
			err = fmt.Errorf("store the change: %w", err)
			s.fail(err)
			return err
		}
	}
	s.known.Lock()
	s.follow(m, found)
	s.known.Unlock()
	s.noteOverlaps(m, gone)
	return nil
}

// follow updates the table after the Sink has committed. It cannot fail.
func (s *Source) follow(m *commitment, found *finding) {
	change := &m.change
	now := time.Now()
	for i := range change.Files {
		f := &change.Files[i]
		if f.Row == nil {
			s.table.drop(f.Path)
			continue
		}
		is := m.of[i].accepted(f.Row, now)
		is.seen = s.lookNo
		s.table.put(is)
		if f.Declared != nil && f.Declared.Sealing != nil {
			s.sealed = f.Declared.Sealing.Require
		}
	}
	if len(change.Files) > 0 && s.sealed && s.table.owner(claimOf(string(catalog.KindSealing))) == nil {
		s.sealed = false
	}
	for _, c := range found.candidates {
		switch {
		case c.suspect:
		case c.rejected:
			s.noteQuarantined(c)
		default:
			s.accept(c)
		}
	}
}
