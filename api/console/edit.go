package console

import (
	"net/http"
	"strings"

	"fingerpost/api/client"
)

// editPage shows a form, empty or with what the API has.
func (c *Console) editPage(w http.ResponseWriter, r *http.Request, s *session) {
	q := r.URL.Query()
	f, err := c.formOf(r, s, q.Get("kind"), q.Get("project"), q.Get("id"))
	if err != nil {
		c.failed(w, r, s, err)
		return
	}
	if q.Get("delete") != "" && f.now != nil {
		f.Delete, f.Title = true, "Delete "+editable[f.Kind].title
	}
	if draft := s.draft(q.Get("draft")); draft != nil { // a person goes back from the diff
		f.fill(draft.sent)
		f.ETag = draft.edit.IfMatch
	}
	c.render(w, r, s, http.StatusOK, "edit", f.Title, f)
}

// edit takes a form: a dry run shows what it would change, which becomes a draft.
func (c *Console) edit(w http.ResponseWriter, r *http.Request, s *session) {
	f, err := c.formOf(r, s, r.PostFormValue("kind"), r.PostFormValue("project"), r.PostFormValue("id"))
	if err != nil {
		c.failed(w, r, s, err)
		return
	}
	etag := r.PostFormValue("etag")
	d := &draft{kind: f.Kind, id: f.ID, sent: r.PostForm, edit: f.edit(etag), Back: f.Back, Title: f.Title}
	if r.PostFormValue("delete") != "" {
		f.Delete = true
		d.Title, d.edit.Verb, d.edit.ID = "Delete "+editable[f.Kind].title, client.Delete, f.ID
	} else if f.fill(r.PostForm); !c.fits(w, r, s, f, d) {
		return
	}
	c.prepare(w, r, s, d, func(fail *failure) {
		switch {
		case fail.Status == http.StatusPreconditionFailed && d.edit.IfNew:
			c.refused(w, r, s, f, existsAlready)
		case fail.Status == http.StatusPreconditionFailed:
			c.conflict(w, r, s, f)
		default:
			c.refused(w, r, s, f, fail)
		}
	})
}

// fits puts what a person has changed into the draft's edit. If there is nothing to save it answers and reports false.
func (c *Console) fits(w http.ResponseWriter, r *http.Request, s *session, f *form, d *draft) bool {
	if etag := d.edit.IfMatch; etag != "" && f.ETag != "" && f.ETag != etag {
		c.conflict(w, r, s, f)
		return false
	}
	body, ok := f.body()
	switch {
	case !ok:
		c.render(w, r, s, http.StatusBadRequest, "edit", f.Title, f)
	case body == nil:
		s.say("Nothing was changed.")
		http.Redirect(w, r, f.Back, http.StatusSeeOther)
	default:
		d.edit.Fields = body
		return true
	}
	return false
}

// prepare makes a dry run of a draft's edit, and shows what it changes. refused answers where the API refuses it.
func (c *Console) prepare(w http.ResponseWriter, r *http.Request, s *session, d *draft, refused func(*failure)) {
	if name := s.Proposal(); name != "" && !d.Live() {
		d.Proposal, d.edit.Proposal = name, name
	}
	dry, err := c.api(s).Try(r.Context(), &d.edit)
	if err != nil {
		refused(failureOf(err))
		return
	}
	d.Diff, d.Problems = dry.Diff, dry.Problems
	s.addDraft(d)
	http.Redirect(w, r, Prefix+"drafts/"+d.ID, http.StatusSeeOther)
}

// refused shows a form again with what the API says about it.
func (c *Console) refused(w http.ResponseWriter, r *http.Request, s *session, f *form, fail *failure) {
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
	c.render(w, r, s, fail.Status, "edit", f.Title, f)
}

// conflict shows both versions of what has been changed meanwhile. f has what the person wanted.
func (c *Console) conflict(w http.ResponseWriter, r *http.Request, s *session, f *form) {
	fresh, err := c.formOf(r, s, f.Kind, text(f.Project), text(f.ID))
	if err != nil {
		c.failed(w, r, s, err)
		return
	}
	for i := range f.Fields {
		if f.Fields[i].Now = fresh.Fields[i].Text; f.Fields[i].Type == "password" {
			f.Fields[i].Now = f.Fields[i].Text
		}
	}
	f.ETag, f.Title = fresh.ETag, "Changed meanwhile"
	c.render(w, r, s, http.StatusConflict, "conflict", f.Title, f)
}
