package resolver

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/store"
)

var templateOrders = []order[catalog.Template]{
	{"id", func(a, b *catalog.Template) int { return cmp.Compare(a.ID, b.ID) }},
	// null before every number
	{"projectId", func(a, b *catalog.Template) int { return cmp.Compare(a.ProjectID, b.ProjectID) }},
	{"code", func(a, b *catalog.Template) int { return strings.Compare(a.Code, b.Code) }},
	{"name", func(a, b *catalog.Template) int { return strings.Compare(a.Name, b.Name) }},
	{"subjectTemplate", func(a, b *catalog.Template) int { return strings.Compare(a.SubjectTemplate, b.SubjectTemplate) }},
	{"active", func(a, b *catalog.Template) int { return compareBool(a.Active, b.Active) }},
	{"defaultTemplate", func(a, b *catalog.Template) int { return compareBool(a.ProjectID == 0, b.ProjectID == 0) }},
	{"maxAge", func(a, b *catalog.Template) int { return cmp.Compare(a.Lifetime(), b.Lifetime()) }},
}

// Templates returns the rows of a page of the templates that a project can send, and the number of all: the default
// ones and its own, both if their codes are equal. NOT_FOUND if the project does not exist, VALIDATION_ERROR on "sort"
// for an unknown field.
func (s *State) Templates(projectID int64, q Query) (rows []*catalog.Template, total int, err error) {
	err = s.get("project", func(v *store.View) (found bool, err error) {
		rows = nil
		if found, err = v.Project(new(catalog.ProjectConfig), projectID); err != nil || !found {
			return found, err
		}
		for _, of := range []int64{0, projectID} {
			err = errors.Join(err, v.Templates(of, func(t *catalog.Template) bool {
				rows = append(rows, t)
				return true
			}))
		}
		return true, err
	})
	if err != nil {
		return nil, 0, err
	}
	total = len(rows)
	slices.SortFunc(rows, templateOrders[0].compare)
	rows, err = arrange(rows, templateOrders, q)
	return rows, total, err
}

// Template returns one of the templates that a project can send: its own, or a default one.
func (s *State) Template(projectID, id int64) (*catalog.Template, error) {
	return s.template(func(v *store.View, t *catalog.Template) (found bool, err error) {
		if found, err = v.Template(t, projectID, id); found || err != nil {
			return found, err
		}
		return v.Template(t, 0, id)
	})
}

// OwnTemplate returns a project's own template with a code; it need not be active.
func (s *State) OwnTemplate(projectID int64, code string) (*catalog.Template, error) {
	return s.template(func(v *store.View, t *catalog.Template) (bool, error) {
		return v.TemplateByCode(t, projectID,
			code)
	})
}

func (s *State) template(read func(v *store.View, t *catalog.Template) (bool, error)) (*catalog.Template, error) {
	t := new(catalog.Template)
	if err := s.get("template", func(v *store.View) (bool, error) { return read(v, t) }); err != nil {
		return nil, err
	}
	return t, nil
}
