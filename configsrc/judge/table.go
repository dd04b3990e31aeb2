package judge

import (
	"crypto/sha256"
	"slices"
	"strconv"
	"sync/atomic"

	"fingerpost/resolver/catalog"
)

// A Claim is something that only one file may declare: a slug, a domain, a uuid, an id … It is a hash, so that the
// claims of a million objects fit into memory.
type Claim [16]byte

// ClaimOf returns the claim to a name, uuid or id.
func ClaimOf(what, of string) Claim {
	var buf [128]byte
	sum := sha256.Sum256(append(append(append(buf[:0], what...), 0), of...))
	return Claim(sum[:16])
}

// SetOf returns claims as a set.
func SetOf(claims []Claim) map[Claim]bool {
	set := make(map[Claim]bool, len(claims))
	for _, c := range claims {
		set[c] = true
	}
	return set
}

// ProjectClaim is a project's identity for the brake and for renames. A domain's is its name: ClaimOf("domain", name).
func ProjectClaim(u catalog.UUID) Claim { return ClaimOf("project uuid", string(u[:])) }

// HolderClaim is the claim to the name of what has a list of projects.
func HolderClaim(h catalog.ListHolder) Claim { return ClaimOf(string(h.Kind), h.Name) }

// Counts are numbers of objects by kind, for the brake, the status, and for limits.
type Counts struct{ Projects, Domains, Webhooks, Logins, Inbounds int }

// add adds sign times o.
func (n *Counts) add(o Counts, sign int) {
	n.Projects += sign * o.Projects
	n.Domains += sign * o.Domains
	n.Webhooks += sign * o.Webhooks
	n.Logins += sign * o.Logins
	n.Inbounds += sign * o.Inbounds
}

