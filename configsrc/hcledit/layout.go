package hcledit

import (
	"bytes"
	"slices"
	"sort"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"

	"fingerpost/configsrc/hclfile"
)

// A layoutLine is a line of the edited file as the formatter sees it: a heredoc or a comment of several lines is part
// of the line that it begins on.
type layoutLine struct {
	from, to int   // bytes of the edited file, the line feed included
	open     []int // the lines above that opened brackets, and how many of these are still open
	linked   bool  // the formatter aligns its equals sign or comment with the lines next to it
	dirty    bool  // its layout may have changed
}

// format lays out the edited lines as Format lays out the whole file: out is the source with the splices made. Only the
// lines around each edit go through the formatter, up to the next line on both sides that it aligns with no other. If
// these lines were formatted in the source, they all are in the result; otherwise they stay as they are.
func (d *Draft) format(out []byte, splices []splice) []byte {
	if len(splices) == 0 {
		return out
	}
	srcFrom, srcTo, depth := d.stretch(splices)
	from, to := srcFrom, srcTo+len(out)-len(d.Src)
	lines := layoutLines(out[:to], from, depth)
	markDirty(lines, splices)
	var result []byte
	at := 0
	for first := 0; first < len(lines); first++ {
		if !lines[first].dirty {
			continue
		}
		last := first
		for ; first > 0 && lines[first-1].linked; first-- {
		}
		for ; last+1 < len(lines) && (lines[last+1].linked || lines[last+1].dirty); last++ {
		}
		srcEnd := srcTo
		if last+1 < len(lines) {
			srcEnd = sourceAt(lines[last+1].from, splices)
		}
		before := d.Src[sourceAt(lines[first].from, splices):srcEnd]
		result = append(append(result, out[at:lines[first].from]...), layout(out, lines[first:last+1], before)...)
		at, first = lines[last].to, last
	}
	return append(result, out[at:]...)
}

// layout returns the text of a window of lines after formatting. before is the same window in the source.
func layout(out []byte, window []layoutLine, before []byte) []byte {
	text := out[window[0].from:window[len(window)-1].to]
	formatted := formatLines(window[0].open, text)
	if bytes.Contains(text, []byte("<<")) && !hclfile.SameTokens(formatted, text) ||
		!bytes.Equal(formatLines(window[0].open, before), before) {
		return text
	}
	return formatted
}

// formatLines formats lines as in a file where these brackets are open before them.
func formatLines(open []int, text []byte) []byte {
	var b bytes.Buffer
	for _, n := range open {
		b.WriteString(strings.Repeat("{", n) + "\n")
	}
	b.Write(text)
	formatted := hclwrite.Format(b.Bytes())
	for range open {
		formatted = formatted[bytes.IndexByte(formatted, '\n')+1:]
	}
	return formatted
}

// stretch returns the part of the source that formatting an edit may change, and the number of blocks that are open
// before it. It is in the innermost block around all splices: the attributes and blocks that contain the splices, and
// their neighbours without a blank line between.
func (d *Draft) stretch(splices []splice) (from, to, depth int) {
	from, to = splices[0].from, 0
	for _, s := range splices {
		to = max(to, s.to)
	}
	body, top, bottom := d.Body, 0, len(d.Src)
	if bytes.HasPrefix(d.Src, bom) {
		top = len(bom)
	}
	for at := 0; at < len(body.Blocks); at++ {
		if first, last, ok := d.inside(body.Blocks[at]); ok && first <= from && to <= last {
			body, top, bottom, depth, at = body.Blocks[at].Body, first, last, depth+1, -1
		}
	}
	all := items(body)
	begin := func(i int) int { return d.lineStart(all[i].Start.Byte) }
	end := func(i int) int {
		end, _ := d.nextLine(all[i].End.Byte)
		return end
	}
	apart := func(i int) bool { // item i is separate from the one before it
		return end(i-1) <= begin(i) && hasBlankLine(d.Src[end(i-1):begin(i)]) && isBlank(d.Src[begin(i):all[i].Start.Byte])
	}
	first := sort.Search(len(all), func(i int) bool { return end(i) >= from })
	for ; first < len(all) && first > 0 && !apart(first); first-- {
	}
	last := sort.Search(len(all), func(i int) bool { return begin(i) > to }) - 1
	for ; last >= 0 && last+1 < len(all) && !apart(last+1); last++ {
	}
	switch {
	case first == 0:
		from = top
	case first < len(all):
		from = min(from, begin(first))
	}
	switch {
	case last == len(all)-1:
		to = bottom
	case last >= 0:
		to = max(to, end(last))
	}
	return from, to, depth
}

