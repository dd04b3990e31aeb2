package hclfile

import (
	"fingerpost/resolver/catalog"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// edge reads one edge block.
func (d *decoder) edge(block *hclsyntax.Block) {
	name, rng := d.label(block, edgeSchema)
	e := catalog.Edge{Name: name}
	c := d.attributes(block, edgeSchema, []catalog.Field{{Name: "publicKey", Value: &e.PublicKey}})
	if _, i := c.schema.attribute("public_key"); !c.wrote(i) {
		d.atHeader(c, Error, `attribute "public_key" is missing`,
			`"fingerpost edges keygen" makes a key and writes its public half`)
		c.bad = c.bad.With(i)
	}
	d.validated(c, e.Validate(), "name")
	if name != "" {
		d.once(claim{"edge", name}, rng, "edge "+Quoted(name)+" is declared twice", "")
	}
	if c.says("public_key") {
		d.once(claim{"edge key", e.PublicKey}, block.Body.Attributes["public_key"].Expr.Range(),
			"two edges have the same key",
			"an edge proves by its key which one it is: make one of its own with \"fingerpost edges keygen\"")
	}
	d.place(catalog.KindEdge, name, 0, block)
	d.res.Declared.Edges = append(d.res.Declared.Edges, e)
}
