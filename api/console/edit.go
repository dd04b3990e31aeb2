package console

import (
	"context"
	"net/http"
	"strings"

	"fingerpost/api/client"
	"fingerpost/api/console/form"
)

// editPage shows a form, empty or with what the API has.
func (c *Console) editPage(w http.ResponseWriter, r *http.Request, s *session) error {
	q := r.URL.Query()
	f, err := c.formOf(r, s, q.Get("kind"), q.Get("project"), q.Get("id"))
	if err != nil {
		return err
	}
	if q.Get("delete") != "" && f.Exists() {
		f.Delete, f.Title = true, "Delete "+form.Title(f.Kind)
	}
	if draft := c.holder(s, q.Get("draft")).draft(q.Get("draft")); draft != nil { // a person goes back from the diff
		f.Fill(draft.sent)
		f.ETag = draft.edit.IfMatch
	}
	if name := f.Field("name"); name != nil && name.Suggests != "" && q.Has("name") { // the person is typing it
		name.Text, f.Field(name.Suggests).Text = q.Get("name"), q.Get(name.Suggests)
	}
	f.SuggestSlug(q.Get("suggested"))
	return c.render(w, r, s, http.StatusOK, "edit", f.Title, f)
}

// edit takes a form: a dry run shows what it would change, which becomes a draft.
func (c *Console) edit(w http.ResponseWriter, r *http.Request, s *session) error {
	f, err := c.formOf(r, s, r.PostFormValue("kind"), r.PostFormValue("project"), r.PostFormValue("id"))
	if err != nil {
		return err
	}
	d := &draft{kind: f.Kind, id: f.At(), sent: r.PostForm, edit: f.Edit(r.PostFormValue("etag")), Back: f.Back,
		Title: f.Title}
	if r.PostFormValue("delete") != "" {
		f.Delete = true
		d.Title, d.edit.Verb, d.edit.ID = "Delete "+form.Title(f.Kind), client.Delete, f.ID
	} else {
		f.Fill(r.PostForm)
		f.SuggestSlug("")
		if etag := d.edit.IfMatch; etag != "" && f.ETag != "" && f.ETag != etag {
			return c.conflict(w, r, s, f, r.PostForm)
		}
		var ok bool
		if d.edit.Fields, ok = f.Body(); !ok {
			return c.render(w, r, s, http.StatusBadRequest, "edit", f.Title, f)
		}
		if d.edit.Fields == nil {
			s.say("Nothing was changed.")
			return seeOther(w, r, f.Back)
		}
	}
	switch err := c.prepare(r.Context(), s, d); {
	case err == nil:
		return seeOther(w, r, d.page())
	case client.Status(err, http.StatusPreconditionFailed) && d.edit.IfNew:
		return c.refused(w, r, s, f, existsAlready)
	case client.Status(err, http.StatusPreconditionFailed):
		return c.conflict(w, r, s, f, r.PostForm)
	default:
		return c.refused(w, r, s, f, failureOf(err))
	}
}

// prepare makes a dry run of a draft's edit, and keeps the draft with what it changes.
func (c *Console) prepare(ctx context.Context, s *session, d *draft) error {
	if name := s.Proposal(); name != "" && !d.Live() {
		d.Proposal, d.edit.Proposal = name, name
	}
	dry, err := c.api(s).Try(ctx, &d.edit)
	if err == nil {
		d.Diff, d.Problems, d.Made = dry.Diff, dry.Problems, c.o.Now()
		c.addDraft(s, d)
	}
	return err
}

// refused shows a form again with what the API says about it.
func (c *Console) refused(w http.ResponseWriter, r *http.Request, s *session, f *form.Form, fail *failure) error {
	var rest []client.Detail
details:
	for _, d := range fail.Details {
		for i := range f.Fields {
			if name, _, _ := strings.Cut(d.Field, "["); name == f.Fields[i].Name || strings.HasPrefix(d.Field,
				f.Fields[i].Name+".") {
				f.Fields[i].Error = d.Message
				continue details
			}
		}
		rest = append(rest, d)
	}
	f.Note = reason(&failure{Message: fail.Message, Details: rest})
	return c.render(w, r, s, fail.Status, "edit", f.Title, f)
}
