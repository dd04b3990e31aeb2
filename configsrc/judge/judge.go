// Package judge decides which changed config files are accepted, by comparing them with each other and with the files
// that are accepted already.
//
// Everything that must be unique over all files is a Claim: a slug, a domain, an id, the name of a key. A Table has the
// accepted files and the owner of each claim. A Candidate is a file that differs from the table, with what its bytes
// declare. A Case puts candidates before a table, and Run marks those whose new state is not accepted:
//
//   - the file has an error by itself, or a clear-text secret although the files require sealing,
//   - it claims what another file keeps, or what a file of a better rank claims too: one that does not look like a copy,
//     is named after the project, or has the earlier path,
//   - a project in it seems to be a known one under a new slug, and would lose its identity,
//   - with it there are more webhooks, logins or inbound blocks than may be,
//   - a project is gone from it, and a file that broke in the same look names that project,
//   - it may be half-written, which Case.Suspicious decides: such a candidate waits for a second look.
//
// It promises that the accepted states together have no two owners of a claim, that the result does not depend on the
// order in which files were found, and that Run changes candidates alone: the caller puts what it commits into the table.
// Each rejected candidate has diagnostics that name both places. Loss counts what the candidates would remove, and
// Conflict and Clash say the same as the diagnostics in an error for a client of the API.
//
// It needs decoded candidates and the rows of accepted files, and has no lock: a table belongs to one goroutine, or the
// caller guards it. It does not read the config folder, commits nothing and keeps nothing between two cases.
package judge

