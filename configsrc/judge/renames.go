package judge

import (
	"fmt"

	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// renames holds files in which a project seems to have got a new slug without a uuid line: it would be accepted as
// another project, with other ids, and the old one would be removed (configsrc/README.md, Identity). Both the file with
// the new slug and the one that loses the old are held, with the line to add.
func (j *Case) renames() (moved bool) {
	lost := j.lostProjects()
	if len(lost) == 0 {
		return false
	}
	gone := newGoneProjects(j, lost)
	for _, c := range j.Candidates {
		if c.Out() || c.Declared == nil || !j.hasNewProject(c) {
			continue
		}
		r := Positions(j.Display(c.Path), c.Bytes)
		for i := range r.Declared.Projects {
			p := &r.Declared.Projects[i]
			ref := catalog.Ref{Kind: catalog.KindProject, Name: p.Project.Slug, UUID: p.Project.UUID, ID: p.Project.ID}
			if j.Table.Owner(ProjectClaim(p.Project.UUID)) != nil || r.HasUUID(ref) {
				continue
			}
			old := gone.match(c, p)
			if old == nil {
				continue
			}
			c.Rejected, old.from.Rejected, moved = true, true, true
			c.Cross = append(c.Cross, r.Diagnose(ref, hclfile.Error,
				fmt.Sprintf("project %q looks like %q under a new slug, and would lose its identity", p.Project.Slug, old.ref.Name),
				fmt.Sprintf("to keep ids and uuid, add this line to the block: uuid = %q; if it is meant as a new project, add: "+
					"uuid = \"new\"", old.ref.UUID)))
			if old.from != c {
				old.from.Cross = append(old.from.Cross, hclfile.FileProblem(j.Display(old.from.Path),
					fmt.Sprintf("project %q is gone from here and seems to be %q in %s now; it stays until that is settled",
						old.ref.Name, p.Project.Slug, j.Display(c.Path)), ""))
			}
		}
	}
	return moved
}

func (j *Case) hasNewProject(c *Candidate) bool {
	for _, cl := range c.Claims[:c.Counts.Projects] {
		if j.Table.Owner(cl) == nil {
			return true
		}
	}
	return false
}

// A goneProject is a project that a look removes.
type goneProject struct {
	ref     catalog.Ref
	from    *Candidate
	domains map[string]bool
	matched bool
}

type goneProjects struct {
	byFile   map[*Candidate][]*goneProject
	byDomain map[string]*goneProject
}

func newGoneProjects(j *Case, lost map[*Candidate][]Claim) goneProjects {
	g := goneProjects{map[*Candidate][]*goneProject{}, map[string]*goneProject{}}
	for c := range lost {
		row, err := j.Row(c.Path)
		if err != nil {
			continue
		}
		byID := map[int64]*goneProject{}
		for _, ref := range row.Refs {
			if ref.Kind == catalog.KindProject && !j.claimed(c, ProjectClaim(ref.UUID)) && (j.Meant == nil ||
				!j.Meant(ref.UUID)) {
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
func (g *goneProjects) match(c *Candidate, p *catalog.ProjectConfig) *goneProject {
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
