package api

const (
	platformHealthPath = "/api/platform/health"
	mailHealthPath     = "/api/mail/health"
)

func (s *Server) platformHealth(r *request) error {
	s.succeed(r.ctx, "platform service is up", []byte(`{"service":"platform-service"}`))
	return nil
}

func (s *Server) mailHealth(r *request) error {
	s.succeed(r.ctx, "mail service is up", []byte(`{"service":"mail-service","status":"UP"}`))
	return nil
}
