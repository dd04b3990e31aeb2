package api

import (
	"encoding/json"
	"net/http"

	"fingerpost/api/web"
	"fingerpost/resolver/catalog"
)

// A Planner compares the declarations of the files that a dry run would change, before and after, and returns a value
// whose JSON is that of "fingerpost plan --json". It owns the declarations. defaults are those in force.
type Planner func(was, is []*catalog.Declared, defaults *catalog.Defaults) any

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
	if s.o.Plan != nil {
		a.Plan = s.o.Plan(d.Preview.Was, d.Preview.Is, s.projects.Defaults())
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