import (
	"fmt"
	"slices"
	"strings"

	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// A Case is what is judged together: the candidates of one look or one write. The fields are given; Run decides.
type Case struct {
	Table      *Table
	Candidates []*Candidate                                // sorted by path
	Row        func(path string) (*catalog.FileRow, error) // returns the accepted row of a file
	Display    func(path string) string                    // returns a path as messages name it
	Locate     func(path string) (*hclfile.Result, error)  // decodes a file as it is on disk, for positions
	Suspicious func(c *Candidate) bool                     // whether c needs a second look; nil: never
	Meant      func(project catalog.UUID) bool             // the project is removed on purpose, not renamed; nil: never
	Require    bool                                        // sealing { require = true } is in force
	Removed    map[Claim]bool                              // named in the Sink's note, so no loss; nil: none

	holders map[Claim][]*Candidate // candidates by their new claims, in the order of rank
}

// Run judges. Each step can only reject candidates. A rejected candidate keeps its old state, which may conflict with
// others, so the steps repeat until nothing changes; every round but the last rejects at least one.
func (j *Case) Run() {
	j.holders = map[Claim][]*Candidate{}
	for _, c := range j.Candidates {
		c.Rejected = c.Diags.HasErrors()
		for _, cl := range c.Claims {
			if owner := j.Table.Owner(cl); owner == nil || owner.Path != c.Path {
				j.holders[cl] = append(j.holders[cl], c)
			}
		}
	}
	for cl, all := range j.holders {
		if len(all) > 1 {
			rank(all, cl)
		}
	}
	for {
		j.sealing()
		j.conflicts()
		if !j.second() && !j.renames() && !j.lostToBroken() && !j.tooMany() {
			return
		}
	}
}

// Release frees what only Run and the methods that explain its result need.
func (j *Case) Release() { j.holders = nil }

// sealing turns clear-text secrets into errors if the files require sealing.
func (j *Case) sealing() {
	require := j.Require
	for _, c := range j.Candidates {
		if !c.Out() && c.Declared != nil && c.Declared.Sealing != nil {
			require = c.Declared.Sealing.Require
		}
	}
	if !require {
		return
	}
	for _, c := range j.Candidates {
		if c.Out() || !c.Plain {
			continue
		}
		for i := range c.Diags {
			if c.Diags[i].Rule == hclfile.RuleClearTextSecret {
				c.Diags[i].Severity = hclfile.Error
			}
		}
		c.Rejected = true
	}
}

// conflicts rejects files that claim what another file has, or what one of a better rank also claims. A candidate that lost
// to a rejected one comes back: hence the rounds in both directions. The last rounds only reject, so that the loop
// ends.
func (j *Case) conflicts() {
	lost := map[*Candidate]bool{}
	for round := 0; ; round++ {
		moved := false
		for _, c := range j.Candidates {
			if c.Gone || c.Out() && !lost[c] {
				continue
			}
			c.Cross = c.Cross[:0]
			conflict := slices.ContainsFunc(c.Claims, func(cl Claim) bool {
				_, conflict := j.keeper(c, cl)
				return conflict
			})
			if conflict == lost[c] || !conflict && round > 8 {
				continue
			}
			lost[c], c.Rejected, moved = conflict, conflict, true
		}
		if !moved {
			break
		}
	}
	for c, is := range lost {
		if !is {
			continue
		}
		if c.Cross = append(c.Cross, j.explain(c)...); len(c.Cross) == 0 { // files that exchange names in a circle
			c.Cross = append(c.Cross, hclfile.FileProblem(j.Display(c.Path),
				"its names conflict with those of files that have changed at the same time", "save it again"))
		}
	}
}

// keeper returns the path of the file that has claim cl instead of c; conflict is false if c may have it.
func (j *Case) keeper(c *Candidate, cl Claim) (path string, conflict bool) {
	owner := j.Table.Owner(cl)
	if owner != nil && owner.Path == c.Path {
		return "", false // the present owner keeps it
	}
	if owner != nil && !j.releases(owner.Path, cl) {
		return owner.Path, true
	}
	for _, h := range j.holders[cl] {
		if h == c {
			return "", false // no candidate comes before it
		}
		if !h.Out() {
			return h.Path, true
		}
	}
	return "", false
}

// Candidate returns the candidate for a path, nil if there is none.
func (j *Case) Candidate(path string) *Candidate {
	i, found := slices.BinarySearchFunc(j.Candidates, path, func(c *Candidate,
		path string) int {
		return strings.Compare(c.Path, path)
	})
	if !found {
		return nil
	}
	return j.Candidates[i]
}

// releases reports whether the file that owns cl gives it up in this look.
func (j *Case) releases(path string, cl Claim) bool {
	c := j.Candidate(path)
	return c != nil && !c.Out() && !slices.Contains(c.Claims, cl)
}

// claimed reports whether an accepted candidate claims cl, which c had before.
func (j *Case) claimed(c *Candidate, cl Claim) bool {
	return j.claimant(c, cl, func(h *Candidate) bool { return !h.Out() })
}

// claimant reports whether a candidate that satisfies is claims cl, which c had before.
func (j *Case) claimant(c *Candidate, cl Claim, is func(*Candidate) bool) bool {
	if is(c) && slices.Contains(c.Claims, cl) { // nearly always
		return true
	}
	if owner := j.Table.Owner(cl); owner != nil {
		if h := j.Candidate(owner.Path); h != nil && is(h) && slices.Contains(h.Claims, cl) {
			return true
		}
	}
	for _, h := range j.holders[cl] {
		if is(h) {
			return true
		}
	}
	return false
}

// explain makes the diagnostics of c's conflicts: they name both places.
func (j *Case) explain(c *Candidate) (ds hclfile.Diagnostics) {
	here := Positions(j.Display(c.Path), c.Bytes)
	for _, ref := range c.Refs {
		eachClaim(ref, func(what string, cl Claim) {
			path, conflict := j.keeper(c, cl)
			if !conflict {
				return
			}
			if what == "id" && ref.ID > catalog.MaxDeclaredID {
				what = derivedID
			}
			hint := j.conflictHint(what, ref)
			if LooksLikeCopy(c.Path) {
				hint = "by its name this file looks like a copy: remove it, or move it out of the config folder"
			}
			ds = append(ds, here.Diagnose(ref, hclfile.Error, j.conflictText(what, ref, path), hint))
		})
	}
	return onePerObject(ds)
}

// derivedID is a claim to an id that is in no line: among five million domains, two may derive the same one.
const derivedID = "derived id"

// onePerObject keeps the first conflict of each object: a copied block clashes by slug, uuid and id at once.
func onePerObject(ds hclfile.Diagnostics) hclfile.Diagnostics {
	seen := map[hclfile.Pos]bool{}
	out := ds[:0]
	for _, d := range ds {
		if !seen[d.Start] {
			seen[d.Start] = true
			out = append(out, d)
		}
	}
	return out
}

func (j *Case) conflictText(what string, ref catalog.Ref, path string) string {
	place := j.Display(path)
	if there, err := j.Locate(path); err == nil {
		for _, r := range there.Declared.Refs() {
			if r.Kind == ref.Kind && sharesClaim(r, ref) {
				place = fmt.Sprintf("%s:%d", place, there.Position(r).Line)
				break
			}
		}
	}
	return conflictText(what, ref, place)
}

func conflictText(what string, ref catalog.Ref, place string) string {
	switch what {
	case "slug", "domain", "default template", "key", "edge", "webhook", "login", "inbound":
		return fmt.Sprintf("%s %q is declared in %s already", what, ref.Name, place)
	case "key id":
		return fmt.Sprintf("key id %q is used in %s already", ref.KeyID, place)
	case "edge key":
		return fmt.Sprintf("the public key of edge %q is that of another edge, too, in %s", ref.Name, place)
	case derivedID:
		return fmt.Sprintf("the id %d of %s %q is by chance that of another object, too, in %s", ref.ID, ref.Kind, ref.Name,
			place)
	case "uuid", "id":
		return fmt.Sprintf("the %s of %s %q belongs to another object, in %s", what, ref.Kind, ref.Name, place)
	}
	return fmt.Sprintf("there is a %s in %s already", what, place)
}

func (j *Case) conflictHint(what string, ref catalog.Ref) string {
	switch what {
	case "slug":
		return "slugs are unique over all files: give one of the two projects another slug, or remove one block"
	case "domain":
		return "a domain belongs to one project at most, over all files: remove it from one of them"
	case derivedID:
		return fmt.Sprintf("ids follow from uuids, and these two came to the same one: add this line to the block, for a "+
			"uuid of its own: uuid = %q",
			catalog.DeriveUUID(ref.Kind, ref.UUID))
	case "uuid", "id":
		return "a copied block needs an identity of its own: remove its " + what + " line"
	case "key", "key id":
		return "names and ids of keys are unique over all files"
	case "webhook":
		return "names of webhooks are unique over all files"
	case "login":
		return "names of logins are unique over all files"
	case "inbound":
		return "names of inbound blocks are unique over all files"
	case "edge", "edge key":
		return "names and keys of edges are unique over all files: make one of its own with \"fingerpost edges keygen\""
	}
	return "there can be one only, over all files"
}

func sharesClaim(a, b catalog.Ref) bool {
	shared := false
	eachClaim(a, func(_ string, x Claim) {
		eachClaim(b, func(_ string, y Claim) { shared = shared || x == y })
	})
	return shared
}

// second sets aside the candidates that need a second look. It reports whether it set any aside.
func (j *Case) second() (moved bool) {
	if j.Suspicious == nil {
		return false
	}
	for _, c := range j.Candidates {
		if !c.Suspect && j.Suspicious(c) {
			c.Suspect, moved = true, true
		}
	}
	return moved
}

// lostProjects lists the candidates whose old state ends, with the projects in it that no new state takes over.
func (j *Case) lostProjects() map[*Candidate][]Claim {
	lost := map[*Candidate][]Claim{}
	for _, c := range j.Candidates {
		if c.Prev == nil || c.Out() || slices.Equal(c.Claims, c.Prev.Claims) {
			continue
		}
		for _, cl := range c.Prev.projects() {
			if !j.claimed(c, cl) {
				lost[c] = append(lost[c], cl)
			}
		}
	}
	return lost
}

// Loss counts what a look removes without adding it elsewhere. Candidates that wait for a second look count too: the
// brake must see them together with the rest.
//
// removed are the claims that go now. Claims in j.Removed do not count: they were removed before.
func (j *Case) Loss() (n Counts, removed []Claim) {
	lost := func(c *Candidate, cl Claim) int {
		if j.Removed[cl] || j.claimant(c, cl, func(h *Candidate) bool { return !h.Rejected }) {
			return 0
		}
		if !c.Suspect {
			removed = append(removed, cl)
		}
		return 1
	}
	for _, c := range j.Candidates {
		if c.Prev == nil || c.Rejected || slices.Equal(c.Claims, c.Prev.Claims) {
			continue
		}
		for _, cl := range c.Prev.projects() {
			n.Projects += lost(c, cl)
		}
		for _, cl := range c.Prev.domains() {
			n.Domains += lost(c, cl)
		}
	}
	return n, removed
}

// lostToBroken holds a removal back while a file that broke in the same look names the removed object: the block may
// have moved there, and a block that moves must never disappear.
func (j *Case) lostToBroken() (moved bool) {
	var broken []*Candidate
	for _, c := range j.Candidates {
		if c.Rejected && c.Declared == nil && len(c.Bytes) > 0 {
			broken = append(broken, c)
		}
	}
	if len(broken) == 0 {
		return false
	}
	for c := range j.lostProjects() {
		row, err := j.Row(c.Path)
		if err != nil {
			continue
		}
		for _, ref := range row.Refs {
			if ref.Kind != catalog.KindProject || j.claimed(c, ProjectClaim(ref.UUID)) {
				continue
			}
			for _, b := range broken {
				if b != c && strings.Contains(string(b.Bytes), `"`+ref.Name+`"`) {
					c.Rejected, moved = true, true
					c.Cross = append(c.Cross, hclfile.FileProblem(j.Display(c.Path),
						fmt.Sprintf("project %q is gone from here, and %s, which names it, is broken; it stays until that file is "+
							"repaired", ref.Name, j.Display(b.Path)), ""))
					break
				}
			}
		}
	}
	return moved
}

// Conflict returns the CONFLICT of a candidate with another file, nil if there is none. Claims in had do not count.
func (j *Case) Conflict(c *Candidate, had map[Claim]bool, covers catalog.Coverage) (conflict *catalog.Error) {
	for _, ref := range c.Refs {
		eachClaim(ref, func(what string, cl Claim) {
			if path, lost := j.keeper(c, cl); lost && !had[cl] && conflict == nil {
				conflict = conflictWith(covers, what, j.conflictText(what, ref, path))
			}
		})
	}
	return conflict
}

// conflictWith makes the CONFLICT with something that is declared elsewhere. text says where.
func conflictWith(covers catalog.Coverage, what, text string) *catalog.Error {
	if covers != nil {
		text = "this " + what + " is taken"
	}
	e := &catalog.Error{Code: catalog.CodeConflict, Message: text}
	e.Problems.Addf(what, "%s", text)
	return e
}

// Clash returns the CONFLICT of a project with others of its file, nil if there is none. place returns the place of an
// object as messages name it.
func Clash(want *catalog.ProjectConfig, others []catalog.ProjectConfig, covers catalog.Coverage,
	place func(catalog.Ref) string) (conflict *catalog.Error) {
	taken := map[Claim]catalog.Ref{}
	present := catalog.Declared{Projects: others}
	present.EachRef(func(ref catalog.Ref) {
		eachClaim(ref, func(_ string, cl Claim) { taken[cl] = ref })
	})
	wanted := catalog.Declared{Projects: []catalog.ProjectConfig{*want}}
	wanted.EachRef(func(ref catalog.Ref) {
		eachClaim(ref, func(what string, cl Claim) {
			if other, clashes := taken[cl]; clashes && conflict == nil {
				conflict = conflictWith(covers, what, conflictText(what, ref, place(other)))
			}
		})
	})
	return conflict
}
