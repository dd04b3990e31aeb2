package platform

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"fingerpost/api/web"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/rowjson"
)

// maxBulk is the most projects that one request changes.
const maxBulk = 1000

// A bulkSet is what a bulk change sets.
type bulkSet struct {
	status *string
	labels map[string]*string // nil: the label is removed
}

// bulk answers POST /projects/bulk: it sets the status and labels of several projects, of all or of none.
func (a *API) bulk(r *web.Request) error {
	if err := r.Permit(); err != nil {
		return err
	}
	f, err := r.ReadForm([]string{"projects", "set"})
	if err != nil {
		return err
	}
	f.Require("projects", "is required: ids or slugs of projects")
	f.Require("set", `is required: {"status": …, "labels": {…}}, or one of both`)
	names, set := readBulkNames(f), readBulkSet(f)
	if err := f.Validated(nil); err != nil {
		return err
	}
	if err := r.Matches(""); err != nil { // several projects have no ETag: only * names them
		return err
	}
	projects, err := a.bulkProjects(r, names)
	if err != nil {
		return err
	}
	edit := &catalog.Edit{}
	for i, p := range projects {
		if err := set.apply(p, i); err != nil {
			return err
		}
		edit.Projects = append(edit.Projects, catalog.ProjectEdit{UUID: p.UUID, Change: func(c *catalog.ProjectConfig) error {
			return set.apply(&c.Project, i)
		}})
	}
	if err := a.Writer.Write(r, edit); err != nil {
		return err
	}
	for i, p := range projects {
		if projects[i], err = a.State.ProjectByID(p.ID); err != nil {
			return err
		}
	}
	r.Succeed("projects updated", web.AppendRows(projects, rowjson.AppendProject))
	return nil
}

// readBulkNames reads the ids and slugs.
func readBulkNames(f *web.Form) (names []any) {
	list, ok := f.Body.Values["projects"].([]any)
	if !ok || len(list) == 0 || len(list) > maxBulk {
		f.Fail("projects", fmt.Sprintf("must be a list of 1 to %d ids or slugs", maxBulk))
		return nil
	}
	for i, v := range list {
		at := bulkField(i)
		switch v := v.(type) {
		case string:
			if msg := catalog.CheckSlug(v); msg != "" {
				f.Fail(at, "is no slug: it "+msg)
			}
			names = append(names, v)
		case json.Number:
			id, err := strconv.ParseUint(v.String(), 10, web.IDBits)
			if err != nil || id == 0 {
				f.Fail(at, "must be a positive integer, or a slug")
			}
			names = append(names, int64(id))
		default:
			f.Fail(at, "must be the id or the slug of a project")
		}
	}
	return names
}

func bulkField(i int) string { return fmt.Sprintf("projects[%d]", i) }

// readBulkSet reads what is to be set.
func readBulkSet(f *web.Form) *bulkSet {
	set := &bulkSet{labels: map[string]*string{}}
	object, ok := f.Body.Values["set"].(*web.Object)
	if !ok {
		f.Fail("set", "must be an object with status, labels or both")
		return set
	}
	for _, name := range object.Names {
		value := object.Values[name]
		labels, isObject := value.(*web.Object)
		status, isText := value.(string)
		switch {
		case name == "status" && isText && slices.Contains(catalog.Statuses, status):
			set.status = &status
		case name == "status":
			f.Fail("set.status", "must be one of "+strings.Join(catalog.Statuses, ", "))
		case name == "labels" && isObject:
			set.readLabels(f, labels)
		case name == "labels":
			f.Fail("set.labels", "must be an object of strings; null removes a label")
		default:
			f.Fail("set."+name, "cannot be set in bulk: only status and labels can")
		}
	}
	if len(f.Problems) == 0 && set.status == nil && len(set.labels) == 0 {
		f.Fail("set", "sets nothing: give status, labels or both")
	}
	return set
}

func (s *bulkSet) readLabels(f *web.Form, labels *web.Object) {
	for _, name := range labels.Names {
		at := "set.labels." + name
		if msg := catalog.CheckLabelName(name); msg != "" {
			f.Fail(at, msg)
		}
		switch v := labels.Values[name].(type) {
		case nil:
			s.labels[name] = nil
		case string:
			if msg := catalog.CheckLabelValue(v); msg != "" {
				f.Fail(at, msg)
			}
			s.labels[name] = &v
		default:
			f.Fail(at, "must be a string, or null to remove the label")
		}
	}
}

// bulkProjects finds the projects, all of which the key has to reach. Each problem is told.
func (a *API) bulkProjects(r *web.Request, names []any) (projects []*catalog.Project, err error) {
	missing := &catalog.Error{Code: catalog.CodeNotFound, Message: "some of these projects do not exist"}
	twice := &catalog.Error{Code: catalog.CodeValidation, Message: "the request is invalid"}
	for i, name := range names {
		p, err := a.bulkProject(name)
		switch {
		case err == nil && !r.Key.Covers(p.ID), catalog.IsNotFound(err) && r.Key.Owner != "":
			return nil, web.RefuseProject // as Request.HideMissing does
		case catalog.IsNotFound(err):
			missing.Problems.Addf(bulkField(i), "no project has this id or slug")
			continue
		case err != nil:
			return nil, err
		}
		if slices.ContainsFunc(projects, func(o *catalog.Project) bool { return o.ID == p.ID }) {
			twice.Problems.Addf(bulkField(i), "is in the list twice")
		}
		own := *p
		projects = append(projects, &own)
	}
	switch {
	case len(missing.Problems) > 0:
		return nil, missing
	case len(twice.Problems) > 0:
		return nil, twice
	}
	return projects, nil
}

func (a *API) bulkProject(name any) (*catalog.Project, error) {
	if id, isID := name.(int64); isID {
		return a.State.ProjectByID(id)
	}
	return a.State.ProjectBySlug(name.(string))
}

// apply changes a project. Labels merge: others than those that are set stay.
func (s *bulkSet) apply(p *catalog.Project, i int) error {
	if s.status != nil {
		p.Status = *s.status
	}
	labels := slices.DeleteFunc(slices.Clone(p.Labels), func(l catalog.Label) bool {
		_, set := s.labels[l.Name]
		return set
	})
	for name, value := range s.labels {
		if value != nil {
			labels = append(labels, catalog.Label{Name: name, Value: *value})
		}
	}
	catalog.SortLabels(labels)
	if p.Labels = labels; len(labels) == 0 {
		p.Labels = nil
	}
	if problems := p.Validate(); len(problems) > 0 {
		e := &catalog.Error{Code: catalog.CodeValidation, Message: "a project cannot be changed so: " + p.Slug}
		for _, problem := range problems {
			e.Problems.Addf(bulkField(i), "%s %s", problem.Path, problem.Message)
		}
		return e
	}
	return nil
}
