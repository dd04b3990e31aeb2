package hclfile

import (
	"fmt"
	"slices"

	"fingerpost/resolver/catalog"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// inbound reads one inbound block.
func (d *decoder) inbound(block *hclsyntax.Block) {
	name, rng := d.label(block, inboundSchema)
	b := catalog.NewInbound(name)
	var projects list
	c := d.attributes(block, inboundSchema, []catalog.Field{
		{Name: "format", Value: &b.Format, OneOf: catalog.InboundFormats}, {Name: "secret", Value: &b.Secrets},
		{Name: "projects", Value: &projects},
	})
	if c.says("projects") {
		b.Projects = projects.values
		d.checkSlugs(projects)
		for i, slug := range projects.values {
			if slices.Contains(projects.values[:i], slug) {
				d.errorf(projects.ranges[i], "projects: "+Quoted(slug)+" is in the list twice", "")
			}
		}
	}
	// problems of single elements were reported
	d.validated(c, slices.DeleteFunc(b.Validate(), func(p catalog.Problem) bool {
		return p.Path == "projects" && len(b.Projects) > 0
	}), "name")
	if name != "" {
		d.once(claim{"inbound", name}, rng, "inbound "+Quoted(name)+" is declared twice", "")
	}
	d.place(catalog.KindInbound, name, 0, block)
	d.res.Declared.Inbounds = append(d.res.Declared.Inbounds, *b)
	if len(d.res.Declared.Inbounds) == catalog.MaxInbounds+1 {
		d.errorf(header(block), fmt.Sprintf("there are more than %d inbound blocks", catalog.MaxInbounds),
			"one block may serve many projects")
	}
}
