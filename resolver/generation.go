package resolver

import (
	"slices"
	"strings"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/store"
)

// A Generation is a change that Apply has committed, in short, for people who watch this node.
type Generation struct {
	Number uint64
	Loaded bool // it ended the load of a store that was empty
	// Changed counts the objects by their noun in the audit trail (catalog.AuditObjects); with Many there are more. On an
	// edge it has projects and domains only.
	Changed map[string]int
	Many    bool
	Only    string // the action and the object, where one object was changed: "domain.create shop.acme.example"
	By      []catalog.Author
}

// maxAuthors bounds the authors of a Generation: a pull may bring a file of each of thousands of people.
const maxAuthors = 4

func generationOf(e *store.Effect, c *catalog.Change) Generation {
	g := Generation{Number: e.Generation, Loaded: e.Loaded, Many: e.Many, Changed: map[string]int{}}
	if c.Position != nil {
		g.By = []catalog.Author{{Door: catalog.DoorCluster}}
		g.countEffect(e)
		return g
	}
	g.Many = false // Objects has all
	for i := range e.Objects {
		noun, _, _ := strings.Cut(e.Objects[i].Entry.Action, ".")
		g.Changed[noun]++
	}
	if len(e.Objects) == 1 {
		g.Only = e.Objects[0].Entry.Action + " " + e.Objects[0].Entry.Object
	}
	for i := range c.Files {
		by := catalog.Author{Door: catalog.DoorFile}
		if c.Files[i].By != nil {
			by = *c.Files[i].By
		}
		by.RequestID, by.Commit = "", ""
		if len(g.By) < maxAuthors && !slices.Contains(g.By, by) {
			g.By = append(g.By, by)
		}
	}
	return g
}

// countEffect counts what an edge knows of a change: it has no audit trail.
func (g *Generation) countEffect(e *store.Effect) {
	for noun, n := range map[string]int{"project": len(e.Projects), "domain": len(e.Domains)} {
		if n > 0 {
			g.Changed[noun] = n
		}
	}
}
