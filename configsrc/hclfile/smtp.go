package hclfile

import (
	"fingerpost/resolver/catalog"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// smtpConfig reads a project's smtp_config block.
func (d *projectDecoder) smtpConfig(block *hclsyntax.Block) {
	d.label(block, smtpSchema)
	smtp := &catalog.SMTPConfig{Active: true}
	var uuid string
	c := d.attributes(block, smtpSchema, append(smtp.Fields(), catalog.Field{Name: "uuid", Value: &uuid}))
	derived := catalog.DeriveUUID(catalog.KindSMTPConfig, d.config.Project.UUID)
	smtp.UUID, smtp.ID = d.identify(c, catalog.KindSMTPConfig, identity{uuid: uuid}, derived, "")
	d.validated(c, smtp.Validate(), "")
	if c.says("port") && smtp.Port == 0 { // to Validate it means the default
		d.errorf(block.Body.Attributes["port"].Expr.Range(), "port: must be from 1 to 65535", "leave the line out for 587, or 465 with ssl_enabled")
	}
	if c.says("ca_file") {
		if msg := checkPath(smtp.CAFile); msg != "" {
			d.errorf(block.Body.Attributes["ca_file"].Expr.Range(), "ca_file: "+msg, "it is the path of a PEM file below the config folder")
		} else {
			d.res.Deps = append(d.res.Deps, smtp.CAFile)
		}
	}
	d.noBlocks(block, smtpSchema)
	d.place(catalog.KindSMTPConfig, "", d.config.Project.ID, block)
	d.config.SMTP = smtp
}
