package hcledit

import (
	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// EdgeBlock returns the block that declares e, formatted.
func EdgeBlock(e *catalog.Edge) string {
	out, diags := hclfile.Format([]byte("edge " + Quote(e.Name) + " {\npublic_key = " + Quote(e.PublicKey) + "\n}\n"))
	if diags.HasErrors() {
		panic("hcledit: an edge block does not parse: impossible, all of it is quoted")
	}
	return string(out)
}
