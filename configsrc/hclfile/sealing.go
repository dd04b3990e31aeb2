package hclfile

import (
	"regexp"

	"fingerpost/resolver/catalog"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// recipient is the form of an age X25519 recipient: bech32, 62 characters. Its checksum is seal's to check.
var recipient = regexp.MustCompile(`^age1[02-9ac-hj-np-z]{58}$`)

// sealing reads the sealing block.
func (d *decoder) sealing(block *hclsyntax.Block) {
	d.label(block, sealingSchema)
	d.once(claim{"sealing", ""}, header(block), "there is one sealing block only", "put both together")
	var out catalog.Sealing
	var recipients list
	d.attributes(block, sealingSchema, []catalog.Field{{Name: "recipients", Value: &recipients}, {Name: "require",
		Value: &out.Require}})
	for i, r := range recipients.values {
		if !recipient.MatchString(r) {
			d.errorf(recipients.ranges[i], "recipients: this is no age X25519 recipient",
				`it begins with "age1" and has 62 characters, as "fingerpost secrets keygen" prints it`)
		}
	}
	out.Recipients = recipients.values
	d.place(catalog.KindSealing, "", 0, block)
	d.res.Declared.Sealing = &out
}
