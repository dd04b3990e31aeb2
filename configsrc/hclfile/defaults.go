package hclfile

import (
	"fingerpost/resolver/catalog"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// defaults reads the defaults block: values for what projects do not set.
func (d *decoder) defaults(block *hclsyntax.Block) {
	d.label(block, defaultsSchema)
	d.once(claim{"defaults", ""}, header(block), "there is one defaults block only", "put both together")
	d.attributes(block, defaultsSchema, nil)
	d.place(catalog.KindDefaults, "", 0, block)
	var out catalog.Defaults
	seen := map[string]hcl.Range{}
	for _, b := range block.Body.Blocks {
		if b.Body == nil {
			continue
		}
		if first, taken := seen[b.Type]; taken {
			d.errorf(header(b), "the defaults block has one "+b.Type+" block only", "the first is at %s; put both together",
				d.at(first))
		}
		switch b.Type {
		case "service_settings":
			s := catalog.NewServiceSettings()
			d.serviceBlock(b, defaultServiceSchema, &s)
			out.Service = &s
		case "auth_settings":
			a := catalog.NewAuthSettings()
			d.authBlock(b, defaultAuthSchema, &a)
			out.Auth = &a
		case "smtp_config":
			out.SMTP = d.relay(b)
		case "verification":
			out.Verification = d.verification(b)
		default:
			d.unknownBlock(b, defaultsSchema)
			continue
		}
		seen[b.Type] = header(b)
		d.place(catalog.Kind(b.Type), "", 0, b)
	}
	d.res.Declared.Defaults = &out
}
