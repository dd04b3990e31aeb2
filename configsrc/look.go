package configsrc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"fingerpost/configsrc/atomicfile"
	"fingerpost/configsrc/hclfile"
	"fingerpost/configsrc/seal"
	"fingerpost/resolver/catalog"
)

// A scope says what a look looks at.
type scope struct {
	all   bool     // every file; else only paths
	hash  bool     // read and hash every file, whatever its size and time say
	paths []string // slash-separated, below the folder: files, folders or what file() names
	// replaced are those of paths into which no event tells of a write: the file was put there whole, under its name, as
	// our own writes do. Its stamp tells whether it is the accepted one, even if that is racy.
	replaced map[string]bool
}

// A candidate is a file that is not as it was accepted, with what a look makes of it.
type candidate struct {
	path     string
	prev     *file        // as it was accepted; nil: never
	refused  *quarantined // it is as broken as it was
	gone     bool
	touched  bool // the content is as it was; only the stamp is another, or was racy
	stamp    catalog.Stamp
	bytes    []byte
	bodies   map[string][]byte // stand for what is on disk where file() names them; nil: nothing does
	declared *catalog.Declared // nil when it does not decode
	refs     []catalog.Ref     // of what was decoded here
	objects  int               // how many it declares
	counts   counts            // and which
	claims   []claim           // of the accepted state itself, where they are the same
	deps     []catalog.Dep
	diags    hclfile.Diagnostics // of the file itself
	fault    error               // of the disk, from reading what file() names: why there are diags
	cross    hclfile.Diagnostics // of the file among the others
	plain    bool                // holds a clear-text secret
	fresh    []string            // slugs of projects with uuid = "new"
	rejected bool
	suspect  bool // needs a second look
}

// sound reports that the candidate's new state decodes without errors.
func (c *candidate) sound() bool { return c.declared != nil }

// out reports that the candidate's new state does not come in, so that the old one stays.
func (c *candidate) out() bool { return c.rejected || c.suspect }

// A finding is what gathering found.
type finding struct {
	candidates []*candidate // sorted by path
	touched    []*candidate // same content under another time or inode: only the row is new
}

// gather finds what is not as it was. An error means that the folder could not be listed, and nothing may be concluded.
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
		if len(todo) == cap(todo) {
			todo = slices.Grow(todo, len(todo)+16) // append makes more of it where it is large
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

// keepBelow counts the files of a folder that cannot be listed as seen.
func (s *Source) keepBelow(dir string) {
	for p, f := range s.table.files {
		if strings.HasPrefix(p, dir+"/") {
			f.seen = s.lookNo
		}
	}
}

// forgetAbsent drops quarantined files that were never accepted and are not there any more. Quarantined files that are
// there always are in todo.
func (s *Source) forgetAbsent(todo []entry) {
	there := make(map[string]bool, len(s.quarantine))
	for i := range todo {
		if s.quarantine[todo[i].path] != nil {
			there[todo[i].path] = true
		}
	}
	for p := range s.quarantine {
		if s.table.files[p] == nil && !there[p] {
			s.unquarantine(p)
		}
	}
}

// manyQuarantined is how many quarantined files are tried again with every event; more than that wait for the sweep.
const manyQuarantined = 200

// expand adds to paths what has to be looked at with them: the users of a file that file() names, and what was
// quarantined or waits, since the change may be what it waits for.
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
	default: // of a suspect that is what it was again, only reading it tells
		return false
	}
	return !sc.hash && e.err == nil && e.stat.SameStat(prev.stamp) && depsUnchanged(t, prev.deps)
}

func depsUnchanged(t *tree, deps []catalog.Dep) bool {
	for _, d := range deps {
		info, err := t.statFile(d.Path)
		if err != nil || !statOf(info).SameStat(d.Stamp) {
			return false
		}
	}
	return true
}

// depsAsKnown reports whether what a file takes text from has the content that was read.
func depsAsKnown(t *tree, deps []catalog.Dep) bool {
	for _, d := range deps {
		_, stamp, err := t.readNamed(d.Path, maxBodyFileBytes)
		if err != nil || stamp.Hash != d.Stamp.Hash {
			return false
		}
	}
	return true
}

// examine reads and decodes what stat could not settle.
func (s *Source) examine(ctx context.Context, t *tree, todo []entry, f *finding) {
	start := time.Now()
	results := make([]*candidate, len(todo))
	touched := make([]bool, len(todo))
	s.parallel(len(todo), func(i int) {
		if ctx.Err() == nil {
			results[i], touched[i] = s.examineOne(t, todo[i])
		}
	})
	if ctx.Err() != nil {
		return
	}
	for i, c := range results {
		switch {
		case touched[i]:
			if c.stamp.SameStat(c.prev.stamp) { // it was read because its stamp was racy
				c.prev.racy.Store(isRacy(c.stamp, start))
			} else {
				f.touched = append(f.touched, c)
			}
			s.unquarantine(c.path)
			delete(s.suspects, c.path)
		case c != nil:
			f.candidates = append(f.candidates, c)
		}
	}
}

