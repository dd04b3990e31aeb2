package hclfile

import (
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/hostname"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// domain reads one domain block. The name is kept in its canonical form, whatever spelling the label has.
func (d *projectDecoder) domain(block *hclsyntax.Block) {
	label, rng := d.label(block, domainSchema)
	name, sound := label, false
	if len(block.Labels) > 0 {
		canonical, err := hostname.ParseDomain(label)
		if err != nil {
			d.errorf(rng, "domain: "+err.Error(),
				"a domain is a host name such as shop.acme.example, or a wildcard such as *.acme.example")
		} else {
			name, sound = canonical, true
			if mixed := hostname.MixedScript(name); mixed != "" {
				d.warn("", rng, "the label "+Quoted(mixed)+" mixes scripts",
					"names like this are made to be mistaken for others; is it the one that you mean?")
			}
			if _, listed := hostname.PublicSuffix(name); listed {
				d.warn("", rng, "domain "+Quoted(name)+" is a public suffix, or a wildcard directly below one",
					"names of many owners lie below it (publicsuffix.org); is it the one that you mean?")
			}
		}
	}
	dom := catalog.Domain{Name: name, ProjectID: d.config.Project.ID, Active: true}
	var written identity
	c := d.attributes(block, domainSchema, append(dom.Fields(), written.fields()...))
	d.verified(c, &dom)
	dom.UUID, dom.ID = d.identify(c, catalog.KindDomain, written, catalog.DeriveDomainUUID(d.config.Project.UUID, name),
		"")
	d.addDomain(block, &dom, sound)
}

// addDomain adds a domain to the project and reports conflicts with the others. sound says that its name is valid.
func (d *projectDecoder) addDomain(block *hclsyntax.Block, dom *catalog.Domain, sound bool) {
	rng := block.TypeRange
	if len(block.LabelRanges) > 0 {
		rng = block.LabelRanges[0]
	}
	if sound {
		d.once(claim{"domain", dom.Name}, rng, "domain "+Quoted(dom.Name)+" is declared twice",
			"a domain belongs to one project, and stands in it once")
	}
	if dom.Primary {
		if d.primary.Start.Line == 0 {
			d.primary = rng
		} else {
			d.errorf(block.Body.Attributes["primary"].Range(), "a project has one primary domain at most",
				"the first is %s at %s", d.Text(d.primary), d.at(d.primary))
		}
	}
	d.place(catalog.KindDomain, dom.Name, dom.ProjectID, block)
	d.config.Domains = append(d.config.Domains, *dom)
}
