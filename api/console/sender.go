package console

import (
	"net/http"
	"strings"

	"fingerpost/mailer/sender"
	"fingerpost/resolver/catalog"
)

// A senderView is the check of a project's sender, or of the headers of a received mail.
type senderView struct {
	Project catalog.Project
	May     bool // the key may have it checked
	Address string
	Result  *catalog.SenderResult // nil: it was not checked now
	Headers string
	Read    *catalog.SenderHeaders // nil: no headers were given
	Failed  *failure
}

// senderOf finds the project that a path names.
func (c *Console) senderOf(r *http.Request, s *session) (v senderView, err error) {
	ctx, api := r.Context(), c.client(s, "") // checks are about what is live
	id, _, err := projectID(ctx, api, r.PathValue("id"))
	if err != nil {
		return v, err
	}
	v.Project, err = api.ProjectByID(ctx, id)
	v.May = s.Key().May(catalog.MayWrite) || s.Key().May(catalog.MayMail)
	return v, err
}

func (c *Console) senderPage(w http.ResponseWriter, r *http.Request, s *session) error {
	v, err := c.senderOf(r, s)
	if err != nil {
		return err
	}
	return c.render(w, r, s, http.StatusOK, "sender", "Sender of "+v.Project.Name, v)
}

// checkSender has the sender checked, or reads the headers of a mail, which goes nowhere.
func (c *Console) checkSender(w http.ResponseWriter, r *http.Request, s *session) error {
	v, err := c.senderOf(r, s)
	if err != nil {
		return err
	}
	if v.Headers = strings.TrimSpace(r.PostFormValue("headers")); v.Headers != "" {
		read := sender.ReadReceived(v.Headers)
		v.Read = &read
		return c.render(w, r, s, http.StatusOK, "sender", "Sender of "+v.Project.Name, v)
	}
	v.Address = strings.TrimSpace(r.PostFormValue("address"))
	if result, err := c.client(s, "").CheckSender(r.Context(), v.Project.ID, v.Address); err != nil {
		v.Failed = failureOf(err)
	} else {
		v.Result = &result
	}
	return c.render(w, r, s, http.StatusOK, "sender", "Sender of "+v.Project.Name, v)
}

// kindOfLevel gives a level of a check its colour.
func kindOfLevel(level string) string {
	return map[string]string{sender.OK: "good", sender.Warning: "warn", sender.Error: "bad"}[level]
}
