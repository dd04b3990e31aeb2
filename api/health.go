package api

const (
	platformHealthPath = "/api/platform/health"
	mailHealthPath     = "/api/mail/health"
)

func (s *Server) platformHealth(r *request) error {
	r.succeed("platform service is up", []byte(`{"service":"platform-service"}`))
	return nil
}

func (s *Server) mailHealth(r *request) error {
	r.succeed("mail service is up", []byte(`{"service":"mail-service","status":"UP"}`))
	return nil
}
