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
)

// A scope selects the paths of a look.
type scope struct {
	folder.Seen
	hash bool // read and hash every file, whatever its size and times
}

// A finding is the result of gather.
type finding struct {
	candidates []*judge.Candidate   // sorted by path
	touched    []*judge.Candidate   // same content with another time or inode: only the row is new
	recording  func() (done func()) // see catalog.Change
}

// A finder finds what differs from the accepted state. It belongs to the goroutine that looks.
type finder struct {
	*base
	states     *pathStates
	beforeList func(folder string)   // called for each folder before it is listed
	lookNo     uint64                // counts the calls of gather
	byHash     bool                  // the present one trusts no stamp
	progress   func(done, total int) // called for each file that was read; nil: nobody asks
}

// gather finds what differs from the accepted state. An error means that the folder could not be listed, and nothing
// may be concluded.
func (f *finder) gather(ctx context.Context, t *folder.Tree, sc scope) (*finding, error) {
	var found finding
	var todo []folder.Entry
	f.lookNo++
	f.byHash = sc.hash
	consider := func(e folder.Entry) {
		if e.Folder {
			f.markBelow(e.Path)
		}
		prev := f.Table.Files[e.Path]
		if prev != nil {
			prev.Seen = f.lookNo
		}
		if f.isUnchanged(t, prev, e, &sc) {
			return
		}
		todo = append(todo, e)
	}
	var gone []string
	if sc.All {
		if err := t.List(f.beforeList, consider); err != nil {
			return nil, err
		}
		for p, prev := range f.Table.Files {
			if prev.Seen != f.lookNo {
				gone = append(gone, p)
			}
		}
		f.forgetAbsent(todo)
	} else {
		for _, p := range f.withAffected(sc.Paths) {
			e, isDir, ok := t.Stat(p)
			switch {
			case isDir:
				if err := t.ListBelow(p, f.beforeList, consider); err != nil {
					return nil, err
				}
			case ok && folder.IsConfigPath(p):
				consider(e)
			case !ok && f.Table.Files[p] != nil:
				gone = append(gone, p)
			case !ok:
				f.forgetQuarantined(p)
				delete(f.states.suspects, p)
			}
		}
	}
	sort.Slice(todo, func(i, j int) bool { return todo[i].Path < todo[j].Path })
	f.examine(ctx, t, todo, &found)
	for _, p := range gone {
		found.candidates = append(found.candidates, &judge.Candidate{Path: p, Prev: f.Table.Files[p], Gone: true,
			Stamp: t.FolderStamp(p), Named: sc.Names(p)})
	}
	judge.SortByPath(found.candidates)
	return &found, ctx.Err()
}

// markBelow marks the files of a folder that cannot be listed as seen.
func (f *finder) markBelow(dir string) {
	for p, file := range f.Table.Files {
		if strings.HasPrefix(p, dir+"/") {
			file.Seen = f.lookNo
		}
	}
}

// withAffected adds the paths that must be examined as well: the users of a file that file() names, and quarantined and
// suspect files, which the change may repair.
func (f *finder) withAffected(paths []string) []string {
	set := map[string]bool{}
	for _, p := range paths {
		set[p] = true
		for _, user := range f.Table.UsersOf(p) {
			set[user.Path] = true
		}
	}
	if len(f.Quarantine) <= manyQuarantined {
		for p := range f.Quarantine {
			set[p] = true
		}
	}
	for p := range f.states.suspects {
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
func (f *finder) isUnchanged(t *folder.Tree, prev *judge.File, e folder.Entry, sc *scope) bool {
	switch f.states.stateOf(e.Path) {
	case pathAccepted:
	case pathRacy:
		if f.redecode || !sc.Replaced[e.Path] {
			return false
		}
	default: // a suspect with its old stat: only reading it tells
		return false
	}
	return !sc.hash && sameAsKnown(t, prev, e)
}

// examine reads and decodes the files that stat did not settle.
func (f *finder) examine(ctx context.Context, t *folder.Tree, todo []folder.Entry, found *finding) {
	start := time.Now()
	results := make([]*judge.Candidate, len(todo))
	var done atomic.Int64
	each(len(todo), f.live.Load(), func(i int) {
		if f.progress != nil {
			defer func() { f.progress(int(done.Add(1)), len(todo)) }()
		}
		e, prev := todo[i], f.Table.Files[todo[i].Path]
		bad := f.Quarantine[e.Path]
		switch {
		case ctx.Err() != nil:
		case bad != nil && bad.Broken != nil && !f.byHash && e.Err == nil && e.Stat.SameStat(bad.Stamp) && depsUnchanged(t,
			bad.Deps):
			results[i] = &judge.Candidate{Path: e.Path, Prev: prev, Refused: bad, Content: judge.Content{Diags: bad.Broken}}
		default:
			results[i] = f.examineOne(t, e, prev)
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
			found.candidates = append(found.candidates, c)
			continue
		}
		if c.Stamp.SameStat(c.Prev.Stamp) { // it was read because its stamp was racy
			c.Prev.Racy.Store(age(c.Stamp, start) < racyFor)
		} else {
			found.touched = append(found.touched, c)
		}
		f.forgetQuarantined(c.Path)
		delete(f.states.suspects, c.Path)
	}
}

// examineOne reads one file and decodes it unless its content equals that of prev, its accepted state. It returns nil
// for a file that is gone and was never accepted. It only reads the finder, so several may run at once.
func (f *finder) examineOne(t *folder.Tree, e folder.Entry, prev *judge.File) *judge.Candidate {
	c := &judge.Candidate{Path: e.Path, Prev: prev}
	if e.Err != nil {
		what := "the file "
		if e.Folder {
			what = "the folder "
		}
		c.Diags = hclfile.Diagnostics{hclfile.FileProblem(f.Display(e.Path), what+e.Err.Error(), "")}
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
		c.Diags = hclfile.Diagnostics{hclfile.FileProblem(f.Display(e.Path),
			"the file cannot be read: "+atomicfile.Cause(err).Error(), "")}
		return c
	}
	c.Stamp, c.Bytes = stamp, b
	if prev != nil && stamp.Hash == prev.Stamp.Hash && depsUnchanged(t, prev.Deps) && !f.redecode && (!f.byHash ||
		depsAsKnown(t, prev.Deps)) {
		c.Deps, c.Touched = prev.Deps, true
		return c
	}
	c.Decode(f.Display(e.Path), t, f.Rules())
	return c
}

// forgetAbsent drops quarantined files that were never accepted and no longer exist. Existing quarantined files are
// always in todo.
func (f *finder) forgetAbsent(todo []folder.Entry) {
	there := make(map[string]bool, len(f.Quarantine))
	for i := range todo {
		if f.Quarantine[todo[i].Path] != nil {
			there[todo[i].Path] = true
		}
	}
	for p := range f.Quarantine {
		if f.Table.Files[p] == nil && !there[p] {
			f.forgetQuarantined(p)
		}
	}
}
