package hcledit

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/hostname"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// The reasons why an edit fails. A failed edit returns no bytes.
var (
	ErrBroken  = errors.New("the file does not parse")
	ErrNoBlock = errors.New("there is no such block")
	ErrExists  = errors.New("there is such a block already")
	// ErrVerify means that the edited file does not have exactly the intended content: a bug in this package, or text from
	// the caller that the function does not take.
	ErrVerify = errors.New("the edit would not produce the requested values; nothing was written")
	// ErrLimit means that the text is beyond the limits of a config file, whatever else the file contains.
	ErrLimit = errors.New("a config file cannot hold this")
)

// bom is the UTF-8 byte order mark, which some editors write.
var bom = []byte("\xef\xbb\xbf")

// A BlockPath leads to a block: type and label of each block on the way, such as {"key", "checkout"} or {"project",
// "acme", "auth_settings"}. A domain is found by its canonical name, however its label is spelled.
type BlockPath []string

// String returns the path in the form of files.
func (p BlockPath) String() string { return strings.Join(p, " ") }

// A document is a file without errors, with the parts of its layout that edits need.
type document struct {
	*hclfile.Source
	eol string // the file's line ending
}

func openDocument(src []byte) (*document, error) {
	s, ds := hclfile.Parse(src)
	switch {
	case s == nil:
		return nil, fmt.Errorf("%w: %w: line %d: %s", ErrBroken, ErrLimit, ds[0].Start.Line, ds[0].Summary)
	case len(ds) > 0:
		return nil, fmt.Errorf("%w: line %d: %s", ErrBroken, ds[0].Start.Line, ds[0].Summary)
	}
	return newDocument(s), nil
}

func newDocument(s *hclfile.Source) *document {
	doc := &document{Source: s, eol: "\n"}
	if at := bytes.IndexByte(doc.Src, '\n'); at > 0 && doc.Src[at-1] == '\r' {
		doc.eol = "\r\n"
	}
	return doc
}

// find returns the block at the end of a path. It is an error if several blocks match.
func (doc *document) find(at BlockPath) (*hclsyntax.Block, error) {
	body, rest := doc.Body, []string(at)
	for {
		if len(rest) == 0 {
			return nil, fmt.Errorf("%w: the path %q is empty or ends too early", ErrNoBlock, at)
		}
		typ, labels := rest[0], rest[1:]
		n := 0
		if hclfile.HasLabel(typ) {
			n = 1
		}
		if len(labels) < n {
			return nil, fmt.Errorf("%w: %q lacks a label", ErrNoBlock, at)
		}
		labels, rest = labels[:n], labels[n:]
		var block *hclsyntax.Block
		for _, b := range body.Blocks {
			if b.Type != typ || !sameLabels(typ, b.Labels, labels) {
				continue
			}
			if block != nil {
				return nil, fmt.Errorf("%w of its own: %q stands in the file twice", ErrNoBlock, at)
			}
			block = b
		}
		if block == nil {
			return nil, fmt.Errorf("%w: %s", ErrNoBlock, at)
		}
		if len(rest) == 0 {
			return block, nil
		}
		body = block.Body
	}
}

func sameLabels(typ string, have, want []string) bool {
	if slices.Equal(have, want) {
		return true
	}
	if typ != "domain" || len(have) != 1 || len(want) != 1 {
		return false
	}
	a, errA := hostname.ParseDomain(have[0])
	b, errB := hostname.ParseDomain(want[0])
	return errA == nil && errB == nil && a == b
}

// after returns the index of the first token that begins at or after a byte.
func (doc *document) after(at int) int {
	return sort.Search(len(doc.Tokens()), func(i int) bool { return doc.Tokens()[i].Range.Start.Byte >= at })
}

// nextLine returns the offset of the line after that of src[at], as the lexer counts lines: a line feed inside a
// comment or heredoc does not end one. ok is false at the end of a file without a final line feed.
func (doc *document) nextLine(at int) (end int, ok bool) {
	if end, ok = doc.skipLine(at); ok || end == len(doc.Src) {
		return end, ok
	}
	for _, tok := range doc.Tokens()[doc.after(at):] {
		if hclfile.EndsLine(tok) {
			return tok.Range.End.Byte, true
		}
	}
	return len(doc.Src), false
}

