package api

import "fingerpost/resolver"

// domainFields are the fields by which domains can be sorted.
var domainFields = []string{"id", "projectId", "domain", "primary", "active", "createdAt", "updatedAt"}

func (s *Server) listDomains(r *request) error {
	_, idErr := r.id("id")
	page, err := parsePaging(r.ctx.URI().QueryString(), domainFields, idErr)
	if err != nil {
		return err
	}
	project, err := s.projectOf(r, "id")
	if err != nil {
		return err
	}
	rows, total, err := s.resolver.Domains(project.ID, page.query(nil))
	if err != nil {
		return err
	}
	s.succeedPage(r.ctx, "domains found", appendRows(rows, resolver.AppendDomain), page, total)
	return nil
}

func (s *Server) getDomain(r *request) error {
	domainID, idErr := r.id("domainId")
	project, err := s.projectOf(r, "projectId", idErr)
	if err != nil {
		return err
	}
	d, err := s.resolver.Domain(project.ID, domainID)
	if err != nil {
		return err
	}
	s.succeedTagged(r.ctx, "domain found", resolver.AppendDomain(nil, d), resolver.DomainETag(d))
	return nil
}