// inside returns the lines between the braces of a block. ok is false if something else is on the lines of the braces:
// the formatter may align that with the lines between.
func (d *Draft) inside(b *hclsyntax.Block) (from, to int, ok bool) {
	open, closed := b.OpenBraceRange.End.Byte, b.CloseBraceRange.Start.Byte
	from, to = d.lineEnd(open), d.lineStart(closed)
	return from, to, from <= to && isBlank(d.Src[open:from]) && isBlank(d.Src[to:closed]) &&
		isBlank(d.Src[closed+1:d.lineEnd(closed)])
}

// items returns the ranges of the attributes and blocks of a body, in order.
func items(body *hclsyntax.Body) []hcl.Range {
	all := make([]hcl.Range, 0, len(body.Attributes)+len(body.Blocks))
	for _, a := range body.Attributes {
		all = append(all, a.SrcRange)
	}
	for _, b := range body.Blocks {
		all = append(all, hcl.RangeBetween(b.TypeRange, b.CloseBraceRange))
	}
	slices.SortFunc(all, func(a, b hcl.Range) int { return a.Start.Byte - b.Start.Byte })
	return all
}

func isBlank(text []byte) bool { return len(bytes.TrimSpace(text)) == 0 }

func hasBlankLine(text []byte) bool {
	for line := range bytes.Lines(text) {
		if isBlank(line) {
			return true
		}
	}
	return false
}

// layoutLines splits out[from:] into lines as the formatter does, in that many open blocks.
func layoutLines(out []byte, from, depth int) (lines []layoutLine) {
	tokens, _ := hclsyntax.LexConfig(out[from:], "", hcl.Pos{Line: 1, Column: 1, Byte: from})
	open := slices.Repeat([]int{1}, depth)
	for len(tokens) > 0 {
		n := 1 + slices.IndexFunc(tokens, hclfile.EndsLine)
		if n == 0 {
			n = len(tokens)
		}
		line := layoutLine{from: from, to: tokens[n-1].Range.End.Byte, open: slices.Clone(open), linked: linked(tokens[:n])}
		if from = line.to; line.to > line.from {
			lines = append(lines, line)
		}
		net := openBrackets(tokens[:n])
		if net > 0 {
			open = append(open, net)
		}
		for net < 0 && len(open) > 0 {
			top := &open[len(open)-1]
			closed := min(-net, *top)
			*top, net = *top-closed, net+closed
			if *top == 0 {
				open = open[:len(open)-1]
			}
		}
		tokens = tokens[n:]
	}
	return lines
}

// linked reports whether the formatter aligns a line with others: by a comment behind something, or by an equals sign
// whose value ends on the line.
func linked(line hclsyntax.Tokens) bool {
	if line[len(line)-1].Type == hclsyntax.TokenEOF {
		line = line[:len(line)-1]
	}
	if len(line) > 1 && line[len(line)-1].Type == hclsyntax.TokenComment {
		return true
	}
	at := slices.IndexFunc(line, func(tok hclsyntax.Token) bool { return tok.Type == hclsyntax.TokenEqual })
	return at > 0 && openBrackets(line[at:]) == 0
}

// openBrackets returns how many more brackets tokens open than close.
func openBrackets(tokens hclsyntax.Tokens) (n int) {
	for _, tok := range tokens {
		switch tok.Type {
		case hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen, hclsyntax.TokenTemplateControl,
			hclsyntax.TokenTemplateInterp:
			n++
		case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen, hclsyntax.TokenTemplateSeqEnd:
			n--
		}
	}
	return n
}

// markDirty finds the lines of new text and next to removed lines.
func markDirty(lines []layoutLine, splices []splice) {
	of := func(at int) int { return sort.Search(len(lines), func(i int) bool { return lines[i].to > at }) }
	grown := 0
	for _, s := range splices {
		from := s.from + grown
		to := from + len(s.text)
		grown += len(s.text) - (s.to - s.from)
		for i := of(from - 1); i <= of(to) && i < len(lines); i++ {
			lines[i].dirty = true
		}
	}
}

// sourceAt returns the offset in the source of the byte at out[at]. Inserted text counts as the position that follows
// it.
func sourceAt(at int, splices []splice) int {
	grown := 0
	for _, s := range splices {
		if s.from+grown >= at {
			break
		}
		grown += len(s.text) - (s.to - s.from)
	}
	return at - grown
}
