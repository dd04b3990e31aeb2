package resolver

import (
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/store"
)

// A Generation is a change that Apply has committed, in short, for people who watch this node.
type Generation struct {
	Number uint64
	Loaded bool // it ended the load of a store that was empty
	// Changed has the objects by their noun in the audit trail (catalog.AuditObjects), each as a number that it has in other
	// Generations, too; with Many there are more. On an edge it has projects and domains only.
	Changed map[string][]uint64
	Many    bool
	Only    string // the action and the object, where one object was changed: "domain.create shop.acme.example"
	By      []catalog.Author
}

// maxAuthors bounds the authors of a Generation: a pull may bring a file of each of thousands of people.
const maxAuthors = 4

func generationOf(e *store.Effect, c *catalog.Change) Generation {
	g := Generation{Number: e.Generation, Loaded: e.Loaded, Many: e.Many, Changed: map[string][]uint64{}}
	if c.Position != nil {
		g.By = []catalog.Author{{Door: catalog.DoorCluster}}
		g.countEffect(e)
		return g
	}
	g.Many = false // Objects has all
	for i := range e.Objects {
		entry := &e.Objects[i].Entry
		noun, _, _ := strings.Cut(entry.Action, ".")
		g.Changed[noun] = append(g.Changed[noun], numberOf(strconv.FormatInt(entry.ProjectID, 10), entry.Object))
	}
	if len(e.Objects) == 1 {
		g.Only = e.Objects[0].Entry.Action + " " + e.Objects[0].Entry.Object
	}
	for i := range c.Files {
		if c.Files[i].Row != nil && c.Files[i].Declared == nil && c.Files[i].By == nil {
			continue // it was touched, and nobody has changed it
		}
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
	for i := range e.Projects {
		g.Changed["project"] = append(g.Changed["project"], uint64(e.Projects[i].ID))
	}
	for i := range e.Domains {
		g.Changed["domain"] = append(g.Changed["domain"], numberOf(e.Domains[i].Name))
	}
}

// numberOf returns a number for an object with these names.
func numberOf(names ...string) uint64 {
	h := fnv.New64a()
	for _, name := range names {
		_, _ = h.Write([]byte(name + "\x00"))
	}
	return h.Sum64()
}
