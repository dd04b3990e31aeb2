package console

import (
	"context"
	"net/http"
	"slices"

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
	Proposals                                        []proposalRow
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
	if c.o.Git {
		if list, err := c.api(s).Proposals(r.Context()); err == nil {
			v.Proposals = c.proposalRows(s, list)
		}
	}
	v.Link = pages("changes", "project", v.ProjectID, "actor", v.Actor, "action", v.Action, "request", v.RequestID,
		"from", v.From, "until", v.Until)
	return c.render(w, r, s, http.StatusOK, "changes", "Changes", v)
}

// proposal applies a proposal, drops it, or has the person work in it.
func (c *Console) proposal(w http.ResponseWriter, r *http.Request, s *session) error {
	name := r.PathValue("name")
	if !proposalName.MatchString(name) {
		return &failure{Status: http.StatusNotFound, Message: "There is no such proposal."}
	}
	switch r.PostFormValue("do") {
	case "leave":
		s.workIn("")
		s.say("You have left the proposal. What is shown is live.")
		return seeOther(w, r, Prefix+"changes")
	case "enter":
		list, err := c.api(s).Proposals(r.Context())
		if err == nil && !slices.ContainsFunc(list, func(p client.Proposal) bool { return p.Name == name }) {
			err = &failure{Status: http.StatusNotFound, Message: "There is no such proposal."}
		}
		if err != nil {
			return err
		}
		s.workIn(name)
		return seeOther(w, r, Prefix+"projects")
	}
	var err error
	done := "The proposal " + name + " is applied, and live."
	if r.PostFormValue("do") == "drop" {
		done = "The proposal " + name + " was dropped."
		err = c.api(s).DropProposal(r.Context(), name, "")
	} else {
		_, err = c.api(s).ApplyProposal(r.Context(), name, "")
	}
	if err != nil {
		return err
	}
	if s.Proposal() == name {
		s.workIn("")
	}
	s.say(done)
	return seeOther(w, r, Prefix+"changes")
}
