package hclfile

import "fingerpost/resolver/catalog"

// Lines are the lines of an object's block.
type Lines struct {
	Block int            // of the header
	End   int            // of the closing brace
	Attrs map[string]int // by the attribute's name
}

// Lines returns the lines of ref's block, the zero Lines if this file does not declare it. A Ref without ProjectID
// means a block of the defaults block.
func (r *Result) Lines(ref catalog.Ref) Lines {
	block := r.places[keyOf(ref)]
	if block == nil {
		return Lines{}
	}
	l := Lines{Block: block.TypeRange.Start.Line, End: block.CloseBraceRange.Start.Line, Attrs: make(map[string]int,
		len(block.Body.Attributes))}
	for name, attr := range block.Body.Attributes {
		l.Attrs[name] = attr.NameRange.Start.Line
	}
	return l
}
