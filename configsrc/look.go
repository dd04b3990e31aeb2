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

	"fingerpost/configsrc/hclfile"
	"fingerpost/configsrc/seal"
	"fingerpost/resolver/catalog"
)

// A scope says what a look looks at.
type scope struct {
	all   bool     // every file; else only paths
	hash  bool     // read and hash every file, whatever its size and time say
	paths []string // slash-separated, below the folder: files, folders or what file() names
	// named are those of paths that nobody is known to have written into: there is a file under a name, as every write of
	// ours puts it there. Such a file is another one by its stamp, or none.
	named map[string]bool
}

// A candidate is a file that is not as it was accepted, with what a look makes of it.
type candidate struct {
	path     string
	prev     *file        // as it was accepted; nil: never
	known    *quarantined // it is as broken as it was
	gone     bool
	touched  bool // the content is as it was; only the stamp is another, or was too young to be trusted
	stamp    catalog.Stamp
	bytes    []byte
	bodies   map[string][]byte // stand for what is on disk where file() names them; nil: nothing does
	declared *catalog.Declared // nil when it does not decode, or is packed
	packed   []byte            // declared as the Sink packs it, among many candidates
	spool    catalog.Spool     // packed and bytes, where another process has made them
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
	waiting  bool // needs a second look
}

// sound reports that the candidate's new state decodes without errors.
func (c *candidate) sound() bool { return c.declared != nil || c.packed != nil || c.spool.Waits() }

// out reports that the candidate's new state does not come in, so that the old one stays.
func (c *candidate) out() bool { return c.rejected || c.waiting }

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
	s.reread = sc.hash
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
		count, pace := 0, s.pace(len(s.table.files))
		err := t.list(s.watchFolder, func(e entry) {
			if count++; count%64 == 0 {
				pace.rest()
			}
			consider(e)
		})
		if err != nil {
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
	there := make(map[string]bool, len(s.bad))
	for i := range todo {
		if s.bad[todo[i].path] != nil {
			there[todo[i].path] = true
		}
	}
	for p := range s.bad {
		if s.table.files[p] == nil && !there[p] {
			s.unquarantine(p)
		}
	}
}

