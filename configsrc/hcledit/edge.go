package hcledit

import (
	"fingerpost/resolver/catalog"
)

// EdgeBlock returns the block that declares e, formatted.
func EdgeBlock(e *catalog.Edge) string {
	return formattedBlock("edge " + Quote(e.Name) + " {\npublic_key = " + Quote(e.PublicKey) + "\n}\n")
}
