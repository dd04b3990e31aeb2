package hclfile

import (
	"iter"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// A ProjectList is a list of projects in a file.
type ProjectList struct {
	Block *hclsyntax.Block // the key, webhook, login or inbound block
	In    *hclsyntax.Block // the block with the attribute: Block, or a rule of it
	Attr  *hclsyntax.Attribute
	List  *hclsyntax.TupleConsExpr
}

// ProjectLists yields the lists of projects of keys, webhooks, logins and inbound blocks, in the order of the file.
func ProjectLists(body *hclsyntax.Body) iter.Seq[ProjectList] {
	return func(yield func(ProjectList) bool) {
		for _, block := range body.Blocks {
			in := hclsyntax.Blocks{block}
			switch {
			case block.Body == nil:
				continue
			case block.Type == "key", block.Type == "webhook", block.Type == "inbound":
			case block.Type == "login":
				in = block.Body.Blocks
			default:
				continue
			}
			for _, b := range in {
				if b.Body == nil || b.Body.Attributes["projects"] == nil {
					continue
				}
				attr := b.Body.Attributes["projects"]
				list, is := Unparen(attr.Expr).(*hclsyntax.TupleConsExpr)
				if is && !yield(ProjectList{block, b, attr, list}) {
					return
				}
			}
		}
	}
}
