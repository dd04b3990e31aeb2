package hclfile

import (
	"bytes"
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2/hclwrite"
)

// Format returns a file in canonical form: two blanks a level, equals signs aligned, one line feed at the end, no byte
// order mark; the line endings stay as they are. What does not parse is refused with its problems, whose File is
// empty; what parses but makes no sense is formatted all the same. The values and comments stay exactly the same.
func Format(src []byte) ([]byte, Diagnostics) {
	s := &source{src: src}
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
	out := hclwrite.Format(bytes.TrimPrefix(src, bom))
	if len(out) > 0 {
		out = append(bytes.TrimRight(out, " \t\r\n"), eol...)
		if len(out) == len(eol) {
			out = nil
		}
	}
	if !sameModel(src, out) {
		return nil, Diagnostics{FileProblem("", "the formatter would change what this file says", "it was left as it is")}
	}
	return out, nil
}

// sameModel reports whether two files say the same and have the same comments.
func sameModel(a, b []byte) bool {
	docA, errA := openDocument(a)
	docB, errB := openDocument(b)
	if errA != nil || errB != nil {
		return false
	}
	x, y := docA.model(), docB.model()
	return maps.Equal(x.says, y.says) && slices.Equal(x.comments, y.comments)
}
