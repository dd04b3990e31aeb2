package console

import (
	"net/http"
	"strconv"
	"time"

	"fingerpost/resolver/catalog"
)

func itoa(n int) string { return strconv.Itoa(n) }

// A projectView is everything about a project.
type projectView struct {
	ID        string
	Project   object // view=full
	Groups    []valueGroup
	Domains   []object
	Templates []object
	SMTP      object
	Block     object // nil: cannot be read
	Changes   []object
	Mail      []object // of the last 24 hours
	MailTotal int
	MailNote  string // why there is none
	Unsent    string // why no mail of the project is sent, "" if nothing is known
	Keys      []object
	KeysShown bool
}

func mailPath(project, rest string) string { return "/api/mail/projects/" + project + rest }

func (c *Console) showProject(w http.ResponseWriter, r *http.Request, s *session) {
	id := projectID(r.PathValue("id"))
	a, err := c.ask(r.Context(), s, get(projectsPath+"/"+r.PathValue("id"), "view", "full"))
	if err != nil {
		c.failed(w, r, s, err)
		return
	}
	v := projectView{ID: id, Project: a.Object(), Groups: groupsOf(a.Object())}
	v.Domains = asList(v.Project["domains"])
	v.SMTP = asObject(v.Project["smtpConfig"])
	if a, err := c.ask(r.Context(), s, get(mailPath(id, "/templates"))); err == nil {
		v.Templates = a.List()
	}
	if a, err := c.ask(r.Context(), s, get(projectsPath+"/"+id+"/block")); err == nil {
		v.Block = a.Object()
	}
	if a, err := c.ask(r.Context(), s, get(auditPath, "projectId", id, "limit", "10")); err == nil {
		v.Changes = a.List()
	}
	if a, err := c.ask(r.Context(), s, get(mailPath(id, "/logs"), "limit", "10", "from",
		time.Now().UTC().Add(-24*time.Hour).Format("2006-01-02T15:04:05"))); err == nil {
		v.Mail, v.MailTotal = a.List(), a.Total
	} else {
		v.MailNote = err.Error()
	}
	if number, err := strconv.ParseInt(id, 10, 64); err == nil && c.o.Mail != nil && !c.o.Edge {
		if p := c.o.Mail.SecretProblem(number); p != nil {
			v.Unsent = "the " + p.Field + " of the SMTP config cannot be opened: " + p.Message
		}
	}
	if k := s.Key(); k.Everything && k.May(catalog.MayWrite) {
		if a, err := c.ask(r.Context(), s, get(keysPath)); err == nil {
			v.KeysShown = true
			slug := text(v.Project["slug"])
			for _, k := range a.List() {
				if covers(k, slug) {
					v.Keys = append(v.Keys, k)
				}
			}
		}
	}
	c.render(w, r, s, http.StatusOK, "project", text(v.Project["name"]), v)
}

// covers reports whether a key of the API's list covers a project.
func covers(key object, slug string) bool {
	projects, limited := key["projects"].([]any)
	if !limited {
		return true
	}
	for _, p := range projects {
		if p == slug {
			return true
		}
	}
	return false
}
