package configsrc

import (
	"fmt"
	"slices"
	"strings"

	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// A judge decides which candidates of one look are accepted. It changes candidates only, never the table.
type judge struct {
	table      *table
	candidates []*candidate                                // sorted by path
	holders    map[claim][]*candidate                      // candidates by their new claims, in path order
	row        func(path string) (*catalog.FileRow, error) // returns the accepted row of a file
	display    func(path string) string                    // returns a path as messages name it
	locate     func(path string) (*hclfile.Result, error)  // decodes a file as it is on disk, for positions
	suspicious func(c *candidate) bool                     // whether c needs a second look; nil: never
	meant      func(project catalog.UUID) bool             // the project is removed on purpose, not renamed; nil: never
	require    bool                                        // sealing { require = true } is in force
	removed    map[claim]bool                              // named in the Sink's note, so no loss; nil: none
}

// run judges. Each step can only reject candidates. A rejected candidate keeps its old state, which may conflict with
// others, so the steps repeat until nothing changes; every round but the last rejects at least one.
func (j *judge) run() {
	j.holders = map[claim][]*candidate{}
	for _, c := range j.candidates {
		c.rejected = c.diags.HasErrors()
		for _, cl := range c.claims {
			if owner := j.table.owner(cl); owner == nil || owner.path != c.path {
				j.holders[cl] = append(j.holders[cl], c)
			}
		}
	}
	for {
		j.sealing()
		j.conflicts()
		if !j.second() && !j.renames() && !j.lostToBroken() {
			return
		}
	}
}

// release frees what only run and the methods that explain its result need.
func (j *judge) release() { j.holders = nil }

// sealing turns clear-text secrets into errors if the files require sealing.
func (j *judge) sealing() {
	require := j.require
	for _, c := range j.candidates {
		if !c.out() && c.declared != nil && c.declared.Sealing != nil {
			require = c.declared.Sealing.Require
		}
	}
	if !require {
		return
	}
	for _, c := range j.candidates {
		if c.out() || !c.plain {
			continue
		}
		for i := range c.diags {
			if c.diags[i].Rule == hclfile.RuleClearTextSecret {
				c.diags[i].Severity = hclfile.Error
			}
		}
		c.rejected = true
	}
}

// conflicts rejects files that claim what another file has, or what an earlier path also claims. A candidate that lost
// to a rejected one comes back: hence the rounds in both directions. The last rounds only reject, so that the loop
// ends.
func (j *judge) conflicts() {
	lost := map[*candidate]bool{}
	for round := 0; ; round++ {
		moved := false
		for _, c := range j.candidates {
			if c.gone || c.out() && !lost[c] {
				continue
			}
			c.cross = c.cross[:0]
			conflict := slices.ContainsFunc(c.claims, func(cl claim) bool {
				_, conflict := j.keeper(c, cl)
				return conflict
			})
			if conflict == lost[c] || !conflict && round > 8 {
				continue
			}
			lost[c], c.rejected, moved = conflict, conflict, true
		}
		if !moved {
			break
		}
	}
	for c, is := range lost {
		if is {
			c.cross = append(c.cross, j.explain(c)...)
		}
	}
}

// keeper returns the path of the file that has claim cl instead of c; conflict is false if c may have it.
func (j *judge) keeper(c *candidate, cl claim) (path string, conflict bool) {
	owner := j.table.owner(cl)
	if owner != nil && owner.path == c.path {
		return "", false // the present owner keeps it
	}
	if owner != nil && !j.releases(owner.path, cl) {
		return owner.path, true
	}
	for _, h := range j.holders[cl] {
		if h == c {
			return "", false // no candidate sorts before it
		}
		if !h.out() {
			return h.path, true
		}
	}
	return "", false
}

// candidate returns the candidate for a path, nil if there is none.
func (j *judge) candidate(path string) *candidate {
	i, found := slices.BinarySearchFunc(j.candidates, path, func(c *candidate,
		path string) int {
		return strings.Compare(c.path, path)
	})
	if !found {
		return nil
	}
	return j.candidates[i]
}

// releases reports whether the file that owns cl gives it up in this look.
func (j *judge) releases(path string, cl claim) bool {
	c := j.candidate(path)
	return c != nil && !c.out() && !slices.Contains(c.claims, cl)
}

// claimed reports whether an accepted candidate claims cl, which c had before.
func (j *judge) claimed(c *candidate, cl claim) bool {
	return j.claimant(c, cl, func(h *candidate) bool { return !h.out() })
}

// claimant reports whether a candidate that satisfies is claims cl, which c had before.
func (j *judge) claimant(c *candidate, cl claim, is func(*candidate) bool) bool {
	if is(c) && slices.Contains(c.claims, cl) { // nearly always
		return true
	}
	if owner := j.table.owner(cl); owner != nil {
		if h := j.candidate(owner.path); h != nil && is(h) && slices.Contains(h.claims, cl) {
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
func (j *judge) explain(c *candidate) (ds hclfile.Diagnostics) {
	here := positions(j.display(c.path), c.bytes)
	for _, ref := range c.refs {
		eachClaim(ref, func(what string, cl claim) {
			path, conflict := j.keeper(c, cl)
			if !conflict {
				return
			}
			if what == "id" && ref.ID > catalog.MaxDeclaredID {
				what = derivedID
			}
			ds = append(ds, here.Diagnose(ref, hclfile.Error, j.conflictText(what, ref, path), j.conflictHint(what, ref)))
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

func (j *judge) conflictText(what string, ref catalog.Ref, path string) string {
	place := j.display(path)
	if there, err := j.locate(path); err == nil {
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
	case "slug", "domain", "default template", "key", "edge":
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

func (j *judge) conflictHint(what string, ref catalog.Ref) string {
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
	case "edge", "edge key":
		return "names and keys of edges are unique over all files: make one of its own with \"fingerpost edges keygen\""
	}
	return "there can be one only, over all files"
}

func sharesClaim(a, b catalog.Ref) bool {
	shared := false
	eachClaim(a, func(_ string, x claim) {
		eachClaim(b, func(_ string, y claim) { shared = shared || x == y })
	})
	return shared
}

// second sets aside the candidates that need a second look. It reports whether it set any aside.
func (j *judge) second() (moved bool) {
	if j.suspicious == nil {
		return false
	}
	for _, c := range j.candidates {
		if !c.suspect && j.suspicious(c) {
			c.suspect, moved = true, true
		}
	}
	return moved
}

// lostProjects lists the candidates whose old state ends, with the projects in it that no new state takes over.
func (j *judge) lostProjects() map[*candidate][]claim {
	lost := map[*candidate][]claim{}
	for _, c := range j.candidates {
		if c.prev == nil || c.out() || slices.Equal(c.claims, c.prev.claims) {
			continue
		}
		for _, cl := range c.prev.projects() {
			if !j.claimed(c, cl) {
				lost[c] = append(lost[c], cl)
			}
		}
	}
	return lost
}

// loss counts what a look removes without adding it elsewhere. Candidates that wait for a second look count too: the
// brake must see them together with the rest.
//
// removed are the claims that go now. Claims in j.removed do not count: they were removed before.
func (j *judge) loss() (n counts, removed []claim) {
	lost := func(c *candidate, cl claim) int {
		if j.removed[cl] || j.claimant(c, cl, func(h *candidate) bool { return !h.rejected }) {
			return 0
		}
		if !c.suspect {
			removed = append(removed, cl)
		}
		return 1
	}
	for _, c := range j.candidates {
		if c.prev == nil || c.rejected || slices.Equal(c.claims, c.prev.claims) {
			continue
		}
		for _, cl := range c.prev.projects() {
			n.projects += lost(c, cl)
		}
		for _, cl := range c.prev.domains() {
			n.domains += lost(c, cl)
		}
	}
	return n, removed
}

// lostToBroken holds a removal back while a file that broke in the same look names the removed object: the block may
// have moved there, and a block that moves must never disappear.
func (j *judge) lostToBroken() (moved bool) {
	var broken []*candidate
	for _, c := range j.candidates {
		if c.rejected && c.declared == nil && len(c.bytes) > 0 {
			broken = append(broken, c)
		}
	}
	if len(broken) == 0 {
		return false
	}
	for c := range j.lostProjects() {
		row, err := j.row(c.path)
		if err != nil {
			continue
		}
		for _, ref := range row.Refs {
			if ref.Kind != catalog.KindProject || j.claimed(c, projectClaim(ref.UUID)) {
				continue
			}
			for _, b := range broken {
				if b != c && strings.Contains(string(b.bytes), `"`+ref.Name+`"`) {
					c.rejected, moved = true, true
					c.cross = append(c.cross, hclfile.FileProblem(j.display(c.path),
						fmt.Sprintf("project %q is gone from here, and %s, which names it, is broken; it stays until that file is "+
							"repaired", ref.Name, j.display(b.path)), ""))
					break
				}
			}
		}
	}
	return moved
}

// conflict returns the CONFLICT of a candidate with another file, nil if there is none. Claims in had do not count.
func (j *judge) conflict(c *candidate, had map[claim]bool, covers catalog.Coverage) (conflict *catalog.Error) {
	for _, ref := range c.refs {
		eachClaim(ref, func(what string, cl claim) {
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

// clash returns the CONFLICT of a project with others of its file, nil if there is none. place returns the place of an
// object as messages name it.
func clash(want *catalog.ProjectConfig, others []catalog.ProjectConfig, covers catalog.Coverage,
	place func(catalog.Ref) string) (conflict *catalog.Error) {
	taken := map[claim]catalog.Ref{}
	present := catalog.Declared{Projects: others}
	present.EachRef(func(ref catalog.Ref) {
		eachClaim(ref, func(_ string, cl claim) { taken[cl] = ref })
	})
	wanted := catalog.Declared{Projects: []catalog.ProjectConfig{*want}}
	wanted.EachRef(func(ref catalog.Ref) {
		eachClaim(ref, func(what string, cl claim) {
			if other, clashes := taken[cl]; clashes && conflict == nil {
				conflict = conflictWith(covers, what, conflictText(what, ref, place(other)))
			}
		})
	})
	return conflict
}
