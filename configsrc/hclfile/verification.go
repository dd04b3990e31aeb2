package hclfile

import (
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/hostname"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// verification reads the verification block of the defaults block.
func (d *decoder) verification(block *hclsyntax.Block) *catalog.Verification {
	d.label(block, verificationSchema)
	v := catalog.NewVerification()
	var targets, cas list
	var grace string
	fields := v.AllFields()
	fields[1].Value, fields[3].Value, fields[4].Value = &targets, &grace, &cas
	c := d.attributes(block, verificationSchema, fields)
	for i, text := range targets.values {
		target, err := catalog.ParseTarget(text)
		if err != nil {
			d.errorf(targets.ranges[i], "targets: the target "+err.Error(), "")
		}
		v.Targets = append(v.Targets, target)
	}
	for i, text := range cas.values {
		name, err := hostname.Parse(text)
		if err != nil {
			d.errorf(cas.ranges[i], "cas: the host name "+err.Error(),
				"it is the name that the authority has in CAA records, such as letsencrypt.org")
		}
		v.CAs = append(v.CAs, name)
	}
	if c.says("grace") {
		var ok bool
		if v.Grace, ok = catalog.ParseLifetime(grace); !ok {
			d.errorf(block.Body.Attributes["grace"].Expr.Range(),
				`grace: must be a number with a unit of s, m, h, d or w, such as "72h"`, "the shortest is 1s")
		}
	}
	return &v
}

// verified checks the value of a domain's verified attribute. A day in the future is a warning.
func (d *decoder) verified(c *content, dom *catalog.Domain) {
	if dom.Verified == nil || !c.says("verified") {
		return
	}
	at := c.block.Body.Attributes["verified"].Expr.Range()
	if msg := catalog.CheckVerified(*dom.Verified, ""); msg != "" {
		d.errorf(at, "verified: "+msg, "leave the line out for a domain that needs no proof")
	} else if catalog.CheckVerified(*dom.Verified, d.o.Today) != "" {
		// The service itself writes such a day while its clock is ahead, and must not break the project with it.
		d.warn("", at, "verified: the day was in the future when the file was read, on "+d.o.Today+" (UTC)",
			"the domain answers as proven; was a clock ahead?")
	}
}
