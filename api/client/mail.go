package client

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"fingerpost/resolver/catalog"
)

// enoughMisses is after how many projects without an answer the mail API counts as absent.
const enoughMisses = 16

func mailPath(project int64, rest string) string {
	return "/api/mail/projects/" + strconv.FormatInt(project, 10) + rest
}

// Templates lists the templates that a project can send, without their bodies: its own, and the default ones, whose
// ProjectID is 0.
func (c *Client) Templates(ctx context.Context, project int64) ([]catalog.Template, error) {
	var rows []row
	if _, err := c.mail.view(ctx, mailPath(project, "/templates"), &rows); err != nil {
		return nil, err
	}
	return eachRow(rows, row.template)
}

// Template reads one template that a project can send.
func (c *Client) Template(ctx context.Context, project, id int64) (catalog.Template, error) {
	var x row
	if _, err := c.mail.view(ctx, templatePath(project, id), &x); err != nil {
		return catalog.Template{}, err
	}
	return x.template()
}

func templatePath(project, id int64) string {
	return mailPath(project, "/templates/"+strconv.FormatInt(id, 10))
}

// template reads a template. A default one has no project.
func (r row) template() (catalog.Template, error) {
	t := catalog.Template{ID: r.number("id"), ProjectID: r.number("projectId"), Active: true}
	return t, r.fill(t.AllFields(), templateFields)
}

// mailOf adds SMTP config and templates.
func (c *Client) mailOf(ctx context.Context, f *Project) error {
	if c.mail == nil || !c.mailAnswers.Load() && c.mailMisses.Load() >= enoughMisses {
		return nil
	}
	id := f.Project.ID
	var rows []row
	_, err := c.mail.call(ctx, http.MethodGet, mailPath(id, "/templates"), nil, &rows)
	if Absent(err) {
		c.mailMisses.Add(1)
		return nil
	}
	if err != nil {
		return err
	}
	c.mailAnswers.Store(true)
	f.Mail = true
	for _, x := range rows {
		t, shared, err := c.template(ctx, f, x)
		switch {
		case err != nil:
			return err
		case shared:
			f.Shared = append(f.Shared, t)
		default:
			f.Templates = append(f.Templates, t)
		}
	}
	var x row
	_, err = c.mail.call(ctx, http.MethodGet, mailPath(id, "/smtp-config"), nil, &x)
	if Absent(err) || err == nil && x == nil {
		return nil
	}
	if err != nil {
		return err
	}
	f.SMTP = &catalog.SMTPConfig{Active: true}
	if err := x.fill(f.SMTP.Fields(), smtpFields); err != nil {
		return fmt.Errorf("GET %s: %w", mailPath(id, "/smtp-config"), err)
	}
	f.SMTP.Port = f.SMTP.EffectivePort()
	return nil
}

// template reads one template of a list, which comes without its bodies.
func (c *Client) template(ctx context.Context, f *Project, x row) (t catalog.Template, shared bool, err error) {
	id := f.Project.ID
	t = catalog.Template{ID: x.number("id"), ProjectID: id, Active: true}
	path := templatePath(id, t.ID)
	_, html := x["bodyHtml"]
	if _, text := x["bodyText"]; !html && !text {
		var full row
		_, err := c.mail.call(ctx, http.MethodGet, path, nil, &full)
		switch {
		case Absent(err): // a service may have no such call
			f.Untold[x.text("code")] = []string{"bodyHtml", "bodyText", "locales"}
		case err != nil:
			return t, false, err
		default:
			x = full
		}
	}
	if err := x.fill(t.AllFields(), templateFields); err != nil {
		return t, false, fmt.Errorf("GET %s: %w", path, err)
	}
	if _, told := x["maxAge"]; !told { // another service with the API
		f.Untold[t.Code] = append(f.Untold[t.Code], "maxAge", "locales")
	}
	if t.MaxAge == catalog.DefaultMaxAge {
		t.MaxAge = ""
	}
	if shared = x.number("projectId") == 0; shared {
		t.ProjectID = 0
	}
	return t, shared, nil
}