// claimsOf lists what the objects of a file claim: the uuids of its projects first, then the names of its domains, each
// in the order of refs, then the rest. n counts the objects.
func claimsOf(refs []catalog.Ref) (claims []Claim, n Counts) {
	var projects, domains, rest []Claim
	for _, r := range refs {
		switch r.Kind {
		case catalog.KindWebhook:
			n.Webhooks++
		case catalog.KindLogin:
			n.Logins++
		case catalog.KindInbound:
			n.Inbounds++
		}
		eachClaim(r, func(what string, c Claim) {
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
	n.Projects, n.Domains = len(projects), len(domains)
	return slices.Concat(projects, domains, rest), n
}

// eachClaim yields the claims of one object, with their names in messages.
func eachClaim(r catalog.Ref, yield func(what string, c Claim)) {
	switch r.Kind {
	case catalog.KindProject:
		yield("slug", ClaimOf("slug", r.Name))
	case catalog.KindDomain:
		yield("domain", ClaimOf("domain", r.Name))
	case catalog.KindTemplate:
		if r.ProjectID == 0 {
			yield("default template", ClaimOf("template", r.Name))
		}
	case catalog.KindKey:
		yield("key", ClaimOf("key", r.Name))
		yield("key id", ClaimOf("key id", r.KeyID))
		return
	case catalog.KindEdge:
		yield("edge", ClaimOf("edge", r.Name))
		yield("edge key", ClaimOf("edge key", r.KeyID))
		return
	case catalog.KindWebhook:
		yield("webhook", ClaimOf("webhook", r.Name))
		return
	case catalog.KindLogin:
		yield("login", ClaimOf("login", r.Name))
		return
	case catalog.KindInbound:
		yield("inbound", ClaimOf("inbound", r.Name))
		return
	default: // defaults, sealing: one in all files
		yield(string(r.Kind)+" block", ClaimOf(string(r.Kind), ""))
		return
	}
	yield("uuid", ClaimOf(string(r.Kind)+" uuid", string(r.UUID[:])))
	yield("id", ClaimOf(string(r.Kind)+" id", strconv.FormatInt(r.ID, 10)))
}

// A File is the table's entry for an accepted config file.
type File struct {
	Path    string
	number  uint32 // its index in Table.numbered
	Stamp   catalog.Stamp
	Deps    []catalog.Dep
	Claims  []Claim // in the order of claimsOf
	Objects int
	Counts  Counts
	// Racy: only the content shows whether the file is the accepted one (configsrc/states.go). It changes without the lock
	// that guards the table.
	Racy   atomic.Bool
	Warned bool   // decoding gave warnings
	Seen   uint64 // the last full look that found it
}

func (f *File) projects() []Claim { return f.Claims[:f.Counts.Projects] }

func (f *File) domains() []Claim {
	return f.Claims[f.Counts.Projects : f.Counts.Projects+f.Counts.Domains]
}

// A Table is the accepted state: the files, and which file has which claim. It mirrors the store's file table.
type Table struct {
	Files map[string]*File
	// owners maps a claim to a number instead of a pointer: the garbage collector does not scan a map without pointers,
	// and claims are nine tenths of what it would scan.
	owners   map[Claim]uint32
	numbered []*File // by File.number; nil: free
	free     []uint32
	users    map[string]map[*File]bool // dependency path → the files that take text from it
	Total    Counts

	// under, if set, is the table that this one lies over. Of its files, those in hidden are out of sight.
	under  *Table
	hidden map[string]bool
}

// NewTable returns an empty table.
func NewTable() *Table {
	return &Table{Files: map[string]*File{}, owners: map[Claim]uint32{}, users: map[string]map[*File]bool{}}
}

// LieOver makes an empty table lie over another one, whose files it shows as far as it does not hide them.
func (t *Table) LieOver(under *Table) { t.under, t.hidden = under, map[string]bool{} }

// Hide puts a file of the table below out of sight.
func (t *Table) Hide(path string) { t.hidden[path] = true }

// Hides reports whether a file of the table below is out of sight.
func (t *Table) Hides(path string) bool { return t.hidden[path] }

// Owner returns the file that has c, or nil.
func (t *Table) Owner(c Claim) *File {
	if n, ok := t.owners[c]; ok {
		return t.numbered[n]
	}
	if t.under == nil {
		return nil
	}
	f := t.under.Owner(c)
	if f != nil && t.hidden[f.Path] {
		return nil
	}
	return f
}

// counts returns the numbers of all objects in sight.
func (t *Table) counts() Counts {
	n := t.Total
	if t.under == nil {
		return n
	}
	n.add(t.under.counts(), 1)
	for path := range t.hidden {
		if f := t.under.File(path); f != nil {
			n.add(f.Counts, -1)
		}
	}
	return n
}

// File returns the entry of a path, or nil.
func (t *Table) File(path string) *File {
	if f := t.Files[path]; f != nil || t.under == nil || t.hidden[path] {
		return f
	}
	return t.under.File(path)
}

// UsersOf lists the files that take text from the file at path.
func (t *Table) UsersOf(path string) (files []*File) {
	for f := range t.users[path] {
		files = append(files, f)
	}
	if t.under != nil {
		for _, f := range t.under.UsersOf(path) {
			if !t.hidden[f.Path] {
				files = append(files, f)
			}
		}
	}
	return files
}

// NewFile returns the entry for a row of the Sink.
func NewFile(path string, row *catalog.FileRow, racy bool) *File {
	f := &File{Path: path, Stamp: row.Stamp, Deps: row.Deps, Warned: row.Warned, Objects: len(row.Refs)}
	f.Claims, f.Counts = claimsOf(row.Refs)
	f.Racy.Store(racy)
	return f
}

// Put adds or replaces a file. It takes the file's claims over from other files.
func (t *Table) Put(f *File) {
	t.Drop(f.Path)
	if last := len(t.free) - 1; last >= 0 {
		f.number, t.free = t.free[last], t.free[:last]
		t.numbered[f.number] = f
	} else {
		f.number = uint32(len(t.numbered))
		t.numbered = append(t.numbered, f)
	}
	t.Files[f.Path] = f
	for _, c := range f.Claims {
		t.owners[c] = f.number
	}
	for _, d := range f.Deps {
		if t.users[d.Path] == nil {
			t.users[d.Path] = map[*File]bool{}
		}
		t.users[d.Path][f] = true
	}
	t.Total.add(f.Counts, 1)
}

// Drop removes a file. Claims that another file has taken over stay with that file.
func (t *Table) Drop(path string) {
	f := t.Files[path]
	if f == nil {
		return
	}
	delete(t.Files, path)
	for _, c := range f.Claims {
		if t.Owner(c) == f {
			delete(t.owners, c)
		}
	}
	t.numbered[f.number] = nil
	t.free = append(t.free, f.number)
	for _, d := range f.Deps {
		if delete(t.users[d.Path], f); len(t.users[d.Path]) == 0 {
			delete(t.users, d.Path)
		}
	}
	t.Total.add(f.Counts, -1)
}
