package console

import (
	"cmp"
	"context"
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
	Unread  bool // the list cannot be shown
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
	if v.Unread = err != nil; v.Unread && v.Failed == nil {
		v.Failed = failureOf(err)
	}
	v.Rows, v.Total, v.Pages = found.Rows, found.Total, found.Pages
	v.Link = pages("suppressions/"+strconv.FormatInt(p.ID, 10), "q", v.Filter.Text, "reason", v.Filter.Reason)
	return c.render(w, r, s, status, "suppressions", "Who gets no mail from "+p.Name, v)
}

// changeSuppressions adds or removes an entry, and leads back to what was shown.
func (c *Console) changeSuppressions(w http.ResponseWriter, r *http.Request, s *session) error {
	if !c.may(s).Save {
		return s.Key().refuse("Changing a suppression list", catalog.MayWrite, false)
	}
	api, project := c.api(s), idOf(r.PathValue("project"))
	back := link(suppressionsPage(project), "q", r.URL.Query().Get("q"), "reason", r.URL.Query().Get("reason"))
	field := func(name string) string { return strings.TrimSpace(r.PostFormValue(name)) }
	entry := client.NewSuppression{Address: field("address"), Reason: field("reason"), Category: field("category"),
		Note: field("note")}
	if r.PostFormValue("do") == "remove" {
		// The entry of the line alone: another one of the address is another wish of the recipient.
		only := cmp.Or(entry.Category, catalog.NoCategory)
		if _, err := api.Release(r.Context(), project, entry.Address, entry.Reason, only); err != nil &&
			!client.Status(err, http.StatusNotFound) { // somebody else has removed it
			return err
		}
		s.say(c.released(r.Context(), s, project, entry.Address))
		return seeOther(w, r, back)
	}
	if _, err := api.Suppress(r.Context(), project, entry); err != nil {
		return c.showSuppressions(w, r, s, http.StatusBadRequest, suppressionsView{New: entry, Failed: failureOf(err)})
	}
	s.say(visible(entry.Address) + " is on the list.")
	return seeOther(w, r, suppressionsPage(project))
}

// released says what the removal of an entry has brought: another one may stop mail to the address still.
func (c *Console) released(ctx context.Context, s *session, project int64, address string) string {
	left, err := c.api(s).Suppressions(ctx, project, query("address", address))
	switch {
	case err != nil:
		return "The entry of " + visible(address) + " is gone."
	case len(left.Rows) == 0:
		return visible(address) + " may get mail again."
	}
	also := ""
	if of := left.Rows[0].Category; of != nil {
		also = " of " + visible(*of)
	}
	return "The entry is gone, and " + visible(address) + " is on the list still, as " + visible(left.Rows[0].Reason) +
		also + "."
}
