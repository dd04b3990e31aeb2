package platform

import (
	"encoding/json"

	"fingerpost/api/web"
	"fingerpost/configsrc/edits"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/rowjson"
)

// Explainer knows where the files declare a project's values; *configsrc.Source implements it. Explain gives its result
// away.
type Explainer interface {
	Explain(project catalog.UUID) (*catalog.Explained, error)
	Block(project catalog.UUID) (*edits.Block, error)
	FileOf(project catalog.UUID) (path string, ok bool)
}

var refuseView = &catalog.Error{Code: catalog.CodeUnavailable,
	Message: "this server has no config folder, which says where values come from"}

// getProject answers GET /projects/{id}, and with view=full the project with everything in it.
func (a *API) getProject(r *web.Request) error {
	q := web.ParseQuery(r.Ctx.URI().QueryString(), "view")
	view, given := q.Values["view"]
	if given && view != "full" && len(q.Problems) == 0 {
		q.Problems.Addf("view", `must be "full", or left out for the project alone`)
	}
	project, err := r.Project(a.State, "id", q.Problems...)
	switch {
	case err != nil:
		return err
	case given:
		return a.explain(r, project)
	}
	a.succeedProject(r, project)
	return nil
}

// explain answers with a project in full. The values and their origins are those of the files; the times are the
// store's.
func (a *API) explain(r *web.Request, project *catalog.Project) error {
	if a.Explainer == nil {
		return refuseView
	}
	x, err := a.Explainer.Explain(project.UUID)
	if err != nil {
		return err
	}
	rows, _, err := a.State.Domains(project.ID, resolver.Query{})
	if err != nil {
		return err
	}
	known := make(map[string]*catalog.Domain, len(rows))
	for _, d := range rows {
		known[d.Name] = d
	}
	x.Config.Project.CreatedAt, x.Config.Project.UpdatedAt = project.CreatedAt, project.UpdatedAt
	for i := range x.Config.Domains {
		d := &x.Config.Domains[i]
		d.CreatedAt, d.UpdatedAt = project.UpdatedAt, project.UpdatedAt // of one that was declared a moment ago
		if row := known[d.Name]; row != nil {
			d.CreatedAt, d.UpdatedAt = row.CreatedAt, row.UpdatedAt
		}
	}
	text := rowjson.AppendExplained(nil, x)
	r.SucceedTagged("project found", text, rowjson.ExplainedETag(text))
	return nil
}

const blockPath = "/api/platform/projects/{id}/block"

// getBlock answers GET /projects/{id}/block: the project's block as it stands in the file, without its secrets.
func (a *API) getBlock(r *web.Request, project *catalog.Project) error {
	if a.Explainer == nil {
		return refuseView
	}
	block, err := a.Explainer.Block(project.UUID)
	if err != nil {
		return err
	}
	data, err := json.Marshal(block)
	if err != nil {
		return err
	}
	r.Succeed("block found", data)
	return nil
}
