package transfer

import (
	"fmt"
	"slices"

	"fingerpost/configsrc/hcledit"
	"fingerpost/resolver/catalog"
)

// OpenPasswords opens the secrets of SMTP configs that are to be sent, by open. One that cannot be opened is a problem if
// the mail API exists to take it; if that is not known yet, the step itself fails.
func (e *Export) OpenPasswords(open func(p *catalog.ProjectConfig, secret *catalog.Field) (string, error)) {
	for _, j := range e.jobs {
		for _, f := range e.neededSecrets(j) {
			text, err := open(j.want, &f)
			if err == nil {
				e.remote.Hide(text)
				j.secrets[f.Name] = text
				continue
			}
			j.sealed = fmt.Errorf("the %s of smtp_config of project %s cannot be opened: %w (--passwords none sends the "+
				"rest without)", f.Attribute(), hcledit.Quote(j.slug()), err)
			if e.remote.MailAnswers() {
				e.out.Problems = append(e.out.Problems, j.sealed.Error())
			}
		}
	}
}

// neededSecrets lists the secrets of the project's SMTP config that are sent with it: those of a config that is new, or
// whose destination changes, or all.
func (e *Export) neededSecrets(j *job) []catalog.Field {
	if !e.remote.MailAsked() || j.want == nil || j.want.SMTP == nil || j.found != nil && !j.found.Mail ||
		e.options.Passwords == NoPasswords {
		return nil
	}
	return slices.DeleteFunc(j.want.SMTP.Secrets(), func(secret catalog.Field) bool {
		if secret.Value.(*catalog.Secret).Source == catalog.SecretNone {
			return true
		}
		return e.options.Passwords != AllPasswords && !slices.ContainsFunc(j.changes, func(c Change) bool {
			return c.Kind == catalog.KindSMTPConfig && (c.Action == Added || c.moves(&secret))
		})
	})
}

// moves reports whether a change is one of a field that a secret is bound to.
func (c *Change) moves(secret *catalog.Field) bool {
	return slices.ContainsFunc(secret.BoundTo, func(name string) bool {
		return slices.ContainsFunc(c.Fields, func(f FieldChange) bool { return f.Field == catalog.Snake(name) })
	})
}
