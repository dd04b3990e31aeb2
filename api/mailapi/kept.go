package mailapi

import (
	"fmt"

	"fingerpost/api/web"
	"fingerpost/mailer"
	"fingerpost/resolver/catalog"
)

var refuseKept = &catalog.Error{Code: catalog.CodeNotFound, Message: fmt.Sprintf("the text of this mail is not here: a "+
	"server has the texts of mail that it keeps instead of sending it (--mail-sink), of the last %d until it ends",
	mailer.MaxKept)}

// A keptMail is a mailer.Kept as the API answers it.
type keptMail struct {
	LogID     int64   `json:"logId"`
	ProjectID int64   `json:"projectId"`
	FromEmail string  `json:"fromEmail"`
	ToEmail   string  `json:"toEmail"`
	Subject   string  `json:"subject"`
	HTML      *string `json:"bodyHtml"` // null if the mail has none
	Text      string  `json:"bodyText"`
	Source    string  `json:"source"`
}

// getKept answers GET /projects/{projectId}/logs/{logId}/message: the text of a mail that was kept instead of being
// sent.
func (a *API) getKept(r *web.Request) error {
	entry, err := a.logged(r)
	if err != nil {
		return err
	}
	if a.Mail == nil {
		return refuseKept
	}
	kept, found := a.Mail.Kept(&entry)
	if !found {
		return refuseKept
	}
	shown := keptMail{LogID: entry.ID, ProjectID: entry.ProjectID, FromEmail: kept.From, ToEmail: kept.To,
		Subject: kept.Subject, Text: kept.BodyText, Source: kept.Source}
	if kept.BodyHTML != "" {
		shown.HTML = &kept.BodyHTML
	}
	return r.SucceedJSON("kept mail found", shown)
}
