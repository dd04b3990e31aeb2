package console

import (
	"context"
	"net/http"

	"fingerpost/api/client"
	"fingerpost/api/console/sentence"
)

// A told entry of the audit trail says in a sentence what happened.
type told struct {
	client.AuditEntry
	Sentence sentence.Sentence
}

// tell adds the sentences to entries of the audit trail. Projects are called what they are called now, where the key
// may know.
func (c *Console) tell(ctx context.Context, s *session, entries []client.AuditEntry) []told {
	api, known := c.client(s, ""), map[int64]string{}
	name := func(id int64) string {
		if _, asked := known[id]; !asked {
			p, err := api.ProjectByID(ctx, id)
			if known[id] = p.Name; err != nil {
				known[id] = "" // gone
			}
		}
		return known[id]
	}
	list := make([]told, len(entries))
	for i := range entries {
		list[i] = told{entries[i], sentence.Of(&entries[i], name)}
	}
	return list
}

// A changesView is a page of the audit trail, and the open proposals.
type changesView struct {
	ProjectID, Actor, Action, RequestID, From, Until string
	Page                                             int
	Found                                            client.Page[client.AuditEntry]
	Rows                                             []told
	Link, Problem                                    string
	Actions                                          []string
}

func (c *Console) changes(w http.ResponseWriter, r *http.Request, s *session) error {
	q := r.URL.Query()
	v := changesView{ProjectID: q.Get("project"), Actor: q.Get("actor"), Action: q.Get("action"),
		RequestID: q.Get("request"), From: q.Get("from"), Until: q.Get("until"), Page: number(q.Get("page"), 1)}
	var err error
	if v.Found, err = c.api(s).AuditPage(r.Context(), query("projectId", v.ProjectID, "actor", v.Actor, "action",
		v.Action, "requestId", v.RequestID, "from", v.From, "to", v.Until, "page", itoa(v.Page), "limit",
		itoa(pageRows))); err != nil {
		v.Problem = reason(err)
	}
	v.Rows = c.tell(r.Context(), s, v.Found.Rows)
	v.Link = pages("changes", "project", v.ProjectID, "actor", v.Actor, "action", v.Action, "request", v.RequestID,
		"from", v.From, "until", v.Until)
	return c.render(w, r, s, http.StatusOK, "changes", "Changes", v)
}
