package console

import (
	"net/http"
	"strings"
	"time"

	"fingerpost/api/client"
	"fingerpost/api/console/form"
	"fingerpost/resolver/catalog"
)

// A keysView lists the keys.
type keysView struct {
	Rows        []keyRow
	Refused     *failure
	Permissions []form.Choice // with what each is for
}

func (c *Console) keys(w http.ResponseWriter, r *http.Request, s *session) error {
	v := keysView{Permissions: form.PermissionsOf(catalog.Permissions)}
	if keys, err := c.api(s).Keys(r.Context()); err != nil {
		v.Refused = failureOf(err)
	} else {
		v.Rows = keyRows(keys, s.Key(), time.Now())
	}
	return c.render(w, r, s, http.StatusOK, "keys", "Keys", v)
}

// keyAction prepares the rotation or the end of a key: both are drafts, like every change.
func (c *Console) keyAction(w http.ResponseWriter, r *http.Request, s *session) error {
	name := r.PathValue("name")
	d := &draft{kind: "key", Back: Prefix + "keys", Title: "Revoke key " + visible(name)}
	d.edit = client.Edit{Object: client.Object{Kind: catalog.KindKey, Key: strings.Clone(name)}, Verb: client.Delete}
	if r.PostFormValue("do") == "rotate" {
		d.Title = "Rotate key " + visible(name) + " (the old one stays good for 24 hours)"
		d.edit.Verb = client.Rotate
	}
	if err := c.prepare(r.Context(), s, d); err != nil {
		return err
	}
	return seeOther(w, r, d.page())
}
