package api

import (
	_ "embed"

	"github.com/valyala/fasthttp"

	"fingerpost/api/web"
)

// openAPIPath serves the description of the API, without a key.
const openAPIPath = "/api/openapi.yaml"

//go:embed openapi.yaml
var openAPI []byte

// describe answers GET /api/openapi.yaml.
func (s *Server) describe(r *web.Request) error {
	r.Ctx.Response.Header.SetContentType("application/yaml")
	r.Ctx.Response.SetStatusCode(fasthttp.StatusOK)
	r.Ctx.Response.SetBodyRaw(openAPI)
	return nil
}
