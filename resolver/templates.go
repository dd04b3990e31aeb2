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
func (r *Resolver) Templates(projectID int64, q Query) (rows []*catalog.Template, total int, err error) {
	err = r.get("project", func(v *store.View) (found bool, err error) {
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
	rows, err = ArrangeTemplates(rows, q)
	return rows, total, err
}

// TemplatesOf lists a project's own templates; project 0 means the default ones.
func (r *Resolver) TemplatesOf(project int64) (rows []*catalog.Template, err error) {
	err = r.view(func(v *store.View) error {
		rows = nil
		return v.Templates(project, func(t *catalog.Template) bool {
			rows = append(rows, t)
			return true
		})
	})
	return rows, err
}

// ArrangeTemplates returns the rows of the page that q selects, by id if q names no order. It sorts rows.
func ArrangeTemplates(rows []*catalog.Template, q Query) ([]*catalog.Template, error) {
	slices.SortFunc(rows, templateOrders[0].compare)
	return arrange(rows, templateOrders, q)
}

// Template returns one of the templates that a project can send: its own, or a default one.
func (r *Resolver) Template(projectID, id int64) (*catalog.Template, error) {
	return r.template(func(v *store.View, t *catalog.Template) (found bool, err error) {
		if found, err = v.Template(t, projectID, id); found || err != nil {
			return found, err
		}
		return v.Template(t, 0, id)
	})
}

// OwnTemplate returns a project's own template with a code; it need not be active.
func (r *Resolver) OwnTemplate(projectID int64, code string) (*catalog.Template, error) {
	return r.template(func(v *store.View, t *catalog.Template) (bool, error) {
		return v.TemplateByCode(t, projectID,
			code)
	})
}

func (r *Resolver) template(read func(v *store.View, t *catalog.Template) (bool, error)) (*catalog.Template, error) {
	t := new(catalog.Template)
	if err := r.get("template", func(v *store.View) (bool, error) { return read(v, t) }); err != nil {
		return nil, err
	}
	return t, nil
}
