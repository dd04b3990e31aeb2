package console

import (
	"net/http"
	"strings"

	"fingerpost/api/client"
	"fingerpost/resolver/catalog"
)

// A keptView is a mail that was kept instead of being sent.
type keptView struct {
	Project, ID int64
	Mail        client.KeptMail
	Frame       string // of the HTML
}

// keptMail shows the text of a mail that was kept.
func (c *Console) keptMail(w http.ResponseWriter, r *http.Request, s *session) error {
	v := keptView{Project: idOf(r.PathValue("project")), ID: idOf(r.PathValue("id"))}
	var err error
	if v.Mail, err = c.api(s).KeptMail(r.Context(), v.Project, v.ID); err != nil {
		return err
	}
	v.Mail.Source = strings.ReplaceAll(v.Mail.Source, "\r\n", "\n")
	if v.Mail.BodyHTML != "" {
		v.Frame = c.sessions.keepForm(s, "", 0, &frame{project: v.Project, entry: v.ID})
	}
	return c.render(w, r, s, http.StatusOK, "kept", "Mail to "+visible(v.Mail.ToEmail), v)
}

// Kept reports whether the mail was kept instead of being sent.
func (v entryView) Kept() bool { return v.Mail.ProviderType == catalog.ProviderSink }
