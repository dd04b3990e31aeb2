package api

import "fingerpost/resolver"

func (s *Server) getServiceSettings(r *request) error {
	project, err := s.projectOf(r, "id")
	if err != nil {
		return err
	}
	settings, err := s.resolver.ServiceSettings(project.ID)
	if err != nil {
		return err
	}
	s.succeedTagged(r.ctx, "service settings found",
		resolver.AppendServiceSettings(nil, project.ID, settings), resolver.ServiceSettingsETag(project.ID, settings))
	return nil
}

func (s *Server) getAuthSettings(r *request) error {
	project, err := s.projectOf(r, "id")
	if err != nil {
		return err
	}
	settings, err := s.resolver.AuthSettings(project.ID)
	if err != nil {
		return err
	}
	s.succeedTagged(r.ctx, "auth settings found",
		resolver.AppendAuthSettings(nil, project.ID, settings), resolver.AuthSettingsETag(project.ID, settings))
	return nil
}
