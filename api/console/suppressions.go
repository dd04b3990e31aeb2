package console

import (
	"net/http"
	"strconv"
	"strings"

	"fingerpost/api/client"
	"fingerpost/resolver/catalog"
)

// A suppressionsView is the suppression list of a project.
type suppressionsView struct {
	Project *catalog.Project
	Filter  suppressionFilter
	Rows    []client.Suppression
	Total   int
	Page    int
	Pages   int
	Link    string
	New     client.NewSuppression // what the form to add has
	Failed  *failure
}

// A suppressionFilter says which entries are shown. Empty fields do not filter.
type suppressionFilter struct{ Text, Reason string }

// Reasons are those that can be chosen.
func (suppressionsView) Reasons() []string { return catalog.SuppressionReasons }

// Any reports whether something is filtered.
func (f suppressionFilter) Any() bool { return f != suppressionFilter{} }

func suppressionsPage(project int64) string {
	return Prefix + "suppressions/" + strconv.FormatInt(project, 10)
}

func (c *Console) suppressions(w http.ResponseWriter, r *http.Request, s *session) error {
	return c.showSuppressions(w, r, s, http.StatusOK, suppressionsView{})
}

// showSuppressions answers with the list, and with what v has of a form that was refused.
func (c *Console) showSuppressions(w http.ResponseWriter, r *http.Request, s *session, status int,
	v suppressionsView) error {
	api, q := c.api(s), r.URL.Query()
	p, err := api.ProjectByID(r.Context(), idOf(r.PathValue("project")))
	if err != nil {
		return err
	}
	v.Project, v.Page = &p, number(q.Get("page"), 1)
	v.Filter = suppressionFilter{strings.TrimSpace(q.Get("q")), q.Get("reason")}
	found, err := api.Suppressions(r.Context(), p.ID, query("q", v.Filter.Text, "reason", v.Filter.Reason,
		"page", itoa(v.Page), "limit", itoa(pageRows)))
	if err != nil {
		if v.Failed == nil {
			v.Failed = failureOf(err)
		}
	}
	v.Rows, v.Total, v.Pages = found.Rows, found.Total, found.Pages
	v.Link = pages("suppressions/"+strconv.FormatInt(p.ID, 10), "q", v.Filter.Text, "reason", v.Filter.Reason)
	return c.render(w, r, s, status, "suppressions", "Who gets no mail from "+p.Name, v)
}

// changeSuppressions adds or removes an entry.
func (c *Console) changeSuppressions(w http.ResponseWriter, r *http.Request, s *session) error {
	if !c.may(s).Save {
		return s.Key().refuse("Changing a suppression list", catalog.MayWrite, false)
	}
	api, project := c.api(s), idOf(r.PathValue("project"))
	field := func(name string) string { return strings.TrimSpace(r.PostFormValue(name)) }
	entry := client.NewSuppression{Address: field("address"), Reason: field("reason"), Category: field("category"),
		Note: field("note")}
	if r.PostFormValue("do") == "remove" {
		if _, err := api.Release(r.Context(), project, entry.Address, entry.Reason, entry.Category); err != nil &&
			!client.Status(err, http.StatusNotFound) { // somebody else has removed it
			return err
		}
		s.say(visible(entry.Address) + " may get mail again.")
		return seeOther(w, r, suppressionsPage(project))
	}
	if _, err := api.Suppress(r.Context(), project, entry); err != nil {
		return c.showSuppressions(w, r, s, http.StatusBadRequest, suppressionsView{New: entry, Failed: failureOf(err)})
	}
	s.say(visible(entry.Address) + " is on the list.")
	return seeOther(w, r, suppressionsPage(project))
}
