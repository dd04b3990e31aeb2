package console

import (
	"net/http"

	"fingerpost/api/client"
	"fingerpost/api/console/form"
	"fingerpost/resolver/catalog"
)

// formOf makes the form of a resource that the session's key may change, and fills it with what the API has.
func (c *Console) formOf(r *http.Request, s *session, name, project, id string) (*form.Form, error) {
	if form.Title(name) != "" && !c.mayOn(s, idOf(project)).form(name, idOf(project)) {
		return nil, c.refuseForm(s.Key(), name, idOf(project))
	}
	return c.showing(r, s, name, project, id)
}

// showing is formOf for a form that changes nothing.
func (c *Console) showing(r *http.Request, s *session, name, project, id string) (*form.Form, error) {
	f := form.New(name, idOf(project), id)
	if f == nil || f.Project == 0 && name != "project" && !f.Apart() || name == "key" && !f.IsNew() {
		return nil, &failure{Status: http.StatusNotFound, Message: "There is no such form."}
	}
	f.Back = projectPage(f.Project)
	switch {
	case name == "key":
		f.Back = Prefix + "keys"
		giver := s.Key()
		f.LimitKey(giver.gives(), giver.ExpiresAt)
	case name == "webhook":
		f.Back = webhookPage(f.Key)
	case name == "project" && f.ID == 0:
		f.Back = Prefix + "projects"
	}
	if f.IsNew() {
		f.Begin()
		f.Suggest(r.FormValue("domain"))
		f.Start(r.URL.Query().Get("preset"))
	} else if err := c.load(r, s, f); err != nil {
		return nil, err
	}
	f.Limit(c.decides(s, f.Project))
	return f, nil
}

// decides reports whether what only a key for every project may say is offered in forms of a project: not to a person who
// may save on the project and only propose on others.
func (c *Console) decides(s *session, project int64) bool {
	k := s.Key()
	switch {
	case k.Reach == nil:
		return k.Everything
	case s.Proposal() == "" && k.at(project)&catalog.MayWrite != 0:
		return k.mayEverywhere(catalog.MayWrite)
	}
	return k.mayEverywhere(catalog.MayWrite | catalog.MayPropose)
}

// load fills a form with what the API has, and with where the files say it.
func (c *Console) load(r *http.Request, s *session, f *form.Form) error {
	api := c.api(s)
	state, err := api.State(r.Context(), f.Object())
	isNew := f.Single() && client.Status(err, http.StatusNotFound)
	if err != nil && !isNew {
		return err
	}
	var values []catalog.Field
	var origins catalog.Origins
	if f.Explained() {
		// It comes second: what has changed in between does not fit the ETag.
		x, fault := explained(r.Context(), api, f.Project)
		if fault == nil {
			values, origins = x.Part(f.Object().Kind, f.ID)
		} else if f.Kind == "project" {
			return fault
		}
	}
	if isNew {
		f.BeginSingle(values, origins)
		return nil
	}
	if err := f.Load(&state, values, origins); err != nil || !f.OwnSecrets() {
		return err
	}
	if block, err := api.Block(r.Context(), f.Project); err == nil { // without it the form is complete
		f.Calls(&block, origins)
	}
	return nil
}
