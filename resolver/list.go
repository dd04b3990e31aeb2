package resolver

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/rowjson"
	"fingerpost/resolver/store"
)

// A Query selects and sorts a part of a list (api/README.md, Lists).
type Query struct {
	Page  int    // from 1; 0 means 1
	Limit int    // rows per page; 0 means all rows on one page
	Sort  string // a scalar field of the rows; "" means id
	Desc  bool
	// IDs restricts a list of projects to these, for a key that is bound to some; nil means every project.
	IDs []int64
}

// An order compares two rows by one field.
type order[T any] struct {
	field   string
	compare func(a, b *T) int
}

var projectOrders = []order[catalog.Project]{
	{"id", func(a, b *catalog.Project) int { return cmp.Compare(a.ID, b.ID) }},
	{"uuid", func(a, b *catalog.Project) int { return bytes.Compare(a.UUID[:], b.UUID[:]) }},
	{"name", func(a, b *catalog.Project) int { return strings.Compare(a.Name, b.Name) }},
	{"slug", func(a, b *catalog.Project) int { return strings.Compare(a.Slug, b.Slug) }},
	{"description", func(a, b *catalog.Project) int { return compareNullable(a.Description, b.Description) }},
	{"status", func(a, b *catalog.Project) int { return strings.Compare(a.Status, b.Status) }},
	{"createdAt", func(a, b *catalog.Project) int { return a.CreatedAt.Compare(b.CreatedAt) }},
	{"updatedAt", func(a, b *catalog.Project) int { return a.UpdatedAt.Compare(b.UpdatedAt) }},
}

var domainOrders = []order[catalog.Domain]{
	{"id", func(a, b *catalog.Domain) int { return cmp.Compare(a.ID, b.ID) }},
	{"projectId", func(a, b *catalog.Domain) int { return cmp.Compare(a.ProjectID, b.ProjectID) }},
	{"domain", func(a, b *catalog.Domain) int { return strings.Compare(a.Name, b.Name) }},
	{"primary", func(a, b *catalog.Domain) int { return compareBool(a.Primary, b.Primary) }},
	{"active", func(a, b *catalog.Domain) int { return compareBool(a.Active, b.Active) }},
	{"createdAt", func(a, b *catalog.Domain) int { return a.CreatedAt.Compare(b.CreatedAt) }},
	{"updatedAt", func(a, b *catalog.Domain) int { return a.UpdatedAt.Compare(b.UpdatedAt) }},
}

// compareNullable puts null before every text.
func compareNullable(a, b *string) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return -1
	case b == nil:
		return 1
	}
	return strings.Compare(*a, *b)
}

// compareBool puts false before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// arrange returns the rows of the page that q selects. rows must be sorted by ascending id, which also breaks ties.
func arrange[T any](rows []*T, orders []order[T], q Query) ([]*T, error) {
	by, err := orderOf(orders, q.Sort)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(rows, func(a, b *T) int {
		if q.Desc {
			a, b = b, a
		}
		return by(a, b)
	})
	return page(rows, q), nil
}

func orderOf[T any](orders []order[T], sort string) (func(a, b *T) int, error) {
	if sort == "" {
		sort = "id"
	}
	names := make([]string, len(orders))
	for i, o := range orders {
		if o.field == sort {
			return o.compare, nil
		}
		names[i] = o.field
	}
	return nil, catalog.CheckSort(sort, names)
}

// page returns the slice that q selects; a page past the end is empty.
func page[T any](rows []T, q Query) []T {
	if q.Limit <= 0 {
		return rows
	}
	before := max(q.Page, 1) - 1
	if before > len(rows)/q.Limit {
		return nil
	}
	rows = rows[before*q.Limit:]
	return rows[:min(q.Limit, len(rows))]
}

// Projects returns the rows of a page and the number of all rows; VALIDATION_ERROR on "sort" for an unknown field.
func (s *State) Projects(q Query) (rows []*catalog.Project, total int, err error) {
	if _, err := orderOf(projectOrders, q.Sort); err != nil {
		return nil, 0, err
	}
	switch {
	case q.Limit > 0 && (q.Sort == "" || q.Sort == "id"):
		return s.projectsByID(q)
	case q.IDs != nil:
		rows, err = s.projectsOf(slices.Compact(slices.Sorted(slices.Values(q.IDs))))
	default:
		err = s.EachProject(func(p *catalog.Project) bool {
			rows = append(rows, p)
			return true
		})
	}
	if err != nil {
		return nil, 0, err
	}
	total = len(rows)
	rows, err = arrange(rows, projectOrders, q)
	return rows, total, err
}

