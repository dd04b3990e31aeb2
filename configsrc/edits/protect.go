package edits

import (
	"fmt"
	"slices"
	"strings"

	"fingerpost/configsrc/hcledit"
	"fingerpost/configsrc/seal"
	"fingerpost/resolver/catalog"
)

// protectSecrets turns new secrets of the SMTP config, which a change passes in clear text, into their form in the file.
// An unchanged one is left alone. An expression written by a person stays, unless the edit asks to seal a value in its
// place: a different value, or none, is FIELD_IS_EXPRESSION there (configsrc/atomicfile/README.md, Refusals).
func (p *projectTarget) protectSecrets(w *attempt, have, want *catalog.ProjectConfig) error {
	if want.SMTP == nil {
		return nil
	}
	before := have.SMTP
	if before == nil {
		before = new(catalog.SMTPConfig)
	}
	old := before.Secrets()
	for i, f := range want.SMTP.Secrets() {
		if f.Same(old[i]) {
			continue
		}
		if err := p.protect(w, have, &f, *old[i].Value.(*catalog.Secret)); err != nil {
			return err
		}
	}
	return nil
}

// protect is protectSecrets for one field, which had another value.
func (p *projectTarget) protect(w *attempt, have *catalog.ProjectConfig, f *catalog.Field, old catalog.Secret) error {
	given := f.Value.(*catalog.Secret)
	context := seal.Context(have.Project.UUID, f.Attribute())
	switch given.Source {
	case catalog.SecretNone:
		if written(old) {
			return p.isExpression(w, have, f, old, "it cannot be removed")
		}
		return nil
	case catalog.SecretPlain:
	default:
		return fmt.Errorf("save a %s given by %v: impossible, the API gives clear text only", f.Attribute(), *given)
	}
	seals := written(old) && slices.Contains(p.edit.Seals, f.Name)
	if !seals && w.says(old, context, given.Ref) {
		*given = old
		return nil
	}
	if !seals && written(old) {
		return p.isExpression(w, have, f, old, fmt.Sprintf("another %s cannot be saved over it without %s",
			strings.ToLower(f.Label), catalog.SealField(f.Name)))
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
	sealing := w.Facts.Sealing()
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

func (p *projectTarget) isExpression(w *attempt, have *catalog.ProjectConfig, f *catalog.Field, old catalog.Secret,
	why string) error {
	pos, _ := p.draft.Place(hcledit.BlockPath{"project", have.Project.Slug, "smtp_config"}, f.Attribute())
	err := &catalog.Error{Code: catalog.CodeExpression,
		Message: fmt.Sprintf("%s:%d:%d: %s is given by %v: %s; change it there, or write a plain line in its place "+
			"first",
			w.path, pos.Line, pos.Column, f.Attribute(), old, why)}
	err.Problems.Addf(f.Name, "is an expression in the file")
	return err
}
