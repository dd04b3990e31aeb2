package transfer

import (
	"fmt"
	"slices"

	"fingerpost/configsrc/hcledit"
	"fingerpost/resolver/catalog"
)

// OpenPasswords opens the SMTP passwords to be sent, by open. A password that cannot be opened is a problem if the mail
// API exists to take it; if that is not known yet, the step itself fails.
func (e *Export) OpenPasswords(open func(p *catalog.ProjectConfig) (string, error)) {
	for _, j := range e.jobs {
		if !e.needsPassword(j) {
			continue
		}
		j.password, j.sealed = open(j.want)
		if j.sealed == nil {
			e.remote.Hide(j.password)
			continue
		}
		j.sealed = fmt.Errorf("the password of smtp_config of project %s cannot be opened: %w (--passwords none sends the "+
			"rest without)",
			hcledit.Quote(j.slug()), j.sealed)
		if e.remote.MailAnswers() {
			e.out.Problems = append(e.out.Problems, j.sealed.Error())
		}
	}
}

// destination lists the fields that a stored password is bound to.
var destination = []string{"host", "port", "username", "ssl_enabled", "tls_enabled"}

func (e *Export) needsPassword(j *job) bool {
	if !e.remote.MailAsked() || j.want == nil || j.want.SMTP == nil || j.want.SMTP.Password.Source == catalog.SecretNone ||
		j.found != nil && !j.found.Mail || e.options.Passwords == NoPasswords {
		return false
	}
	if e.options.Passwords == AllPasswords {
		return true
	}
	return slices.ContainsFunc(j.changes, func(c Change) bool {
		return c.Kind == catalog.KindSMTPConfig && (c.Action == Added ||
			slices.ContainsFunc(c.Fields, func(f FieldChange) bool { return slices.Contains(destination, f.Field) }))
	})
}
