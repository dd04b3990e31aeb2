package jwks

import (
	"crypto/sha256"

	"fingerpost/resolver/catalog"
)

// A Set is the content of a key set. It is shared and must not be changed.
type Set struct {
	Keys     []*catalog.PublicKey // at least one
	Identity [sha256.Size]byte    // changes with the Keys
}
