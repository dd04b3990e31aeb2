package resolver

import (
	"cmp"
	"slices"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/search"
	"fingerpost/resolver/store"
)

// A Search selects projects or domains by content (api/README.md, Search). The zero value selects all of them.
type Search struct {
	Text   string          // a part of a slug, name, domain or label's value, in any case; of domains, a part of the name
	Status string          // "": any
	Labels []catalog.Label // labels that a project must have
	IDs    map[int64]bool  // of domains: their ids; nil: any
}

func (s Search) terms() (terms []string) {
	if s.Status != "" {
		terms = append(terms, statusTerm(s.Status))
	}
	for _, l := range s.Labels {
		terms = append(terms, labelTerm(l))
	}
	return terms
}

// A Found names a project, or a domain and its project.
type Found = search.Ref

// FoundProjects lists the projects that by selects; ids are as in Query.IDs. With a text these are at most
// MaxSearchMatches, the best first, else all of them by id.
func (s *State) FoundProjects(by Search, ids []int64) ([]Found, error) {
	found, _, err := s.lookUp((*indexes).ofProjects, search.Query{Text: by.Text, Terms: by.terms(), Projects: ids})
	return found, err
}

// FoundDomains is FoundProjects for domains, which have no status and no labels; ids are the ids of projects.
func (s *State) FoundDomains(by Search, ids []int64) ([]Found, error) {
	found, _, err := s.lookUp((*indexes).ofDomains, search.Query{Text: by.Text, IDs: by.IDs, Projects: ids})
	return found, err
}

// MaxSearchMatches is the most rows that a Search with a Text finds.
const MaxSearchMatches = search.MaxMatches

// FindProjects returns a page of the projects that by selects, and the number of all of them. Without q.Sort and q.Desc
// they are in the order of FoundProjects.
func (s *State) FindProjects(by Search, q Query) ([]*catalog.Project, int, error) {
	page := search.Query{Text: by.Text, Terms: by.terms(), Projects: q.IDs}
	return findRows(s, (*indexes).ofProjects, page, q, readFoundProject, projectOrders)
}

// FindDomains is FindProjects for domains, see FoundDomains.
func (s *State) FindDomains(by Search, q Query) ([]*catalog.Domain, int, error) {
	page := search.Query{Text: by.Text, IDs: by.IDs, Projects: q.IDs}
	return findRows(s, (*indexes).ofDomains, page, q, readFoundDomain, domainOrders)
}

func (s *State) lookUp(in func(*indexes) *search.Index, q search.Query) ([]Found, int, error) {
	x, err := s.of.indexes()
	if err != nil {
		return nil, 0, err
	}
	found, total := in(x).Find(q)
	return found, total, nil
}

// findRows reads the rows of a page only, unless they must be sorted by a field.
func findRows[Row any](s *State, in func(*indexes) *search.Index, page search.Query, q Query,
	read func(*store.View, Found) (*Row, error), orders []order[Row]) ([]*Row, int, error) {
	if _, err := orderOf(orders, q.Sort); err != nil {
		return nil, 0, err
	}
	sorted := q.Sort != "" || q.Desc
	if !sorted && q.Limit > 0 {
		page.From, page.Count = (max(q.Page, 1)-1)*q.Limit, q.Limit
	}
	found, total, err := s.lookUp(in, page)
	if err != nil {
		return nil, 0, err
	}
	if sorted {
		slices.SortFunc(found, func(a, b Found) int { return cmp.Compare(a.ID, b.ID) }) // as arrange needs it
	}
	var rows []*Row
	err = s.view(func(v *store.View) error {
		rows = make([]*Row, 0, len(found))
		for _, ref := range found {
			row, err := read(v, ref)
			if err != nil {
				return err
			}
			if row != nil { // else it was removed a moment ago
				rows = append(rows, row)
			}
		}
		return nil
	})
	if err != nil || !sorted {
		return rows, total, err
	}
	total = len(rows)
	rows, err = arrange(rows, orders, q)
	return rows, total, err
}

func readFoundProject(v *store.View, ref Found) (*catalog.Project, error) {
	p := new(catalog.ProjectConfig)
	if found, err := v.Project(p, ref.ID); err != nil || !found {
		return nil, err
	}
	return &p.Project, nil
}

func readFoundDomain(v *store.View, ref Found) (*catalog.Domain, error) {
	d := new(catalog.Domain)
	if found, err := v.DomainByID(d, ref.Project, ref.ID); err != nil || !found {
		return nil, err
	}
	return d, nil
}