// examineOne reads one file; touched tells that its content is as it was. It only reads the Source, so that several
// may run at once.
func (s *Source) examineOne(t *tree, e entry) (c *candidate, touched bool) {
	if bad := s.quarantine[e.path]; bad != nil && bad.broken != nil && !s.byHash && e.err == nil && e.stat.SameStat(bad.stamp) && depsUnchanged(t, bad.deps) {
		return &candidate{path: e.path, prev: s.table.files[e.path], refused: bad, diags: bad.broken}, false
	}
	c = s.examineAgainst(t, e, s.table.files[e.path])
	return c, c != nil && c.touched
}

// examineAgainst reads one file and decodes it unless its content is that of prev. It returns nil for a file that is
// gone and never was accepted.
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

// decode fills in what the bytes say. The result is for those who edit or point into them: it is too large to be kept for
// every file.
func (c *candidate) decode(display string, t *tree) *hclfile.Result {
	return c.decodeBy(display, t, func(o hclfile.Options) (*hclfile.Result, hclfile.Diagnostics) {
		return hclfile.Decode(display, c.bytes, o)
	})
}

// decodeBy is decode by what does for hclfile.Decode of the bytes.
func (c *candidate) decodeBy(display string, t *tree, decode func(hclfile.Options) (*hclfile.Result, hclfile.Diagnostics)) *hclfile.Result {
	stamps, asked := map[string]catalog.Stamp{}, map[string]bool{}
	r, diags := decode(hclfile.Options{ReadFile: func(p string) ([]byte, error) {
		asked[p] = true
		if b, ok := c.bodies[p]; ok {
			return b, nil
		}
		b, stamp, err := t.readNamed(p, maxBodyFileBytes)
		if err != nil {
			c.failed(err)
			return nil, linkOrCause(err)
		}
		stamps[p] = stamp
		return b, nil
	}})
	c.diags = diags
	c.plain, c.fresh = r.PlainSecret, r.NewUUIDs
	for _, p := range r.Deps {
		stamp, ok := stamps[p]
		if !ok && !asked[p] { // a ca_file: nobody has read it yet
			var err error
			if _, stamp, err = t.readNamed(p, maxBodyFileBytes); err != nil {
				c.failed(err)
				c.diags = append(c.diags, hclfile.FileProblem(display, "ca_file "+p+": "+linkOrCause(err).Error(), ""))
			}
		}
		c.deps = append(c.deps, catalog.Dep{Path: p, Stamp: stamp})
	}
	if sealing := r.Declared.Sealing; sealing != nil {
		for _, recipient := range sealing.Recipients {
			if err := seal.CheckRecipient(recipient); err != nil {
				c.diags = append(c.diags, r.Diagnose(catalog.Ref{Kind: catalog.KindSealing}, hclfile.Error,
					fmt.Sprintf("recipient %q is no age X25519 recipient: %v", recipient, err), "\"fingerpost secrets keygen\" prints one"))
			}
		}
	}
	if c.diags.HasErrors() {
		return r
	}
	c.declared = r.Declared
	c.refs = r.Declared.Refs()
	c.objects, c.counts = len(c.refs), countRefs(c.refs)
	c.claims = claimsOf(c.refs)
	return r
}

// failed notes why a file that file() names could not be read, where the disk is at fault and not the files. It may be a
// file of another project, so its name is left out.
func (c *candidate) failed(err error) {
	if c.fault == nil && atomicfile.IsDiskFault(err) {
		c.fault = writeFault("read a file that the config file names", err)
	}
}

// positions decodes the bytes once more, for the ranges of a diagnostic: too large to keep for every file.
func (c *candidate) positions(display string) *hclfile.Result {
	r, _ := hclfile.Decode(display, c.bytes, hclfile.Options{})
	return r
}

// locate decodes a file as it is on disk now.
func locate(t *tree, display, path string) (*hclfile.Result, error) {
	b, _, err := t.read(path, MaxFileBytes)
	if err != nil {
		return nil, err
	}
	r, _ := hclfile.Decode(display, b, hclfile.Options{})
	if r == nil {
		return nil, errors.New("does not decode")
	}
	return r, nil
}

// warned reports whether there is anything to say about an accepted candidate.
func (c *candidate) warned() bool { return len(c.diags)+len(c.cross) > 0 }

// claimsAsBefore reports whether the candidate claims exactly what its accepted state claims.
func (c *candidate) claimsAsBefore() bool { return slices.Equal(c.claims, c.prev.claims) }

// accepted is what the table says of the candidate once the Sink has it.
func (c *candidate) accepted(row *catalog.FileRow, now time.Time) *file {
	f := &file{path: c.path, stamp: row.Stamp, deps: row.Deps, warned: row.Warned,
		claims: c.claims, objects: c.objects, counts: c.counts}
	f.racy.Store(isRacy(row.Stamp, now))
	if c.touched {
		f.claims, f.objects, f.counts = c.prev.claims, c.prev.objects, c.prev.counts
	}
	return f
}

func linkOrCause(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("there is no such file below the config folder")
	}
	if c := atomicfile.Cause(err); c != err {
		return c
	}
	return err
}
