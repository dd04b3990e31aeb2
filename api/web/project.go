package web

import (
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// Projects finds the project that a call is about; *resolver.Resolver and, for the state of a proposal,
// *resolver.Overlay implement it.
type Projects interface {
	ProjectByID(id int64) (*catalog.Project, error)
}

// Project checks the path's ids and the key's permission, and returns the project that a path parameter names.
// others are the problems of the path's other ids.
func (r *Request) Project(from Projects, param string, others ...catalog.Problem) (*catalog.Project, error) {
	id, problems := r.ID(param)
	if problems = append(problems, others...); len(problems) > 0 {
		return nil, Invalid(problems...)
	}
	if err := r.Permit(); err != nil {
		return nil, err
	}
	project, err := from.ProjectByID(id)
	if err != nil {
		return nil, r.HideMissing(err)
	}
	if !r.Key.Covers(project.ID) {
		return nil, RefuseProject
	}
	return project, nil
}

// HideMissing returns the error of a look-up of a project for the request's key: with an owner, a project that does not
// exist is refused as one of another owner is, so that nobody can count them.
func (r *Request) HideMissing(err error) error {
	if r.Key.Owner != "" && catalog.IsNotFound(err) {
		return RefuseProject
	}
	return err
}

// OnProject makes a route's Run from a handler of calls on one project.
func OnProject(from Projects, param string, handler func(*Request, *catalog.Project) error) func(*Request) error {
	return func(r *Request) error {
		project, err := r.Project(from, param)
		if err != nil {
			return err
		}
		return handler(r, project)
	}
}

// OnPart is OnProject for calls on a domain or a template of the project.
func OnPart[T any](from Projects, param string, find func(project, id int64) (*T, error),
	handler func(*Request, *catalog.Project, *T) error) func(*Request) error {
	return func(r *Request) error {
		id, problems := r.ID(param)
		project, err := r.Project(from, "projectId", problems...)
		if err != nil {
			return err
		}
		part, err := find(project.ID, id)
		if err != nil {
			return err
		}
		return handler(r, project, part)
	}
}

// ListOwned answers with a list of what belongs to the project that the path parameter names. fields sort the list.
func ListOwned[Row any](r *Request, from Projects, param string, fields []string, message string,
	read func(project int64, q resolver.Query) ([]*Row, int, error), appendRow func([]byte, *Row) []byte) error {
	_, bad := r.ID(param)
	page, err := ParsePaging(r.Ctx.URI().QueryString(), fields, bad)
	if err != nil {
		return err
	}
	project, err := r.Project(from, param)
	if err != nil {
		return err
	}
	rows, total, err := read(project.ID, page.Query(nil))
	if err != nil {
		return err
	}
	r.SucceedPage(message, AppendRows(rows, appendRow), page, total)
	return nil
}

// AnswerSingle answers with a resource that a project has once: settings or the SMTP config.
func AnswerSingle[T any](r *Request, project *catalog.Project, message string, read func(project int64) (*T, error),
	appendTo func([]byte, int64, *T) []byte, etag func(int64, *T) string) error {
	v, err := read(project.ID)
	if err != nil {
		return err
	}
	r.SucceedTagged(message, appendTo(nil, project.ID, v), etag(project.ID, v))
	return nil
}
