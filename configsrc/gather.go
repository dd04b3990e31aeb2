package configsrc

import (
	"context"
	"errors"
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
		if err := t.List(s.watching.addFolder, consider); err != nil {
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
				if err := t.ListBelow(p, s.watching.addFolder, consider); err != nil {
					return nil, err
				}
			case ok && folder.IsConfigPath(p):
				consider(e)
			case !ok && s.table.Files[p] != nil:
				gone = append(gone, p)
			case !ok:
				s.unquarantine(p)
				delete(s.states.suspects, p)
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
	for p := range s.states.suspects {
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
	switch s.states.stateOf(e.Path) {
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
		delete(s.states.suspects, c.Path)
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

// forgetAbsent drops quarantined files that were never accepted and no longer exist. Existing quarantined files are
// always in todo.
func (s *Source) forgetAbsent(todo []folder.Entry) {
	there := make(map[string]bool, len(s.quarantine))
	for i := range todo {
		if s.quarantine[todo[i].Path] != nil {
			there[todo[i].Path] = true
		}
	}
	for p := range s.quarantine {
		if s.table.Files[p] == nil && !there[p] {
			s.unquarantine(p)
		}
	}
}
