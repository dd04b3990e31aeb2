package hclfile

import (
	"bytes"
	"fmt"
	"maps"
	"strings"
)

// blocks is text that is to be put into a file.
type blocks struct{ *document }

// parseBlocks reads text that must hold blocks and comments only.
func parseBlocks(text string) (*blocks, error) {
	text = strings.Trim(strings.ReplaceAll(text, "\r\n", "\n"), "\n") + "\n"
	doc, err := openDocument([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("%w: the new block: %w", ErrVerify, err)
	}
	if len(doc.body.Blocks) == 0 || len(doc.body.Attributes) > 0 {
		return nil, fmt.Errorf("%w: the new text is no block", ErrVerify)
	}
	return &blocks{doc}, nil
}

func (b *blocks) trimmed() string { return string(b.src) }

// stepped is the text with its levels, of two blanks each, indented by step.
func (b *blocks) stepped(step string) string {
	if step == "  " || bytes.Contains(b.src, []byte("<<")) {
		return b.trimmed()
	}
	var out strings.Builder
	for line := range strings.Lines(string(b.src)) {
		rest := strings.TrimLeft(line, " ")
		out.WriteString(strings.Repeat(step, (len(line)-len(rest))/2))
		out.WriteString(rest)
	}
	return out.String()
}

// saidBy reports whether text says the same.
func (b *blocks) saidBy(text string) bool {
	other, err := openDocument([]byte(text))
	return err == nil && maps.Equal(other.model().says, b.model().says)
}
