package hclfile

import (
	"crypto/sha256"

	"fingerpost/resolver/catalog"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// Digest returns a SHA-256 of what ref's block says, zero if this file does not declare it. Layout and comments do not
// count, nor do the lines that the service writes by itself: uuid, id and verified. What a text of another file says
// does not count either. It compares a block with the same block at another time.
func (r *Result) Digest(ref catalog.Ref) (sum [sha256.Size]byte) {
	block := r.places[keyOf(ref)]
	if block == nil {
		return sum
	}
	var apart []hcl.Range
	for _, b := range append(hclsyntax.Blocks{block}, block.Body.Blocks...) {
		for _, name := range []string{"uuid", "id", "verified"} {
			if attr := b.Body.Attributes[name]; attr != nil {
				apart = append(apart, attr.SrcRange)
			}
		}
	}
	within := func(at int, in hcl.Range) bool { return at >= in.Start.Byte && at < in.End.Byte }
	hash := sha256.New()
tokens:
	for _, token := range r.Source.Tokens() {
		at := token.Range.Start.Byte
		switch {
		case !within(at, hcl.RangeBetween(block.TypeRange, block.CloseBraceRange)):
			continue
		case token.Type == hclsyntax.TokenComment, token.Type == hclsyntax.TokenNewline:
			continue
		}
		for _, in := range apart {
			if within(at, in) {
				continue tokens
			}
		}
		hash.Write(token.Bytes)
		hash.Write([]byte{0})
	}
	hash.Sum(sum[:0])
	return sum
}
