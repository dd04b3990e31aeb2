package configsrc

import (
	"fmt"

	"fingerpost/configsrc/hcledit"
	"fingerpost/configsrc/seal"
	"fingerpost/resolver/catalog"
)

// protectPassword turns a new password, which a change passes in clear text, into its form in the file. An unchanged
// password is left alone. An expression written by a person stays, unless the edit asks to seal a password in its
// place: a different password, or none, is FIELD_IS_EXPRESSION there (configsrc/atomicfile/README.md, Refusals).
func (p *projectTarget) protectPassword(w *attempt, have, want *catalog.ProjectConfig) error {
	var old catalog.Secret
	if have.SMTP != nil {
		old = have.SMTP.Password
	}
	if want.SMTP == nil || want.SMTP.Password == old {
		return nil
	}
	given := &want.SMTP.Password
	context := seal.Context(have.Project.UUID, "password")
	switch given.Source {
	case catalog.SecretNone:
		if written(old) {
			return p.isExpression(w, have, old, "it cannot be removed")
		}
		return nil
	case catalog.SecretPlain:
	default:
		return fmt.Errorf("save a password given by %v: impossible, the API gives clear text only", *given)
	}
	seals := p.edit.Seals && written(old)
	if !seals && w.says(old, context, given.Ref) {
		*given = old
		return nil
	}
	if !seals && written(old) {
		return p.isExpression(w, have, old, "another password cannot be saved over it without sealPassword")
	}
	sealed, err := w.sealed(context, given.Ref)
	if err != nil {
		return err
	}
	*given = sealed
	return nil
}

// sealed returns a secret in clear text as the API writes it.
func (w *attempt) sealed(context, plain string) (catalog.Secret, error) {
	sealing := w.facts.Sealing()
	if sealing == nil || len(sealing.Recipients) == 0 {
		return catalog.Secret{}, &catalog.Error{Code: catalog.CodeSecretsMissing,
			Message: "secrets are written sealed only, and no sealing block names recipients; run \"fingerpost secrets " +
				"keygen\" in the config folder, which adds one"}
	}
	text, err := seal.Seal(sealing.Recipients, context, plain)
	return catalog.Secret{Source: catalog.SecretSealed, Ref: text}, err
}

// written reports whether a secret is a person's expression, which the API does not overwrite.
func written(s catalog.Secret) bool {
	return s.Source == catalog.SecretEnv || s.Source == catalog.SecretFile
}

// says reports whether a secret is known to open to plain.
func (w *attempt) says(secret catalog.Secret, context, plain string) bool {
	if secret.Source == catalog.SecretPlain {
		return secret.Ref == plain
	}
	if secret.Source == catalog.SecretNone || w.o.OpenSecret == nil {
		return false
	}
	now, err := w.o.OpenSecret(secret, context)
	return err == nil && now == plain
}

func (p *projectTarget) isExpression(w *attempt, have *catalog.ProjectConfig, old catalog.Secret, why string) error {
	pos, _ := p.draft.Place(hcledit.BlockPath{"project", have.Project.Slug, "smtp_config"}, "password")
	err := &catalog.Error{Code: catalog.CodeExpression,
		Message: fmt.Sprintf("%s:%d:%d: password is given by %v: %s; change it there, or write a plain line in its place "+
			"first",
			w.path, pos.Line, pos.Column, old, why)}
	err.Problems.Addf("password", "is an expression in the file")
	return err
}
