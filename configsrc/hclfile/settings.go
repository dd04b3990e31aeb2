package hclfile

import (
	"fingerpost/resolver/catalog"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// minJWTSecret is the minimum for HS256: the size of its hash (RFC 7518, 3.2).
const minJWTSecret = 32

// serviceSettings reads a project's service_settings block.
func (d *projectDecoder) serviceSettings(block *hclsyntax.Block) {
	s := &d.config.Service
	var uuid string
	c := d.serviceBlock(block, serviceSchema, s, catalog.Field{Name: "uuid", Value: &uuid})
	s.UUID, s.ID = d.identify(c, catalog.KindServiceSettings, identity{uuid: uuid}, s.UUID, "")
	d.place(catalog.KindServiceSettings, "", d.config.Project.ID, block)
}

// authSettings reads a project's auth_settings block.
func (d *projectDecoder) authSettings(block *hclsyntax.Block) {
	a := &d.config.Auth
	var uuid string
	c := d.authBlock(block, authSchema, a, catalog.Field{Name: "uuid", Value: &uuid})
	a.UUID, a.ID = d.identify(c, catalog.KindAuthSettings, identity{uuid: uuid}, a.UUID, "")
	d.place(catalog.KindAuthSettings, "", d.config.Project.ID, block)
}

func (d *decoder) serviceBlock(block *hclsyntax.Block, schema *schema, s *catalog.ServiceSettings,
	more ...catalog.Field) *content {
	d.label(block, schema)
	fields := s.Fields()
	c := d.attributes(block, schema, append(fields, more...))
	s.Said = firstOf(c.said, len(fields))
	d.validated(c, s.Validate(), "")
	return c
}

func (d *decoder) authBlock(block *hclsyntax.Block, schema *schema, a *catalog.AuthSettings,
	more ...catalog.Field) *content {
	d.label(block, schema)
	fields := a.Fields()
	c := d.attributes(block, schema, append(fields, more...))
	a.Said = firstOf(c.said, len(fields))
	d.followMode(c, a)
	a.Said = together(fields, a.Said)
	d.validated(c, append(a.Validate(), a.Rules.Validate(d.o.Allow.KeySets)...), "")
	if s := a.Token.JWTSecret; s.Source == catalog.SecretPlain && len(s.Ref) < minJWTSecret {
		d.warn("", block.Body.Attributes["jwt_secret"].Expr.Range(), "jwt_secret: is shorter than 32 bytes",
			"whoever has one token can try out short secrets: use 32 random bytes")
	}
	return c
}

// followMode lets approval_required and invite_only follow a written registration_mode if they are not written
// themselves, as in a PUT of the API. They then count as written, and the defaults block does not override them.
func (d *decoder) followMode(c *content, a *catalog.AuthSettings) {
	if !c.says("registration_mode") {
		return
	}
	follow := func(attr string, to *bool, mode string) {
		if _, i := c.schema.attribute(attr); !c.wrote(i) {
			*to = a.RegistrationMode == mode
			a.Said = a.Said.With(i)
		}
	}
	follow("approval_required", &a.ApprovalRequired, catalog.RegistrationApprovalRequired)
	follow("invite_only", &a.InviteOnly, catalog.RegistrationInviteOnly)
}

// together adds the fields that go together with one of a set: a block that has one inherits none of the others.
func together(fields []catalog.Field, said catalog.FieldSet) catalog.FieldSet {
	groups := map[string]bool{}
	for i, f := range fields {
		groups[f.Together] = groups[f.Together] || said.Has(i)
	}
	for i, f := range fields {
		if f.Together != "" && groups[f.Together] {
			said = said.With(i)
		}
	}
	return said
}

// firstOf returns the first n fields of a set: a noun's own, without those that only files have.
func firstOf(said catalog.FieldSet, n int) catalog.FieldSet { return said & (1<<n - 1) }
