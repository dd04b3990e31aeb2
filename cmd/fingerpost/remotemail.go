package main

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"fingerpost/resolver/catalog"
)

// enoughMisses is after how many projects a mail API that never answered counts as none.
const enoughMisses = 16

func mailPath(project int64, rest string) string {
	return "/api/mail/projects/" + strconv.FormatInt(project, 10) + rest
}

// mailOf adds SMTP config and templates.
func (r *remote) mailOf(ctx context.Context, f *found) error {
	if r.mail == nil || !r.mailAnswers.Load() && r.mailMisses.Load() >= enoughMisses {
		return nil
	}
	id := f.Project.ID
	var rows []row
	_, err := r.mail.call(ctx, http.MethodGet, mailPath(id, "/templates"), nil, &rows)
	if absent(err) {
		r.mailMisses.Add(1)
		return nil
	}
	if err != nil {
		return err
	}
	r.mailAnswers.Store(true)
	f.mail = true
	for _, x := range rows {
		t, shared, err := r.template(ctx, f, x)
		switch {
		case err != nil:
			return err
		case shared:
			f.shared = append(f.shared, t)
		default:
			f.Templates = append(f.Templates, t)
		}
	}
	var x row
	_, err = r.mail.call(ctx, http.MethodGet, mailPath(id, "/smtp-config"), nil, &x)
	if absent(err) || err == nil && x == nil {
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
func (r *remote) template(ctx context.Context, f *found, x row) (t catalog.Template, shared bool, err error) {
	id := f.Project.ID
	t = catalog.Template{ID: x.number("id"), ProjectID: id, Active: true}
	path := mailPath(id, "/templates/"+strconv.FormatInt(t.ID, 10))
	_, html := x["bodyHtml"]
	if _, text := x["bodyText"]; !html && !text {
		var full row
		_, err := r.mail.call(ctx, http.MethodGet, path, nil, &full)
		switch {
		case absent(err): // the source specification has no such call
			f.untold[x.text("code")] = []string{"bodyHtml", "bodyText"}
		case err != nil:
			return t, false, err
		default:
			x = full
		}
	}
	if err := x.fill(append(t.Fields(), catalog.Field{Name: "code", Value: &t.Code}), templateFields); err != nil {
		return t, false, fmt.Errorf("GET %s: %w", path, err)
	}
	if _, told := x["maxAge"]; !told {
		f.untold[t.Code] = append(f.untold[t.Code], "maxAge")
	}
	plainMaxAge(&t)
	if shared = x.number("projectId") == 0; shared {
		t.ProjectID = 0
	}
	return t, shared, nil
}

// plainMaxAge leaves out what holds anyway.
func plainMaxAge(t *catalog.Template) {
	if t.MaxAge == catalog.DefaultMaxAge {
		t.MaxAge = ""
	}
}
