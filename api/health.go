package api

import "fingerpost/api/web"

const platformHealthPath = "/api/platform/health"

func (s *Server) platformHealth(r *web.Request) error {
	r.Succeed("platform service is up", []byte(`{"service":"platform-service"}`))
	return nil
}
