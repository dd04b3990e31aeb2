package api

import "fingerpost/api/web"

const (
	platformHealthPath = "/api/platform/health"
	mailHealthPath     = "/api/mail/health"
)

func (s *Server) platformHealth(r *web.Request) error {
	r.Succeed("platform service is up", []byte(`{"service":"platform-service"}`))
	return nil
}

func (s *Server) mailHealth(r *web.Request) error {
	r.Succeed("mail service is up", []byte(`{"service":"mail-service","status":"UP"}`))
	return nil
}
