package api

import (
	"encoding/json"
	"net/http"

	"fingerpost/api/web"
	"fingerpost/configsrc"
	"fingerpost/resolver/catalog"
)

// A Planner compares the declarations of the files that a dry run would change, before and after, and returns a value
// whose JSON is that of "fingerpost plan --json". It owns the declarations. defaults are those in force.
type Planner func(was, is []*catalog.Declared, defaults *catalog.Defaults) any

// A dryRun ends a handler at the point where a write would have been made. The caller of the handler answers with it.
type dryRun struct{ preview *configsrc.Preview }

func (*dryRun) Error() string { return "dry run: nothing was changed" }

// dryRunAnswer is the data of the answer to a dry run.
type dryRunAnswer struct {
	Valid    bool   `json:"valid"`
	Diff     string `json:"diff"`
	Plan     any    `json:"plan"` // null if the server has no Planner
	Problems any    `json:"problems"`
}

// succeedDry answers a dry run.
func (s *Server) succeedDry(r *web.Request, d *dryRun) error {
	a := dryRunAnswer{Valid: true, Diff: d.preview.Diff(), Problems: d.preview.Problems}
	if s.o.Plan != nil {
		a.Plan = s.o.Plan(d.preview.Was, d.preview.Is, s.projects.Defaults())
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
