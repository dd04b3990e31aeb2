package hclfile

import (
	"bytes"
	"slices"
	"sort"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
)

// A lineEdit is the part of a line of the edited file that differs, and what stands there once it is formatted.
type lineEdit struct {
	from, to int
	text     []byte
}

// format brings the blocks that were edited into canonical form: out is the source with all splices made. Where all of
// the block around them was in that form, it stays so; elsewhere only the lines of edited and new blocks change, without
// those of the blocks inside them. Formatting changes white space alone; where a value would change with it, nothing is
// formatted.
func (d *Draft) format(out []byte) []byte {
	var edits []lineEdit
	for _, r := range d.runs() {
		from, to := d.outAt(r.from, false), d.outAt(r.to, true)
		text := out[from:to]
		formatted := hclwrite.Format(slices.Clone(text))
		if bytes.Equal(formatted, text) {
			continue
		}
		chosen := func(int) bool { return true }
		if before := d.src[r.from:r.to]; !bytes.Equal(hclwrite.Format(slices.Clone(before)), before) {
			chosen = d.editedLines(out[:to], from)
		}
		made := lineEdits(from, text, formatted, chosen)
		// White space has a meaning in a heredoc alone. Comparing what the texts say takes as long as all the rest.
		if len(made) > 0 && (!bytes.Contains(text, []byte("<<")) || sameModel(text, applied(text, made, from))) {
			edits = append(edits, made...)
		}
	}
	if len(edits) == 0 {
		return out
	}
	return applied(out, edits, 0)
}

// runs are the lines of the file's own blocks that something was edited in, together with their neighbours that no blank
// line sets apart: the formatter aligns comments across them. They are sorted and apart.
func (d *Draft) runs() (all []span) {
	touched := d.touched()
	var run span
	hot := false
	flush := func() {
		if hot {
			for _, s := range d.splices { // a block that goes takes its comment along
				if s.from < run.to && s.to > run.from {
					run = span{min(run.from, s.from), max(run.to, s.to)}
				}
			}
			all = append(all, run)
		}
		hot = false
	}
	for i, b := range d.body.Blocks {
		from := d.lineStart(b.TypeRange.Start.Byte)
		if from == 0 && bytes.HasPrefix(d.src, bom) {
			from = len(bom)
		}
		to, _ := d.nextLine(b.CloseBraceRange.End.Byte)
		if i > 0 && from > run.to && hasBlankLine(d.src[run.to:from]) {
			flush()
			run = span{from, to}
		} else if i == 0 {
			run = span{from, to}
		}
		run.to = to
		hot = hot || touched[b]
	}
	flush()
	return joinSpans(all)
}

// touched are the file's own blocks in which something is edited.
func (d *Draft) touched() map[*hclsyntax.Block]bool {
	all := map[*hclsyntax.Block]bool{}
	for _, s := range d.order {
		at := s.block.TypeRange.Start.Byte
		i := sort.Search(len(d.body.Blocks), func(i int) bool { return d.body.Blocks[i].TypeRange.Start.Byte > at })
		all[d.body.Blocks[i-1]] = true
	}
	return all
}

func hasBlankLine(text []byte) bool {
	for line := range bytes.Lines(text) {
		if len(bytes.TrimSpace(line)) == 0 {
			return true
		}
	}
	return false
}

// outAt is where src[at] stands in the edited file. behind says that what is put in there comes before it.
func (d *Draft) outAt(at int, behind bool) int {
	to := at
	for _, s := range d.splices {
		if s.to <= at && (s.from < at || behind && at < len(d.src)) {
			to += len(s.text) - (s.to - s.from)
		}
	}
	return to
}

// editedLines tells which lines of out, from a byte on, are those of blocks that were edited or are new.
func (d *Draft) editedLines(out []byte, from int) func(line int) bool {
	file, ds := hclsyntax.ParseConfig(out[from:], "", hcl.Pos{Line: 1, Column: 1, Byte: from})
	if ds.HasErrors() {
		return func(int) bool { return false }
	}
	old := map[int]*hclsyntax.Block{} // by where they stand now
	var add func(body *hclsyntax.Body)
	add = func(body *hclsyntax.Body) {
		for _, b := range body.Blocks {
			if s := d.sites[b]; s == nil || !s.gone {
				old[d.moved(b.TypeRange.Start.Byte)] = b
				add(b.Body)
			}
		}
	}
	add(d.body)
	lines := map[int]bool{}
	mark := func(b *hclsyntax.Block, edited bool) {
		for i := b.TypeRange.Start.Line; i <= b.CloseBraceRange.End.Line; i++ {
			lines[i] = edited
		}
	}
	var walk func(body *hclsyntax.Body, parent *hclsyntax.Block)
	walk = func(body *hclsyntax.Body, parent *hclsyntax.Block) {
		for _, b := range body.Blocks {
			was := old[b.TypeRange.Start.Byte]
			if was == nil {
				mark(b, true)
				continue
			}
			s := d.sites[was]
			mark(b, s != nil && (s.label != nil || len(s.values)+len(s.added) > 0))
			walk(b.Body, was)
		}
	}
	walk(file.Body.(*hclsyntax.Body), nil)
	return func(line int) bool { return lines[line] }
}

// lineEdits compares a text with its formatted self, line by line. Lines are counted from 1.
func lineEdits(at int, text, formatted []byte, chosen func(line int) bool) (edits []lineEdit) {
	a, b := bytes.SplitAfter(text, []byte{'\n'}), bytes.SplitAfter(formatted, []byte{'\n'})
	if len(a) != len(b) {
		return nil
	}
	for i := range a {
		if chosen(i+1) && !bytes.Equal(a[i], b[i]) {
			head, tail := 0, 0
			for head < len(a[i]) && head < len(b[i]) && a[i][head] == b[i][head] {
				head++
			}
			for tail < len(a[i])-head && tail < len(b[i])-head && a[i][len(a[i])-1-tail] == b[i][len(b[i])-1-tail] {
				tail++
			}
			edits = append(edits, lineEdit{at + head, at + len(a[i]) - tail, b[i][head : len(b[i])-tail]})
		}
		at += len(a[i])
	}
	return edits
}

// applied is a text with edits, whose places count from base.
func applied(text []byte, edits []lineEdit, base int) (out []byte) {
	at := 0
	for _, e := range edits {
		out = append(append(out, text[at:e.from-base]...), e.text...)
		at = e.to - base
	}
	return append(out, text[at:]...)
}