// projectsOf reads the projects with these ids, in their order, as far as they exist.
func (s *State) projectsOf(ids []int64) (rows []*catalog.Project, err error) {
	err = s.view(func(v *store.View) error {
		rows = nil
		for _, id := range ids {
			p := new(catalog.ProjectConfig)
			found, err := v.Project(p, id)
			if err != nil {
				return err
			}
			if found {
				rows = append(rows, &p.Project)
			}
		}
		return nil
	})
	return rows, err
}

// projectsByID decodes the projects of one page only, which keeps a page cheap with 100,000 projects.
func (s *State) projectsByID(q Query) (rows []*catalog.Project, total int, err error) {
	ids, err := s.of.projectIDs()
	if err != nil {
		return nil, 0, err
	}
	if q.IDs != nil {
		all := ids
		ids = slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(q.IDs))), func(id int64) bool {
			_, there := slices.BinarySearch(all, id)
			return !there
		})
	}
	if !q.Desc {
		rows, err = s.projectsOf(page(ids, q))
		return rows, len(ids), err
	}
	before := min((max(q.Page, 1)-1), len(ids)/q.Limit+1) * q.Limit // no overflow
	end := max(len(ids)-before, 0)
	last := slices.Clone(ids[max(end-q.Limit, 0):end])
	slices.Reverse(last)
	rows, err = s.projectsOf(last)
	return rows, len(ids), err
}

// EachProject yields all projects by ascending id, as of one moment, without holding them all in memory. The caller
// owns the values. A slow yield keeps the store's old data on disk.
func (s *State) EachProject(yield func(*catalog.Project) bool) error {
	return s.each(func(st *store.State) error { return st.EachProject(yield) })
}

func (s *State) each(f func(*store.State) error) error {
	if err := f(s.of.reads()); err != nil {
		return catalog.Unreadable(err)
	}
	return nil
}

// Domains returns the rows of a page of a project's domains and the number of all; NOT_FOUND if the project does not
// exist.
func (s *State) Domains(projectID int64, q Query) (rows []*catalog.Domain, total int, err error) {
	err = s.get("project", func(v *store.View) (found bool, err error) {
		rows = nil
		if found, err = v.Project(new(catalog.ProjectConfig), projectID); err != nil || !found {
			return found, err
		}
		return true, v.Domains(projectID, func(d *catalog.Domain) bool {
			rows = append(rows, d)
			return true
		})
	})
	if err != nil {
		return nil, 0, err
	}
	total = len(rows)
	rows, err = arrange(rows, domainOrders, q)
	return rows, total, err
}

var keyOrders = []order[rowjson.KeyRow]{
	{"name", func(a, b *rowjson.KeyRow) int { return strings.Compare(a.Key.Name, b.Key.Name) }},
	{"id", func(a, b *rowjson.KeyRow) int { return strings.Compare(a.Key.ID, b.Key.ID) }},
	{"expiresAt", func(a, b *rowjson.KeyRow) int { return a.Key.ExpiresAt.Compare(b.Key.ExpiresAt) }},
	{"createdAt", func(a, b *rowjson.KeyRow) int { return a.CreatedAt.Compare(b.CreatedAt) }},
	{"lastUsedAt", func(a, b *rowjson.KeyRow) int { return a.LastUsed.Compare(b.LastUsed) }},
}

// ArrangeKeys returns the rows of the page that q selects. rows must be sorted by name, which is the default order.
func ArrangeKeys(rows []*rowjson.KeyRow, q Query) ([]*rowjson.KeyRow, error) {
	return arrange(rows, keyOrders, q)
}

var webhookOrders = []order[catalog.Webhook]{
	{"name", func(a, b *catalog.Webhook) int { return strings.Compare(a.Name, b.Name) }},
	{"url", func(a, b *catalog.Webhook) int { return strings.Compare(a.URL, b.URL) }},
}

// ArrangeWebhooks returns the webhooks of the page that q selects. rows must be sorted by name, which is the default order.
func ArrangeWebhooks(rows []*catalog.Webhook, q Query) ([]*catalog.Webhook, error) {
	return arrange(rows, webhookOrders, q)
}
