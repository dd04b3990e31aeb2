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

// dryRunParam is the query parameter that makes a write a dry run (api/README.md, Dry run).
const dryRunParam = "dryRun"

// readDryRun reads the parameter. A call that changes no file has no dry run: somebody who asks for one must not get
// the real thing, such as a mail that is sent.
func (r *request) readDryRun() error {
	q := web.ParseQuery(r.ctx.URI().QueryString(), dryRunParam)
	value, given := q.Values[dryRunParam]
	switch {
	case len(q.Problems) > 0:
		return web.Invalid(q.Problems...)
	case given && r.allow != catalog.MayWrite:
		return web.InvalidField(dryRunParam, "is not for this call: it changes no file")
	case given && value != "1" && value != "0":
		return web.InvalidField(dryRunParam, "must be 1 (check and show the change) or 0 (make it)")
	}
	r.dry = value == "1"
	return nil
}

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
func (s *Server) succeedDry(r *request, d *dryRun) error {
	a := dryRunAnswer{Valid: true, Diff: d.preview.Diff(), Problems: d.preview.Problems}
	if s.o.Plan != nil {
		a.Plan = s.o.Plan(d.preview.Was, d.preview.Is, s.projects.Defaults())
	}
	data, err := json.Marshal(a)
	if err != nil {
		return err
	}
	r.ctx.Response.ResetBody()
	r.ctx.Response.SetStatusCode(http.StatusOK)
	r.succeed(d.Error(), data)
	return nil
}