// manyBad is how many quarantined files are tried again with every event; more than that wait for the sweep.
const manyBad = 200

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
	if len(s.bad) <= manyBad {
		for p := range s.bad {
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
	if prev == nil || sc.hash || prev.young.Load() && (s.recheck || !sc.named[e.path]) || e.err != nil || s.bad[e.path] != nil || !e.stat.SameStat(prev.stamp) {
		return false
	}
	if _, suspect := s.suspects[e.path]; suspect {
		return false // it may be one that only its content gave away; if it is what it was again, that shows by reading it
	}
	return depsUnchanged(t, prev.deps)
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

// examine reads and decodes what stat could not settle: with all cores before the service is ready, else in a way that
// lets resolve keep its latency.
func (s *Source) examine(ctx context.Context, t *tree, todo []entry, f *finding) {
	start := time.Now()
	results := make([]*candidate, len(todo))
	touched := make([]bool, len(todo))
	one := func(i int) { results[i], touched[i] = s.examineOne(t, todo[i]) }
	if s.live.Load() {
		s.examinePaced(ctx, t, todo, func(i int, c *candidate, same bool) { results[i], touched[i] = c, same })
		if ctx.Err() != nil {
			return
		}
	} else {
		parallel(len(todo), one)
	}
	for i, c := range results {
		switch {
		case touched[i]:
			if c.stamp.SameStat(c.prev.stamp) { // it was read because its stamp was young
				c.prev.young.Store(fresh(c.stamp, start))
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

// examinePaced is examine while somebody waits for answers: many files in a process of their own, else one at a time with
// pauses.
func (s *Source) examinePaced(ctx context.Context, t *tree, todo []entry, took func(i int, c *candidate, touched bool)) {
	pace, many := s.pace(len(todo)), len(todo) > bulk
	one := func(i int) {
		pace.begin()
		c, touched := s.examineOne(t, todo[i])
		if many && c != nil && c.declared != nil && c.declared.Sealing == nil {
			c.packed, c.declared = s.o.Sink.Pack(c.declared), nil
		}
		took(i, c, touched)
		pace.rest()
	}
	done := 0
	if many {
		done = s.examineApart(ctx, t, todo, took, one)
	}
	for i := done; i < len(todo) && ctx.Err() == nil; i++ {
		one(i)
	}
}

// examineOne reads one file; touched tells that its content is as it was. It only reads the Source, so that several
// may run at once.
func (s *Source) examineOne(t *tree, e entry) (c *candidate, touched bool) {
	if bad := s.bad[e.path]; bad != nil && bad.broken != nil && !s.reread && e.err == nil && e.stat.SameStat(bad.stamp) && depsUnchanged(t, bad.deps) {
		return &candidate{path: e.path, prev: s.table.files[e.path], known: bad, diags: bad.broken}, false
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
		c.diags = hclfile.Diagnostics{hclfile.FileProblem(s.display(e.path), "the file cannot be read: "+cause(err).Error(), "")}
		return c
	}
	c.stamp, c.bytes = stamp, b
	if prev != nil && stamp.Hash == prev.stamp.Hash && depsUnchanged(t, prev.deps) && !s.recheck && (!s.reread || depsAsKnown(t, prev.deps)) {
		c.deps, c.touched = prev.deps, true
		return c
	}
	c.decode(s.display(e.path), t)
	return c
}

// decode fills in what the bytes say. The Result is for callers that edit the bytes or point into them; it is too large to
// be kept for every file.
func (c *candidate) decode(display string, t *tree) *hclfile.Result {
	stamps, asked := map[string]catalog.Stamp{}, map[string]bool{}
	r, diags := hclfile.Decode(display, c.bytes, hclfile.Options{ReadFile: func(p string) ([]byte, error) {
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
	if c.fault == nil && isDiskFault(err) {
		c.fault = writeFault("read a file that the config file names", err)
	}
}

// positions decodes the bytes once more, for the ranges of a diagnostic: too large to keep for every file.
func (c *candidate) positions(display string) *hclfile.Result {
	content := c.bytes
	if c.spool.Waits() {
		content = nil
		if b, err := c.spool.Load(nil); err == nil { // else the diagnostic is about the file as a whole
			content = b[c.spool.Packed:]
		}
	}
	r, _ := hclfile.Decode(display, content, hclfile.Options{})
	return r
}

// warned reports whether there is anything to say about an accepted candidate.
func (c *candidate) warned() bool { return len(c.diags)+len(c.cross) > 0 }

// claim takes the claims of the new state. They are the caller's, who may use their memory again; where they are those of
// the accepted state, as nearly always, that one's do for both.
func (c *candidate) claim(claims []claim) {
	if c.prev != nil && slices.Equal(c.prev.claims, claims) {
		c.claims = c.prev.claims
	} else {
		c.claims = slices.Clone(claims)
	}
}

// claimsAsBefore reports whether the candidate claims what its accepted state does. It may miss that.
func (c *candidate) claimsAsBefore() bool {
	was := c.prev.claims
	return len(c.claims) > 0 && len(c.claims) == len(was) && &c.claims[0] == &was[0]
}

// accepted is what the table says of the candidate once the Sink has it.
func (c *candidate) accepted(row *catalog.FileRow, now time.Time) *file {
	f := &file{path: c.path, stamp: row.Stamp, deps: row.Deps, warned: row.Warned,
		claims: c.claims, objects: c.objects, counts: c.counts}
	f.young.Store(fresh(row.Stamp, now))
	if c.touched {
		f.claims, f.objects, f.counts = c.prev.claims, c.prev.objects, c.prev.counts
	}
	return f
}

func linkOrCause(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("there is no such file below the config folder")
	}
	if c := cause(err); c != err {
		return c
	}
	return err
}
