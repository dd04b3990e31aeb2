package hclfile

import "fingerpost/resolver/catalog"

// Lines are the lines of an object's block.
type Lines struct {
	Block int            // of the header
	End   int            // of the closing brace
	Attrs map[string]int // by the attribute's name
}

// Before returns how many lines of the file stand before Source.Src: more than 0 only for a part of a file.
func (r *Result) Before() int { return r.before }

// Lines returns the lines of ref's block in the file, the zero Lines if this file does not declare it. A Ref without ProjectID
// means a block of the defaults block.
func (r *Result) Lines(ref catalog.Ref) Lines {
	block := r.places[keyOf(ref)]
	if block == nil {
		return Lines{}
	}
	l := Lines{Block: r.before + block.TypeRange.Start.Line, End: r.before + block.CloseBraceRange.Start.Line,
		Attrs: make(map[string]int, len(block.Body.Attributes))}
	for name, attr := range block.Body.Attributes {
		l.Attrs[name] = r.before + attr.NameRange.Start.Line
	}
	return l
}
