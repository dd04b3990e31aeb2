package console

import (
	"net/http"
	"strconv"
	"time"

	"fingerpost/api/client"
	"fingerpost/resolver/catalog"
)

func itoa(n int) string { return strconv.Itoa(n) }

// A projectView is everything about a project.
type projectView struct {
	Project   catalog.Project
	Groups    []valueGroup
	Domains   []catalog.Domain
	Templates []catalog.Template
	SMTP      bool          // there is a config in force
	Block     *client.Block // nil: cannot be read
	Changes   []told
	Mail      client.Page[client.MailEntry] // of the last 24 hours
	MailNote  string                        // why there is none
	Unsent    string                        // why no mail of the project is sent, "" if nothing is known
	Keys      []client.Key
	KeysShown bool
}

// projectPage is the path of a project's page.
func projectPage(id int64) string { return Prefix + "projects/" + strconv.FormatInt(id, 10) }

func (c *Console) showProject(w http.ResponseWriter, r *http.Request, s *session) error {
	id, ctx, api := idOf(r.PathValue("id")), r.Context(), c.api(s)
	x, err := explained(ctx, api, id)
	if err != nil {
		return err
	}
	v := projectView{Project: x.Config.Project, Domains: x.Config.Domains, SMTP: x.Config.SMTP != nil,
		Groups: groupsOf(x)}
	v.Templates, _ = api.Templates(ctx, id)
	if block, err := api.Block(ctx, id); err == nil {
		v.Block = &block
		linkLines(v.Groups, "")
	}
	if page, err := api.AuditPage(ctx, query("projectId", id, "limit", "10")); err == nil {
		v.Changes = c.tell(ctx, s, page.Rows)
	}
	if v.Mail, err = api.MailPage(ctx, id, query("limit", "10", "from",
		time.Now().UTC().Add(-24*time.Hour).Format("2006-01-02T15:04:05"))); err != nil {
		v.MailNote = failureOf(err).Message
	}
	if c.o.Mail != nil && !c.o.Edge {
		if p := c.o.Mail.SecretProblem(id); p != nil {
			v.Unsent = "the " + p.Field + " of the SMTP config cannot be opened: " + p.Message
		}
	}
	if k := s.Key(); k.Everything && k.May(catalog.MayWrite) {
		if keys, err := api.Keys(ctx); err == nil {
			v.KeysShown = true
			for _, k := range keys {
				if k.Covers(v.Project.Slug) {
					v.Keys = append(v.Keys, k)
				}
			}
		}
	}
	return c.render(w, r, s, http.StatusOK, "project", v.Project.Name, v)
}
