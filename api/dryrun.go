package api

import (
	"encoding/json"
	"net/http"

	"fingerpost/api/web"
)

// dryRunAnswer is the data of the answer to a dry run.
type dryRunAnswer struct {
	Valid    bool   `json:"valid"`
	Diff     string `json:"diff"`
	Plan     any    `json:"plan"` // null if the server has no Planner
	Problems any    `json:"problems"`
}

// succeedDry answers a dry run.
func (s *Server) succeedDry(r *web.Request, d *web.DryRun) error {
	a := dryRunAnswer{Valid: true, Diff: d.Preview.Diff(), Problems: d.Preview.Problems}
	if s.o.Config.Plan != nil {
		a.Plan = s.o.Config.Plan(d.Preview.Was, d.Preview.Is, s.resolver.Defaults())
	}
	data, err := json.Marshal(a)
	if err != nil {
		return err
	}
	r.Ctx.Response.ResetBody()
	r.Ctx.Response.SetStatusCode(http.StatusOK)
	r.Succeed(d.Error(), data)
	return nil
}
