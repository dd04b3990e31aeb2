package configsrc

import (
	"fmt"

	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// renames holds files in which a project seems to have got a new slug without a uuid line: it would be accepted as
// another project, with other ids, and the old one would be removed (configsrc/README.md, Identity). Both the file with
// the new slug and the one that loses the old are held, with the line to add.
func (j *judge) renames() (moved bool) {
	lost := j.lostProjects()
	if len(lost) == 0 {
		return false
	}
	gone := newGoneProjects(j, lost)
	for _, c := range j.candidates {
		if c.out() || c.declared == nil || !j.hasNewProject(c) {
			continue
		}
		r := positions(j.display(c.path), c.bytes)
		for i := range r.Declared.Projects {
			p := &r.Declared.Projects[i]
			ref := catalog.Ref{Kind: catalog.KindProject, Name: p.Project.Slug, UUID: p.Project.UUID, ID: p.Project.ID}
			if j.table.owner(projectClaim(p.Project.UUID)) != nil || r.HasUUID(ref) {
				continue
			}
			old := gone.match(c, p)
			if old == nil {
				continue
			}
			c.rejected, old.from.rejected, moved = true, true, true
			c.cross = append(c.cross, r.Diagnose(ref, hclfile.Error,
				fmt.Sprintf("project %q looks like %q under a new slug, and would lose its identity", p.Project.Slug, old.ref.Name),
				fmt.Sprintf("to keep ids and uuid, add this line to the block: uuid = %q; if it is meant as a new project, add: "+
					"uuid = \"new\"", old.ref.UUID)))
			if old.from != c {
				old.from.cross = append(old.from.cross, hclfile.FileProblem(j.display(old.from.path),
					fmt.Sprintf("project %q is gone from here and seems to be %q in %s now; it stays until that is settled",
						old.ref.Name, p.Project.Slug, j.display(c.path)), ""))
			}
		}
	}
	return moved
}

func (j *judge) hasNewProject(c *candidate) bool {
	for _, cl := range c.claims[:c.counts.projects] {
		if j.table.owner(cl) == nil {
			return true
		}
	}
	return false
}

// A goneProject is a project that a look removes.
type goneProject struct {
	ref     catalog.Ref
	from    *candidate
	domains map[string]bool
	matched bool
}

type goneProjects struct {
	byFile   map[*candidate][]*goneProject
	byDomain map[string]*goneProject
}

func newGoneProjects(j *judge, lost map[*candidate][]claim) goneProjects {
	g := goneProjects{map[*candidate][]*goneProject{}, map[string]*goneProject{}}
	for c := range lost {
		row, err := j.row(c.path)
		if err != nil {
			continue
		}
		byID := map[int64]*goneProject{}
		for _, ref := range row.Refs {
			if ref.Kind == catalog.KindProject && !j.claimed(c, projectClaim(ref.UUID)) && (j.meant == nil ||
				!j.meant(ref.UUID)) {
				p := &goneProject{ref: ref, from: c, domains: map[string]bool{}}
				byID[ref.ID] = p
				g.byFile[c] = append(g.byFile[c], p)
			}
		}
		for _, ref := range row.Refs {
			if p := byID[ref.ProjectID]; ref.Kind == catalog.KindDomain && p != nil {
				p.domains[ref.Name] = true
				g.byDomain[ref.Name] = p
			}
		}
	}
	return g
}

// match finds the removed project that p of file c most likely was: by one of its domains, else by the file.
func (g *goneProjects) match(c *candidate, p *catalog.ProjectConfig) *goneProject {
	for _, d := range p.Domains {
		if old := g.byDomain[d.Name]; old != nil && !old.matched {
			old.matched = true
			return old
		}
	}
	for _, old := range g.byFile[c] {
		if !old.matched {
			old.matched = true
			return old
		}
	}
	return nil
}
