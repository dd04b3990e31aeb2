package seal

import (
	"fmt"
	"iter"

	"fingerpost/resolver/catalog"
)

// A Field is an attribute of a project's block that can be sealed.
type Field struct {
	Block, Attr string
	of          func(p *catalog.ProjectConfig) catalog.Secret
}

// Fields are all attributes of projects that can be sealed.
var Fields = []Field{
	{"auth_settings", "jwt_secret", func(p *catalog.ProjectConfig) catalog.Secret { return p.Auth.Token.JWTSecret }},
	{"smtp_config", "password", ofSMTP(func(c *catalog.SMTPConfig) catalog.Secret { return c.Password })},
	{"smtp_config", "oauth_client_secret", ofSMTP(func(c *catalog.SMTPConfig) catalog.Secret { return c.OAuth.Secret })},
}

// Attributes lists the attributes of Fields.
func Attributes() (names []string) {
	for _, f := range Fields {
		names = append(names, f.Attr)
	}
	return names
}

func ofSMTP(of func(c *catalog.SMTPConfig) catalog.Secret) func(p *catalog.ProjectConfig) catalog.Secret {
	return func(p *catalog.ProjectConfig) catalog.Secret {
		if p.SMTP == nil {
			return catalog.Secret{}
		}
		return of(p.SMTP)
	}
}

// RelayContext is the context of a secret of the SMTP config in the defaults block, by its attribute.
func RelayContext(attr string) string {
	return new(catalog.SMTPConfig).SecretContext(catalog.UUID{}, attr)
}

// A Value is a sealed value in a file.
type Value struct {
	Owner         string // in messages
	Attr, Context string
	Text          string
}

// Values yields the sealed values of a file.
func Values(d *catalog.Declared) iter.Seq[Value] {
	return func(yield func(Value) bool) {
		if d.Defaults != nil && d.Defaults.SMTP != nil {
			for _, f := range d.Defaults.SMTP.Secrets() {
				secret, attr := f.Value.(*catalog.Secret), f.Attribute()
				if secret.Source == catalog.SecretSealed &&
					!yield(Value{"the defaults block", attr, RelayContext(attr), secret.Ref}) {
					return
				}
			}
		}
		for i := range d.Webhooks {
			w := &d.Webhooks[i]
			for _, s := range w.Secrets {
				if s.Source == catalog.SecretSealed &&
					!yield(Value{fmt.Sprintf("webhook %q", w.Name), "secret", w.SecretContext(), s.Ref}) {
					return
				}
			}
		}
		for i := range d.Logins {
			l := &d.Logins[i]
			if l.ClientSecret.Source == catalog.SecretSealed &&
				!yield(Value{fmt.Sprintf("login %q", l.Name), "client_secret", l.SecretContext(), l.ClientSecret.Ref}) {
				return
			}
		}
		for i := range d.Inbounds {
			b := &d.Inbounds[i]
			for _, s := range b.Secrets {
				if s.Source == catalog.SecretSealed &&
					!yield(Value{fmt.Sprintf("inbound %q", b.Name), "secret", b.SecretContext(), s.Ref}) {
					return
				}
			}
		}
		for i := range d.Projects {
			p := &d.Projects[i]
			for _, field := range Fields {
				secret, slug := field.of(p), p.Project.Slug
				if secret.Source == catalog.SecretSealed && !yield(Value{fmt.Sprintf("project %q", slug), field.Attr,
					Context(p.Project.UUID, field.Attr), secret.Ref}) {
					return
				}
			}
		}
	}
}
