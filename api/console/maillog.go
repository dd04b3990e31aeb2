package console

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"fingerpost/api/client"
	"fingerpost/api/console/say"
	"fingerpost/mailer"
	"fingerpost/resolver/catalog"
)

// A mailView is the log of all projects, or of one, and the state of the queue.
type mailView struct {
	Project   *catalog.Project // nil: all
	Filter    mailFilter
	Rows      []mailRow
	Total     int
	Page      int
	Pages     int
	Link      string
	Older     string // a link to the mail before the time to which the search has looked
	Templates []templateRow
	Problem   string
	Queue     *mailer.Counts
	Stopped   []stoppedRow
}

// A mailFilter says which mail is shown. Empty fields do not filter.
type mailFilter struct {
	Project                                 int64
	Text, Status, To, Template, From, Until string
}

// Any reports whether anything but the project is said, and Narrowed whether more than the text is.
func (f mailFilter) Any() bool      { return f != mailFilter{Project: f.Project} }
func (f mailFilter) Narrowed() bool { return f != mailFilter{Project: f.Project, Text: f.Text} }

// A mailState is a state in the words of the page.
type mailState struct{ Status, Text string }

// Statuses are those that can be chosen.
func (mailFilter) Statuses() []mailState {
	return []mailState{{string(catalog.MailSent), "Sent"}, {string(catalog.MailRetrying), "Waiting or stopped"},
		{string(catalog.MailSending), "Being sent"}, {string(catalog.MailPending), "Just asked for"},
		{string(catalog.MailFailed), "Not sent"}, {string(catalog.MailExpired), "Given up"},
		{string(catalog.MailSuppressed), "Stopped by the suppression list"}}
}

// A mailRow is a mail in the list.
type mailRow struct {
	client.MailEntry
	Name  string // of the project
	State say.State
}

// A stoppedRow is a project whose mail has stopped.
type stoppedRow struct {
	mailer.Stopped
	Name   string
	Reason say.Reason
}

func (c *Console) mail(w http.ResponseWriter, r *http.Request, s *session) error {
	q := r.URL.Query()
	said := func(name string) string { return strings.TrimSpace(q.Get(name)) }
	f := mailFilter{Project: idOf(q.Get("project")), Text: said("q"), Status: said("status"), To: said("to"),
		Template: said("template"), From: said("from"), Until: said("until")}
	v, title := mailView{Filter: f, Page: number(q.Get("page"), 1)}, "Mail"
	ctx, api := r.Context(), c.api(s)
	if f.Project != 0 {
		p, err := api.ProjectByID(ctx, f.Project)
		if err != nil {
			return err
		}
		v.Project, title = &p, "Mail of "+p.Name
		templates, _ := api.Templates(ctx, p.ID)
		v.Templates = templateRows(templates)
	}
	before := minutes(f.Until)
	if older := said("before"); older != "" {
		before = older
	}
	filters := query("q", f.Text, "status", f.Status, "toEmail", f.To, "templateCode", f.Template, "from", minutes(f.From),
		"to", before, "page", itoa(v.Page), "limit", itoa(pageRows))
	var found client.Page[client.MailEntry]
	var err error
	if v.Project != nil {
		found, err = api.MailPage(ctx, v.Project.ID, filters)
	} else {
		found, err = api.Mail(ctx, filters)
	}
	if err != nil {
		v.Problem = reason(err)
	}
	v.Total, v.Pages, v.Rows = found.Total, found.Pages, c.mailRows(ctx, s, found.Rows)
	here := []any{"project", f.Project, "q", f.Text, "status", f.Status, "to", f.To, "template", f.Template,
		"from", f.From}
	v.Link = pages("mail", append(here, "until", f.Until, "before", said("before"))...)
	if v.Older = found.SearchedTo; v.Older != "" {
		v.Older = link("/console/mail", append(here, "until", f.Until, "before", v.Older)...)
	}
	c.queue(r, s, &v)
	return c.render(w, r, s, http.StatusOK, "mail", title, v)
}

// mailRows adds the names of the projects, and says the states in words.
func (c *Console) mailRows(ctx context.Context, s *session, entries []client.MailEntry) (rows []mailRow) {
	names, now := c.projectNames(ctx, s), time.Now()
	for _, e := range entries {
		name := names(e.ProjectID)
		if name == "" {
			name = "project " + strconv.FormatInt(e.ProjectID, 10) + ", which is gone"
		}
		rows = append(rows, mailRow{e, name, say.StateOf(&e, now)})
	}
	return rows
}

// queue adds the state of the queue: on the page of all mail for a key that covers every project. What has stopped is told
// of the projects that the page is about and the key covers.
func (c *Console) queue(r *http.Request, s *session, v *mailView) {
	if c.o.Mail == nil || c.o.Edge { // the authority sends
		return
	}
	if s.Key().Everything && v.Project == nil {
		counts := c.o.Mail.Counts()
		v.Queue = &counts
	}
	for _, x := range c.o.Mail.Stopped() {
		if v.Project != nil && v.Project.ID != x.ProjectID || len(v.Stopped) >= pageRows {
			continue
		}
		p, err := c.api(s).ProjectByID(r.Context(), x.ProjectID)
		if err != nil {
			continue // not a project of this key
		}
		v.Stopped = append(v.Stopped, stoppedRow{x, p.Name, say.ReasonOf(string(x.Code))})
	}
}

// An entryView is a mail of the log.
type entryView struct {
	Project  *catalog.Project // nil: not known
	Mail     client.MailEntry
	State    say.State
	Steps    []say.Step
	Field    string               // of the SMTP config to change
	Template int64                // id of its template, 0 if there is none now
	Listed   []client.Suppression // what the suppression list of the project has of the address now
	Again    *againView
}

func (c *Console) mailEntry(w http.ResponseWriter, r *http.Request, s *session) error {
	v, err := c.entryOf(r, s, nil)
	if err != nil {
		return err
	}
	return c.render(w, r, s, http.StatusOK, "entry", "Mail to "+visible(v.Mail.ToEmail), v)
}

// entryOf reads the mail of a path. values are those for sending it again.
func (c *Console) entryOf(r *http.Request, s *session, values map[string]string) (*entryView, error) {
	api, id := c.api(s), idOf(r.PathValue("project"))
	e, err := api.MailLogEntry(r.Context(), id, idOf(r.PathValue("id")))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	v := &entryView{Mail: e, State: say.StateOf(&e, now), Steps: say.Steps(&e, now)}
	if v.State.Kind != "good" && e.ErrorCode != nil {
		v.Field = say.ReasonOf(*e.ErrorCode).Field
	}
	if p, err := api.ProjectByID(r.Context(), id); err == nil {
		v.Project = &p
		templates, _ := api.Templates(r.Context(), id)
		for _, t := range templates {
			if t.Code == say.Text(e.TemplateCode) && (v.Template == 0 || t.ProjectID != 0) {
				v.Template = t.ID
			}
		}
	}
	if v.Project != nil {
		if listed, err := api.Suppressions(r.Context(), id, query("address", e.ToEmail)); err == nil {
			v.Listed = listed.Rows
		}
	}
	v.Again = c.again(r.Context(), s, v, values)
	return v, nil
}
