package hclfile

import (
	"bytes"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
)

// Format returns a file in canonical form: two blanks a level, equals signs aligned, one line feed at the end, no byte
// order mark; the line endings stay. A file that does not parse is refused with its problems, whose File is empty; one
// that parses is formatted, even if Decode finds problems. Values and comments stay exactly the same.
func Format(src []byte) ([]byte, Diagnostics) {
	s := &Source{Src: src}
	ds := s.guard()
	if len(ds) == 0 {
		_, ds = s.parse()
	}
	if ds.HasErrors() {
		return nil, ds.capped()
	}
	eol := "\n"
	if at := bytes.IndexByte(src, '\n'); at > 0 && src[at-1] == '\r' {
		eol = "\r\n"
	}
	src = bytes.TrimPrefix(src, bom)
	out := hclwrite.Format(src)
	if !SameTokens(src, out) {
		return nil, Diagnostics{FileProblem("", "the formatter would change what this file says", "it was left as it is")}
	}
	if len(out) > 0 {
		out = append(bytes.TrimRight(out, " \t\r\n"), eol...)
		if len(out) == len(eol) {
			out = nil
		}
	}
	return out, nil
}

// SameTokens reports whether two texts differ only in white space between tokens. In a heredoc, white space is content.
func SameTokens(a, b []byte) bool {
	x, _ := hclsyntax.LexConfig(a, "", hcl.InitialPos)
	y, _ := hclsyntax.LexConfig(b, "", hcl.InitialPos)
	return slices.EqualFunc(x, y, func(a, b hclsyntax.Token) bool {
		return a.Type == b.Type && bytes.Equal(a.Bytes,
			b.Bytes)
	})
}
