package configsrc

import (
	"crypto/sha256"
	"slices"
	"strconv"
	"sync/atomic"

	"fingerpost/resolver/catalog"
)

// A claim is something that only one file may declare: a slug, a domain, a uuid, an id … It is a hash, so that the
// claims of a million objects fit into memory.
type claim [16]byte

// claimOf returns the claim to a name, uuid or id.
func claimOf(what, of string) claim {
	var buf [128]byte
	sum := sha256.Sum256(append(append(append(buf[:0], what...), 0), of...))
	return claim(sum[:16])
}

// projectClaim is a project's identity for the brake and for renames. A domain's is its name: claimOf("domain", name).
func projectClaim(u catalog.UUID) claim { return claimOf("project uuid", string(u[:])) }

// counts are numbers of objects by kind, for the brake and the status.
type counts struct{ projects, domains int }

// claimsOf lists what the objects of a file claim: the uuids of its projects first, then the names of its domains, each
// in the order of refs, then the rest. n counts the projects and domains.
func claimsOf(refs []catalog.Ref) (claims []claim, n counts) {
	var projects, domains, rest []claim
	for _, r := range refs {
		eachClaim(r, func(what string, c claim) {
			switch {
			case r.Kind == catalog.KindProject && what == "uuid":
				projects = append(projects, c)
			case r.Kind == catalog.KindDomain && what == "domain":
				domains = append(domains, c)
			default:
				rest = append(rest, c)
			}
		})
	}
	return slices.Concat(projects, domains, rest), counts{len(projects), len(domains)}
}

// eachClaim yields the claims of one object, with their names in messages.
func eachClaim(r catalog.Ref, yield func(what string, c claim)) {
	switch r.Kind {
	case catalog.KindProject:
		yield("slug", claimOf("slug", r.Name))
	case catalog.KindDomain:
		yield("domain", claimOf("domain", r.Name))
	case catalog.KindTemplate:
		if r.ProjectID == 0 {
			yield("default template", claimOf("template", r.Name))
		}
	case catalog.KindKey:
		yield("key", claimOf("key", r.Name))
		yield("key id", claimOf("key id", r.KeyID))
		return
	case catalog.KindEdge:
		yield("edge", claimOf("edge", r.Name))
		yield("edge key", claimOf("edge key", r.KeyID))
		return
	default: // defaults, sealing: one in all files
		yield(string(r.Kind)+" block", claimOf(string(r.Kind), ""))
		return
	}
	yield("uuid", claimOf(string(r.Kind)+" uuid", string(r.UUID[:])))
	yield("id", claimOf(string(r.Kind)+" id", strconv.FormatInt(r.ID, 10)))
}

// A file is the table's entry for an accepted config file.
type file struct {
	path    string
	number  uint32 // its index in table.numbered
	stamp   catalog.Stamp
	deps    []catalog.Dep
	claims  []claim // in the order of claimsOf
	objects int
	counts  counts
	// racy: only the content shows whether the file is the accepted one, see pathState. It changes without Source.known.
	racy   atomic.Bool
	warned bool   // decoding gave warnings
	seen   uint64 // the last full look that found it
}

func (f *file) projects() []claim { return f.claims[:f.counts.projects] }

func (f *file) domains() []claim {
	return f.claims[f.counts.projects : f.counts.projects+f.counts.domains]
}

// A table is the accepted state: the files, and which file has which claim. It mirrors the store's file table.
type table struct {
	files map[string]*file
	// owners maps a claim to a number instead of a pointer: the garbage collector does not scan a map without pointers,
	// and claims are nine tenths of what it would scan.
	owners   map[claim]uint32
	numbered []*file // by file.number; nil: free
	free     []uint32
	users    map[string]map[*file]bool // dependency path → the files that take text from it
	total    counts

	// under, if set, is the table that this one lies over. Of its files, those in hidden are out of sight.
	under  *table
	hidden map[string]bool
}

func newTable() *table {
	return &table{files: map[string]*file{}, owners: map[claim]uint32{}, users: map[string]map[*file]bool{}}
}

// lieOver makes an empty table lie over another one, whose files it shows as far as it does not hide them.
func (t *table) lieOver(under *table) { t.under, t.hidden = under, map[string]bool{} }

// hide puts a file of the table below out of sight, and hides reports whether it is.
func (t *table) hide(path string)       { t.hidden[path] = true }
func (t *table) hides(path string) bool { return t.hidden[path] }

// owner returns the file that has c, or nil.
func (t *table) owner(c claim) *file {
	if n, ok := t.owners[c]; ok {
		return t.numbered[n]
	}
	if t.under == nil {
		return nil
	}
	f := t.under.owner(c)
	if f != nil && t.hidden[f.path] {
		return nil
	}
	return f
}

// file returns the entry of a path, or nil.
func (t *table) file(path string) *file {
	if f := t.files[path]; f != nil || t.under == nil || t.hidden[path] {
		return f
	}
	return t.under.file(path)
}

// usersOf lists the files that take text from the file at path.
func (t *table) usersOf(path string) (files []*file) {
	for f := range t.users[path] {
		files = append(files, f)
	}
	if t.under != nil {
		for _, f := range t.under.usersOf(path) {
			if !t.hidden[f.path] {
				files = append(files, f)
			}
		}
	}
	return files
}

// newFile returns the entry for a row of the Sink.
func newFile(path string, row *catalog.FileRow, racy bool) *file {
	f := &file{path: path, stamp: row.Stamp, deps: row.Deps, warned: row.Warned, objects: len(row.Refs)}
	f.claims, f.counts = claimsOf(row.Refs)
	f.racy.Store(racy)
	return f
}

// put adds or replaces a file. It takes the file's claims over from other files.
func (t *table) put(f *file) {
	t.drop(f.path)
	if last := len(t.free) - 1; last >= 0 {
		f.number, t.free = t.free[last], t.free[:last]
		t.numbered[f.number] = f
	} else {
		f.number = uint32(len(t.numbered))
		t.numbered = append(t.numbered, f)
	}
	t.files[f.path] = f
	for _, c := range f.claims {
		t.owners[c] = f.number
	}
	for _, d := range f.deps {
		if t.users[d.Path] == nil {
			t.users[d.Path] = map[*file]bool{}
		}
		t.users[d.Path][f] = true
	}
	t.total.projects += f.counts.projects
	t.total.domains += f.counts.domains
}

// drop removes a file. Claims that another file has taken over stay with that file.
func (t *table) drop(path string) {
	f := t.files[path]
	if f == nil {
		return
	}
	delete(t.files, path)
	for _, c := range f.claims {
		if t.owner(c) == f {
			delete(t.owners, c)
		}
	}
	t.numbered[f.number] = nil
	t.free = append(t.free, f.number)
	for _, d := range f.deps {
		if delete(t.users[d.Path], f); len(t.users[d.Path]) == 0 {
			delete(t.users, d.Path)
		}
	}
	t.total.projects -= f.counts.projects
	t.total.domains -= f.counts.domains
}
