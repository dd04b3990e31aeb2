package api

import (
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// projectFields are the fields by which projects can be sorted.
var projectFields = []string{"id", "uuid", "name", "slug", "description", "status", "createdAt", "updatedAt"}

// listProjects shows a key that is bound to some projects those only.
func (s *Server) listProjects(r *request) error {
	page, err := parsePaging(r.ctx.URI().QueryString(), projectFields)
	if err != nil {
		return err
	}
	if err := r.permit(); err != nil {
		return err
	}
	if !page.paged && page.sort == "id" && r.key.EveryProject() {
		return s.streamProjects(r, page.desc)
	}
	rows, total, err := s.resolver.Projects(page.query(r.key.Projects))
	if err != nil {
		return err
	}
	s.succeedPage(r.ctx, "projects found", appendRows(rows, resolver.AppendProject), page, total)
	return nil
}

func (s *Server) getProject(r *request) error {
	project, err := s.projectOf(r, "id")
	if err != nil {
		return err
	}
	s.succeedProject(r, project)
	return nil
}

func (s *Server) getProjectBySlug(r *request) error {
	if err := r.permit(); err != nil {
		return err
	}
	slug, _ := r.ctx.UserValue("slug").(string) // as sent: a slug has nothing to escape
	if !r.key.Covers(slug) {
		return refuseProject
	}
	project, err := s.resolver.ProjectBySlug(slug)
	if err != nil {
		return err
	}
	s.succeedProject(r, project)
	return nil
}

func (s *Server) succeedProject(r *request, p *catalog.Project) {
	s.succeedTagged(r.ctx, "project found", resolver.AppendProject(nil, p), resolver.ProjectETag(p))
}

// projectOf checks the path's ids and the key's permission, and returns the project that the path parameter names.
// earlier are failures of the path's other ids.
func (s *Server) projectOf(r *request, param string, earlier ...error) (*catalog.Project, error) {
	id, err := r.id(param)
	if problems := pathProblems(append([]error{err}, earlier...)...); len(problems) > 0 {
		return nil, invalid(problems...)
	}
	if err := r.permit(); err != nil {
		return nil, err
	}
	project, err := s.resolver.ProjectByID(id)
	if err != nil {
		return nil, err
	}
	if !r.key.Covers(project.Slug) {
		return nil, refuseProject
	}
	return project, nil
}
