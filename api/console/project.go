package console

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"fingerpost/api/client"
	"fingerpost/api/conditions"
	"fingerpost/api/console/form"
	"fingerpost/api/console/now"
	"fingerpost/api/console/say"
	"fingerpost/resolver/catalog"
)

func itoa(n int) string { return strconv.Itoa(n) }

// A projectView is everything about a project.
type projectView struct {
	Project   catalog.Project
	Groups    []valueGroup
	Domains   []domainRow
	Templates []templateRow
	SMTP      bool          // there is a config in force
	Block     *client.Block // nil: cannot be read
	Changes   []told
	Mail      client.Page[client.MailEntry] // of the last 24 hours
	MailRows  []mailRow                     // of Mail
	MailNote  string                        // why there is none
	Bars      []bar                         // what is wrong with it, above everything else
	Keys      []client.Key
	KeysShown bool
}

// A templateRow is a template of the project, or a default one.
type templateRow struct {
	catalog.Template
	Overridden bool // the project has one of the same code
}

// A domainRow is a domain of the project.
type domainRow struct{ catalog.Domain }

// Unproven says what the proof of a domain lacks; nil: nothing, as far as the files tell.
func (d domainRow) Unproven() *say.State {
	switch say.Text(d.Verified) {
	case catalog.VerifiedPending:
		return &say.State{Kind: "warn", Text: "pending: not proven yet"}
	case catalog.VerifiedLost:
		return &say.State{Kind: "bad", Text: "lost: its proof is gone"}
	}
	return nil
}

// Shown is the value as a table has it. A secret that no line gives does not exist: nothing built in is one.
func (v valueRow) Shown() string {
	if v.Value == secretShown && v.Origin == form.Place(catalog.Origin{}) {
		return ""
	}
	return v.Value
}

const secretShown = "(secret)" // in place of a secret

// A bar says what is wrong, with a way to mend it.
type bar struct{ Kind, Text, To, Do string }

// projectPage is the path that leads to a project's page.
func projectPage(id int64) string { return Prefix + "projects/" + strconv.FormatInt(id, 10) }

// projectID returns the id of a project that a path names by its slug or id. A slug of digits is one where no project
// has this id.
func projectID(ctx context.Context, api *client.Client, name string) (id int64, bySlug bool, err error) {
	if id = idOf(name); id != 0 {
		if _, err = api.ProjectByID(ctx, id); !client.Status(err, http.StatusNotFound) {
			return id, false, err
		}
	}
	if catalog.CheckSlug(name) != "" {
		return 0, false, noPage
	}
	p, err := api.ProjectBySlug(ctx, name)
	return p.ID, true, err
}

func (c *Console) showProject(w http.ResponseWriter, r *http.Request, s *session) error {
	ctx, api := r.Context(), c.api(s)
	id, bySlug, err := projectID(ctx, api, r.PathValue("id"))
	if err != nil {
		return err
	}
	x, err := explained(ctx, api, id)
	if err != nil {
		return err
	}
	if slug := x.Config.Project.Slug; !bySlug && idOf(slug) == 0 { // the address that people share says whose page it is
		return seeOther(w, r, Prefix+"projects/"+slug)
	}
	v := projectView{Project: x.Config.Project, SMTP: x.Config.SMTP != nil,
		Groups: groupsOf(x)}
	for _, d := range x.Config.Domains {
		v.Domains = append(v.Domains, domainRow{d})
	}
	templates, _ := api.Templates(ctx, id)
	v.Templates = templateRows(templates)
	if block, err := api.Block(ctx, id); err == nil {
		v.Block = &block
		linkLines(v.Groups, "")
	}
	if page, err := api.AuditPage(ctx, query("projectId", id, "limit", "10")); err == nil {
		v.Changes = c.tell(ctx, s, page.Rows)
	}
	if v.Mail, err = api.MailPage(ctx, id, query("limit", "10", "from",
		catalog.Moment(time.Now().Add(-24*time.Hour)))); err != nil {
		v.MailNote = failureOf(err).Message
	}
	v.MailRows = c.mailRows(ctx, s, v.Mail.Rows)
	v.Bars = c.bars(s, x)
	if s.Key().mayEverywhere(catalog.MayWrite) {
		if keys, err := api.Keys(ctx); err == nil {
			v.KeysShown = true
			for _, k := range keys {
				if owner := v.Project.Owner; k.Covers(v.Project.Slug) || owner != nil && k.Owner == *owner {
					v.Keys = append(v.Keys, k)
				}
			}
		}
	}
	return c.render(w, r, s, http.StatusOK, "project", v.Project.Name, v)
}

// templateRows lists templates, and which defaults the project's own ones take the place of.
func templateRows(templates []catalog.Template) (rows []templateRow) {
	own := map[string]bool{}
	for _, t := range templates {
		own[t.Code] = own[t.Code] || t.ProjectID != 0
	}
	for _, t := range templates {
		rows = append(rows, templateRow{Template: t, Overridden: t.ProjectID == 0 && own[t.Code]})
	}
	return rows
}

// bars says what is wrong with a project: its file, and its mail.
func (c *Console) bars(s *session, x *catalog.Explained) (bars []bar) {
	p := &x.Config.Project
	if files := c.problemsOf(s); files.Whole {
		if d := firstError(files.Status.Problems, x.Project["name"].File); d != nil {
			bars = append(bars, bar{"bad", "The file of this project has errors (" + d.Summary +
				"): what it said before them is served, and what is saved here has to wait.",
				Prefix + "problems", "See the problem"})
		}
	}
	if c.o.Mail == nil || c.o.Edge { // the authority sends
		return bars
	}
	if secret := c.o.Mail.SecretProblem(p.ID); secret != nil {
		return append(bars, bar{"bad", "No mail of this project is sent: the " + secret.Field +
			" of the SMTP config cannot be opened: " + secret.Message, "", ""})
	}
	if x := c.stoppedProjects()[p.ID]; x != nil {
		may := c.mayOn(s, p.ID)
		facts := &now.Facts{May: now.May{Write: may.Save, Edit: may.Edit, Key: s.Key().Name},
			State: conditions.State{Time: time.Now(), Stopped: []conditions.Stopped{stoppedOf(x, p.Slug, p.Name)}}}
		for _, item := range now.Items(facts) {
			bars = append(bars, bar{"bad", item.Text + " " + item.Detail + ".", item.To, item.Do})
		}
	}
	return bars
}
