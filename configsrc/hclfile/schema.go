package hclfile

import (
	"slices"

	"fingerpost/resolver/catalog"
)

// A schema lists what a block may contain. Attributes are the noun's Fields, in their order and in snake_case, followed
// by those that only files have (uuid, id).
type schema struct {
	typ    string   // the block's name
	label  string   // what its one label is; "" for a block without a label
	sample string   // how a correct one begins
	attrs  []string // a Field's index is its name's index here
	blocks []string // nested
}

func newSchema(typ, label, sample string, fields []catalog.Field, more ...string) *schema {
	s := &schema{typ: typ, label: label, sample: sample}
	for _, f := range attributesOf(fields) {
		s.attrs = append(s.attrs, catalog.Snake(f.Name))
	}
	s.attrs = append(s.attrs, more...)
	return s
}

// attributesOf returns the fields that attributes hold.
func attributesOf(fields []catalog.Field) []catalog.Field {
	return slices.DeleteFunc(fields, func(f catalog.Field) bool { return f.Block != "" })
}

// The blocks of the language. They are immutable.
var (
	fileSchema = &schema{blocks: []string{"project", "template", "defaults", "key", "edge", "webhook", "login", "inbound",
		"sealing"}}

	projectSchema = newSchema("project", "its slug", `project "acme" {`, new(catalog.Project).Fields(), "uuid", "id").
			holds("domain", "service_settings", "auth_settings", "smtp_config", "template")
	domainSchema = newSchema("domain", "the host name", `domain "shop.acme.example" {`, new(catalog.Domain).Fields(),
		"uuid", "id")
	serviceSchema  = newSchema("service_settings", "", "service_settings {", new(catalog.ServiceSettings).Fields(), "uuid")
	authSchema     = newSchema("auth_settings", "", "auth_settings {", new(catalog.AuthSettings).Fields(), "uuid")
	smtpSchema     = newSchema("smtp_config", "", "smtp_config {", new(catalog.SMTPConfig).Fields(), "uuid")
	templateSchema = newSchema("template", "its code", `template "WELCOME" {`, new(catalog.Template).Fields(), "uuid",
		"id").holds("locale")
	localeSchema   = newSchema("locale", "its language", `locale "de" {`, new(catalog.Locale).Fields())
	defaultsSchema = newSchema("defaults", "", "defaults {", nil).holds("service_settings", "auth_settings", "smtp_config",
		"verification")
	keySchema = newSchema("key", "its name", `key "checkout" {`, nil, "id", "hash", "allow", "owner", "projects",
		"expires_at")
	edgeSchema    = newSchema("edge", "its name", `edge "fra1" {`, nil, "public_key")
	webhookSchema = newSchema("webhook", "its name", `webhook "crm" {`, nil, "url", "secret", "events", "projects",
		"active")
	loginSchema = newSchema("login", "its name", `login "company" {`, nil, "issuer", "client_id", "client_secret", "scopes",
		"label", "ca_file").holds("rule")
	inboundSchema = newSchema("inbound", "its name", `inbound "ses" {`, nil, "format", "secret", "projects")
	ruleSchema    = newSchema("rule", "", "rule {", nil, "claim", "value", "allow", "projects")
	sealingSchema = newSchema("sealing", "", "sealing {", nil, "recipients", "require")

	verificationSchema = newSchema("verification", "", "verification {", new(catalog.Verification).AllFields())

	// What is in the defaults block has no identity.
	defaultServiceSchema = newSchema("service_settings", "", "service_settings {", new(catalog.ServiceSettings).Fields())
	defaultAuthSchema    = newSchema("auth_settings", "", "auth_settings {", new(catalog.AuthSettings).Fields())
	defaultSMTPSchema    = newSchema("smtp_config", "", "smtp_config {", new(catalog.SMTPConfig).Fields())

	schemas = []*schema{projectSchema, domainSchema, serviceSchema, authSchema, smtpSchema, templateSchema, localeSchema,
		defaultsSchema, keySchema, edgeSchema, webhookSchema, loginSchema, inboundSchema, ruleSchema, sealingSchema,
		verificationSchema}

	allAttributes = func() (all []string) {
		for _, s := range schemas {
			all = append(all, s.attrs...)
		}
		return all
	}()
)

func (s *schema) holds(blocks ...string) *schema {
	s.blocks = blocks
	return s
}

// HasLabel reports whether blocks of a type have a label.
func HasLabel(typ string) bool {
	s := schemaOf(typ)
	return s != nil && s.label != ""
}

// schemaOf returns a block type's schema wherever the type is allowed, nil for an unknown one.
func schemaOf(typ string) *schema {
	for _, s := range schemas {
		if s.typ == typ {
			return s
		}
	}
	return nil
}

// parents lists the blocks that may contain a block type, in prose.
func parents(typ string) string {
	words := ""
	add := func(s string) {
		if words != "" {
			words += " or "
		}
		words += s
	}
	if slices.Contains(fileSchema.blocks, typ) {
		add("outside all other blocks")
	}
	for _, s := range schemas {
		if slices.Contains(s.blocks, typ) {
			add("inside a " + s.typ + " block")
		}
	}
	return words
}

// owners lists the blocks that have an attribute of this name.
func owners(attr string) string {
	words := ""
	for _, s := range schemas {
		if slices.Contains(s.attrs, attr) {
			if words != "" {
				words += " or "
			}
			words += s.typ
		}
	}
	return words
}

// attribute maps the API's field name in a Problem to the name and index here; the index is -1 if the schema has no
// such attribute.
func (s *schema) attribute(field string) (name string, index int) {
	name = catalog.Snake(field)
	return name, slices.Index(s.attrs, name)
}