// skipLine skips blanks and comments from at on, as the lexer does, and the line end behind them. ok is false if it
// finds anything else, or the end of the file; end is that offset then.
func (doc *document) skipLine(at int) (end int, ok bool) {
	for at < len(doc.Src) {
		rest := doc.Src[at:]
		switch {
		case rest[0] == ' ' || rest[0] == '\t':
			at++
		case rest[0] == '\n':
			return at + 1, true
		case bytes.HasPrefix(rest, []byte("\r\n")):
			return at + 2, true
		case rest[0] == '#' || bytes.HasPrefix(rest, []byte("//")):
			n := bytes.IndexByte(rest, '\n')
			if n < 0 {
				return len(doc.Src), false
			}
			return at + n + 1, true
		case bytes.HasPrefix(rest, []byte("/*")):
			n := bytes.Index(rest[2:], []byte("*/"))
			if n < 0 {
				return at, false
			}
			at += n + 4
		default:
			return at, false
		}
	}
	return at, false
}

// oneLine reports whether a block's content is on the line of its opening brace.
func (doc *document) oneLine(block *hclsyntax.Block) bool {
	_, ends := doc.skipLine(block.OpenBraceRange.End.Byte)
	return !ends
}

// lineStart returns the offset at which the line of src[at] begins.
func (doc *document) lineStart(at int) int { return 1 + bytes.LastIndexByte(doc.Src[:at], '\n') }

// lineEnd returns the offset of the line after that of src[at], whatever the lexer takes for its end.
func (doc *document) lineEnd(at int) int {
	if n := bytes.IndexByte(doc.Src[at:], '\n'); n >= 0 {
		return at + n + 1
	}
	return len(doc.Src)
}

// indentAt returns the white space at the beginning of the line of src[at].
func (doc *document) indentAt(at int) string {
	start := doc.lineStart(at)
	if start == 0 && bytes.HasPrefix(doc.Src, bom) {
		start = len(bom)
	}
	end := start
	for end < at && (doc.Src[end] == ' ' || doc.Src[end] == '\t') {
		end++
	}
	return string(doc.Src[start:end])
}

// innerIndent returns the indentation of a block's content: that of its first item, else one step more than the block.
func (doc *document) innerIndent(block *hclsyntax.Block) string {
	if !doc.oneLine(block) {
		if at, ok := firstItem(block.Body); ok {
			return doc.indentAt(at)
		}
	}
	return doc.indentAt(block.TypeRange.Start.Byte) + doc.step(block)
}

// step returns one level of indentation: taken from the block's content, else from the blocks around it, else from the
// first block of the file that shows one, else two blanks.
func (doc *document) step(block *hclsyntax.Block) string {
	for b := block; b != nil; b = parentOf(doc.Body, b) {
		if step := doc.shows(b); step != "" {
			return step
		}
	}
	for _, b := range doc.Body.Blocks {
		if step := doc.shows(b); step != "" {
			return step
		}
	}
	return "  "
}

// shows returns the indentation of a block's content relative to the block; "" for an empty block and one on one line.
func (doc *document) shows(b *hclsyntax.Block) string {
	at, ok := firstItem(b.Body)
	if !ok || doc.oneLine(b) {
		return ""
	}
	inner, deeper := strings.CutPrefix(doc.indentAt(at), doc.indentAt(b.TypeRange.Start.Byte))
	if !deeper {
		return ""
	}
	return inner
}

// parentOf returns the block that contains another one; nil for a top-level block.
func parentOf(body *hclsyntax.Body, block *hclsyntax.Block) *hclsyntax.Block {
	for _, b := range body.Blocks {
		if slices.Contains(b.Body.Blocks, block) {
			return b
		}
		if p := parentOf(b.Body, block); p != nil {
			return p
		}
	}
	return nil
}

// firstItem returns the offset of the first attribute or block of a body.
func firstItem(body *hclsyntax.Body) (at int, ok bool) {
	for _, a := range body.Attributes {
		if start := a.NameRange.Start.Byte; !ok || start < at {
			at, ok = start, true
		}
	}
	for _, b := range body.Blocks {
		if start := b.TypeRange.Start.Byte; !ok || start < at {
			at, ok = start, true
		}
	}
	return at, ok
}

// lineEnding converts text to the file's line ending.
func (doc *document) lineEnding(text string) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if doc.eol != "\n" {
		text = strings.ReplaceAll(text, "\n", doc.eol)
	}
	return text
}
