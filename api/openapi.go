package api

import (
	_ "embed"

	"github.com/valyala/fasthttp"
)

// openAPIPath serves the description of the API, without a key.
const openAPIPath = "/api/openapi.yaml"

//go:embed openapi.yaml
var openAPI []byte

// describe answers GET /api/openapi.yaml.
func (s *Server) describe(r *request) error {
	r.ctx.Response.Header.SetContentType("application/yaml")
	r.ctx.Response.SetStatusCode(fasthttp.StatusOK)
	r.ctx.Response.SetBodyRaw(openAPI)
	return nil
}
