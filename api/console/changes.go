package console

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"

	"fingerpost/api/client"
	"fingerpost/api/console/say"
	"fingerpost/resolver/catalog"
)

// A told entry of the audit trail says in a sentence what happened.
type told struct {
	client.AuditEntry
	Sentence say.Sentence
}

// tell adds the sentences to entries of the audit trail. Projects are called what they are called now, where the key
// may know.
func (c *Console) tell(ctx context.Context, s *session, entries []client.AuditEntry) []told {
	name := c.projectNames(ctx, s)
	webhooks := sync.OnceValue(func() map[string]bool { return c.webhookNames(ctx, s) })
	list := make([]told, len(entries))
	for i := range entries {
		list[i] = told{entries[i], say.SentenceOf(&entries[i], name)}
		for j := range list[i].Sentence {
			if p := &list[i].Sentence[j]; p.Webhook && !webhooks()[p.Text] {
				p.Webhook, p.Strong = false, true
			}
		}
	}
	return list
}

// projectNames returns what projects are called now, each asked for once. The name of one that is gone is "".
func (c *Console) projectNames(ctx context.Context, s *session) func(id int64) string {
	api, known := c.client(s, ""), map[int64]string{}
	return func(id int64) string {
		if _, asked := known[id]; !asked {
			p, err := api.ProjectByID(ctx, id)
			if known[id] = p.Name; err != nil {
				known[id] = "" // gone
			}
		}
		return known[id]
	}
}

// webhookNames returns the webhooks that have a page for the session.
func (c *Console) webhookNames(ctx context.Context, s *session) map[string]bool {
	names := map[string]bool{}
	list, _ := c.webhookList(ctx, s) // without it the names are no links
	for i := range list {
		names[list[i].Name] = true
	}
	return names
}

// A changesView is a page of the audit trail.
type changesView struct {
	Project, Actor, Action, RequestID, From, Until string
	Page, Total, Pages                             int
	Rows                                           []told
	Link, Problem                                  string
	Drafts                                         []draftRow // on the first page
	Kinds                                          []say.Kind
	People                                         []string // that stand on the page
}

// Filtered reports whether not everything is shown.
func (v changesView) Filtered() bool {
	return v.Project+v.Actor+v.Action+v.RequestID+v.From+v.Until != ""
}

func (c *Console) changes(w http.ResponseWriter, r *http.Request, s *session) error {
	q := r.URL.Query()
	v := changesView{Project: strings.TrimSpace(q.Get("project")), Actor: strings.TrimSpace(q.Get("actor")),
		Action: q.Get("action"), RequestID: q.Get("request"), From: q.Get("from"), Until: q.Get("until"),
		Page: number(q.Get("page"), 1), Kinds: say.Kinds()}
	id := int64(0)
	if v.Project != "" {
		p, err := c.projectNamed(r.Context(), s, v.Project)
		if err != nil {
			v.Problem = "There is no project " + v.Project + ", or your key does not cover it."
		} else if id, v.Project = p.ID, p.Slug; v.Project == "" {
			v.Project = say.Text(id) // it is gone, and its changes are there
		}
	}
	if v.Problem == "" {
		found, err := c.api(s).AuditPage(r.Context(), query("projectId", id, "actor", v.Actor, "action", v.Action,
			"requestId", v.RequestID, "from", minutes(v.From), "to", minutes(v.Until), "page", itoa(v.Page), "limit",
			itoa(pageRows)))
		if err != nil {
			v.Problem = reason(err)
		}
		v.Total, v.Pages, v.Rows = found.Total, found.Pages, c.tell(r.Context(), s, found.Rows)
	}
	for _, row := range v.Rows {
		if who := say.Text(row.Actor); who != "" && !slices.Contains(v.People, who) {
			v.People = append(v.People, who)
		}
	}
	if v.Page == 1 {
		v.Drafts = c.drafts(r.Context(), s)
	}
	v.Link = pages("changes", "project", v.Project, "actor", v.Actor, "action", v.Action, "request", v.RequestID,
		"from", v.From, "until", v.Until)
	return c.render(w, r, s, http.StatusOK, "changes", "Changes", v)
}

// projectNamed finds a project by what a person calls it: its slug, or its id. Of one that is gone there is the id alone.
func (c *Console) projectNamed(ctx context.Context, s *session, name string) (catalog.Project, error) {
	api := c.client(s, "")
	p, err := api.ProjectBySlug(ctx, strings.ToLower(name))
	if id := idOf(name); err != nil && id != 0 {
		if p, err = api.ProjectByID(ctx, id); client.Status(err, http.StatusNotFound) {
			return catalog.Project{ID: id}, nil
		}
	}
	return p, err
}

// minutes is a time of a picker, which may lack the seconds, as the API takes it.
func minutes(picked string) string {
	if len(picked) == len("2026-01-31T09:30") {
		return picked + ":00"
	}
	return picked
}
