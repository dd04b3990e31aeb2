package console

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"fingerpost/api/client"
	"fingerpost/api/console/form"
	"fingerpost/api/console/say"
)

// A conflictView is a form whose object somebody else has saved since the form was shown.
type conflictView struct {
	*form.Form
	Clashes []clash
	Others  []saved // fields that only others have changed
	Last    *told   // the newest change of the object; nil: not known
}

// A clash is a field with two values.
type clash struct {
	form.Clash
	By saved // who has saved theirs
}

// A saved field says who has saved it and when; Who is "" where the audit trail does not know.
type saved struct {
	Label, Who string
	Time       time.Time
}

// conflict shows the fields that differ between what a person has sent and what somebody else has saved meanwhile.
func (c *Console) conflict(w http.ResponseWriter, r *http.Request, s *session, f *form.Form, sent url.Values) error {
	fresh, err := c.formOf(r, s, f.Kind, say.Text(f.Project), say.Text(f.ID))
	if err != nil {
		return err
	}
	differ, others := fresh.Clashes(sent)
	if len(differ) == 0 { // untouched, or the file has the same by now
		s.say("Nothing was changed.")
		return seeOther(w, r, fresh.Back)
	}
	fresh.Title = "Changed meanwhile"
	v := conflictView{Form: fresh}
	history := c.savesOf(r.Context(), s, fresh)
	if len(history) > 0 {
		v.Last = &c.tell(r.Context(), s, history[:1])[0]
	}
	for _, d := range differ {
		x := clash{Clash: d}
		if d.Both {
			x.By = savedBy(history, &d.Field)
		}
		v.Clashes = append(v.Clashes, x)
	}
	for i := range others {
		v.Others = append(v.Others, savedBy(history, &others[i]))
	}
	return c.render(w, r, s, http.StatusConflict, "conflict", fresh.Title, v)
}

// Rest lists the fields that do not differ.
func (v conflictView) Rest() (rest []form.Field) {
	differs := map[string]bool{}
	for i := range v.Clashes {
		differs[v.Clashes[i].Name] = true
	}
	for i := range v.Fields {
		if x := v.Fields[i]; !differs[x.Name] {
			rest = append(rest, x)
		}
	}
	return rest
}

// maxSaves is how many of a project's changes are searched for those of a form's object.
const maxSaves = 50

// savesOf lists the changes of what a form edits, the newest first. A proposal's branch has no audit trail.
func (c *Console) savesOf(ctx context.Context, s *session, f *form.Form) (list []client.AuditEntry) {
	if s.Proposal() != "" {
		return nil
	}
	page, err := c.api(s).AuditPage(ctx, query("projectId", f.Project, "limit", itoa(maxSaves)))
	if err != nil {
		return nil // the page is complete without it
	}
	for _, e := range page.Rows {
		noun, _, _ := strings.Cut(e.Action, ".")
		if object := f.Called(); noun == f.Kind && (object == "" || object == say.Text(e.Object)) {
			list = append(list, e)
		}
	}
	return list
}

// savedBy says who has saved a field last.
func savedBy(history []client.AuditEntry, x *form.Field) saved {
	by := saved{Label: x.Label}
	for i := range history {
		for _, change := range history[i].Changes {
			if change.Field == x.Name {
				by.Who, by.Time = say.Who(&history[i]), moment(history[i].Time)
				return by
			}
		}
	}
	return by
}
