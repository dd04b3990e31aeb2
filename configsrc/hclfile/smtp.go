package hclfile

import (
	"slices"

	"fingerpost/resolver/catalog"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// smtpConfig reads a project's smtp_config block.
func (d *projectDecoder) smtpConfig(block *hclsyntax.Block) {
	smtp := &catalog.SMTPConfig{Active: true}
	var uuid string
	c := d.smtpBlock(block, smtpSchema, smtp, catalog.Field{Name: "uuid", Value: &uuid})
	derived := catalog.DeriveUUID(catalog.KindSMTPConfig, d.config.Project.UUID)
	smtp.UUID, smtp.ID = d.identify(c, catalog.KindSMTPConfig, identity{uuid: uuid}, derived, "")
	if c.senderAlone() {
		d.validated(c, smtp.ValidateSender(), "")
	} else {
		d.validated(c, smtp.Validate(), "")
	}
	d.place(catalog.KindSMTPConfig, "", d.config.Project.ID, block)
	d.config.SMTP = smtp
}

// relay reads the smtp_config block of the defaults block.
func (d *decoder) relay(block *hclsyntax.Block) *catalog.SMTPConfig {
	smtp := &catalog.SMTPConfig{Active: true}
	c := d.smtpBlock(block, defaultSMTPSchema, smtp)
	d.validated(c, smtp.ValidateRelay(), "")
	return smtp
}

// smtpBlock reads the attributes, and checks what Validate cannot see.
func (d *decoder) smtpBlock(block *hclsyntax.Block, schema *schema, smtp *catalog.SMTPConfig,
	more ...catalog.Field) *content {
	d.label(block, schema)
	c := d.attributes(block, schema, append(smtp.Fields(), more...))
	if c.says("port") && smtp.Port == 0 { // to Validate it means the default
		d.errorf(block.Body.Attributes["port"].Expr.Range(), "port: must be from 1 to 65535",
			"leave the line out for 587, or 465 with ssl_enabled")
	}
	if c.says("ca_file") {
		if msg := checkPath(smtp.CAFile); msg != "" {
			d.errorf(block.Body.Attributes["ca_file"].Expr.Range(), "ca_file: "+msg,
				"it is the path of a PEM file below the config folder")
		} else {
			d.res.Deps = append(d.res.Deps, smtp.CAFile)
		}
	}
	return c
}

// senderAttributes are what an smtp_config block without a host may say; all others describe the server.
var senderAttributes = []string{"from_email", "from_name", "reply_to", "dkim_selectors", "active"}

// senderAlone reports whether an smtp_config block names a sender, and nothing of a server. A block that says nothing
// at all counts as one that lacks its host.
func (c *content) senderAlone() bool {
	var sender, server bool
	for i, name := range c.schema.attrs {
		switch {
		case !c.wrote(i) || name == "uuid":
		case slices.Contains(senderAttributes, name):
			sender = true
		default:
			server = true
		}
	}
	return sender && !server
}
