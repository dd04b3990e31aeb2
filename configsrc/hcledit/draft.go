package hcledit

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"fingerpost/configsrc/hclfile"
)

// A Draft collects edits of one file. Each edit is noted against one parse of the file; Bytes applies them all. The
// result is the same as if the edits were made one after the other. The caller decodes the result and checks its
// content. A Draft is for one goroutine.
type Draft struct {
	// BodyFile returns the path of the file, below the config folder, that a template's new text in a place goes
	// to by file(); "" if the text stands in the config file. It is not called for an attribute that is a file() already.
	// nil: no text goes to a file.
	BodyFile func(at TextPlace, text string) (path string, err error)

	*document
	sites map[*hclsyntax.Block]*site
	order []*site    // the values of sites, in the order in which they were first edited
	table *lineTable // built by lines on first use
	tail  *blocks    // blocks to append to the file; nil: none

	bodies []BodyEdit // see Bodies
}

// A splice replaces src[from:to] by text.
type splice struct {
	from, to int
	text     string
}

// NewDraft starts a Draft of a file that was decoded without errors. It keeps the Result's source.
func NewDraft(r *hclfile.Result) *Draft { return newDraft(newDocument(r.Source)) }

func openDraft(src []byte) (*Draft, error) {
	doc, err := openDocument(src)
	if err != nil {
		return nil, err
	}
	return newDraft(doc), nil
}

func newDraft(doc *document) *Draft {
	return &Draft{document: doc, sites: map[*hclsyntax.Block]*site{}}
}

// site returns the noted edits of a block, for adding to them.
func (d *Draft) site(block *hclsyntax.Block) *site {
	s := d.sites[block]
	if s == nil {
		s = &site{d: d, block: block, oneLine: d.oneLine(block)}
		d.sites[block] = s
		d.order = append(d.order, s)
	}
	return s
}

func (d *Draft) findSite(at BlockPath) (*site, error) {
	block, err := d.find(at)
	if err != nil {
		return nil, err
	}
	return d.site(block), nil
}

// lines returns the line table, in which removed lines are marked.
func (d *Draft) lines() *lineTable {
	if d.table == nil {
		d.table = d.document.lines()
	}
	return d.table
}

// Bytes returns the file with all edits made, formatted around them; the source itself if there are no edits.
func (d *Draft) Bytes() ([]byte, error) {
	var splices []splice
	for _, s := range d.order {
		splices = append(splices, s.splices()...)
	}
	if d.table != nil {
		splices = append(splices, d.table.splices()...)
	}
	if len(splices) == 0 && d.tail == nil {
		return d.Src, nil
	}
	// At the same offset, splices keep the order in which they were noted; removed lines were added last.
	slices.SortStableFunc(splices, func(a, b splice) int { return a.from - b.from })
	var out []byte
	at := 0
	for _, s := range splices {
		if s.from < at {
			return nil, fmt.Errorf("%w: two edits of the same bytes", ErrVerify)
		}
		out = append(append(out, d.Src[at:s.from]...), s.text...)
		at = s.to
	}
	out = d.format(append(out, d.Src[at:]...), splices)
	if d.tail != nil {
		out = append(out, d.lineEnding(d.tailLead()+d.tail.trimmed())...)
	}
	return out, nil
}

// made proves the result and returns it.
func (d *Draft) made() ([]byte, error) {
	out, err := d.Bytes()
	if err != nil || bytes.Equal(out, d.Src) {
		return out, err
	}
	if err := d.prove(out); err != nil {
		return nil, err
	}
	return out, nil
}

// tailLead returns the text between the file and the appended blocks: the missing line feed, if any, and a blank line.
func (d *Draft) tailLead() (lead string) {
	body := bytes.TrimPrefix(d.Src, bom)
	if len(body) == 0 {
		return ""
	}
	if !bytes.HasSuffix(body, []byte{'\n'}) {
		lead = "\n"
	}
	if len(bytes.TrimSpace(body)) > 0 && !blankEnd(body) {
		lead += "\n"
	}
	return lead
}

// blankEnd reports whether the last line, which may lack its line feed, is blank.
func blankEnd(src []byte) bool {
	src = bytes.TrimRight(src, " \t")
	cut, ok := bytes.CutSuffix(src, []byte{'\n'})
	if !ok {
		return false
	}
	return bytes.HasSuffix(bytes.TrimRight(cut, " \t\r"), []byte{'\n'})
}

// topLine returns the first line to remove for the attribute, entry or element that begins at from: that of the comment
// directly above it. A comment with which a block, map or list begins is about the whole, and stays.
func (d *Draft) topLine(from int) int {
	lines, tokens := d.lines(), d.Tokens()
	before := d.after(from) - 1
	for before >= 0 && (tokens[before].Range.End.Byte > from || tokens[before].Type == hclsyntax.TokenComment ||
		tokens[before].Type == hclsyntax.TokenNewline) {
		before--
	}
	if before >= 0 && (tokens[before].Type == hclsyntax.TokenOBrace || tokens[before].Type == hclsyntax.TokenOBrack) {
		return lines.of(from)
	}
	return lines.withComment(lines.of(from))
}

// remove removes a block, see RemoveBlock.
func (d *Draft) remove(block *hclsyntax.Block) {
	d.site(block).gone = true
	lines := d.lines()
	top := lines.withComment(lines.of(block.TypeRange.Start.Byte))
	// A comment behind the closing brace goes too, with all its lines.
	end, _ := d.nextLine(block.CloseBraceRange.End.Byte)
	lines.remove(top, lines.of(end-1)+1)
}
