package hcledit

import (
	"bytes"
	"fmt"
	"maps"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"fingerpost/configsrc/hclfile"
)

// blocks is the text of new blocks.
type blocks struct{ *document }

// parseBlocks reads text that must contain only blocks and comments.
func parseBlocks(text string) (*blocks, error) {
	text = strings.Trim(strings.ReplaceAll(text, "\r\n", "\n"), "\n") + "\n"
	doc, err := openDocument([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("%w: the new block: %w", ErrVerify, err)
	}
	if len(doc.Body.Blocks) == 0 || len(doc.Body.Attributes) > 0 {
		return nil, fmt.Errorf("%w: the new text is no block", ErrVerify)
	}
	return &blocks{doc}, nil
}

func (b *blocks) trimmed() string { return string(b.Src) }

// stepped returns the text with step in place of each level of two blanks. In a heredoc only the indentation that <<-
// removes counts as levels.
func (b *blocks) stepped(step string) string {
	if step == "  " {
		return b.trimmed()
	}
	texts := b.heredocs()
	var out strings.Builder
	at := 0
	for line := range strings.Lines(string(b.Src)) {
		indent := len(line) - len(strings.TrimLeft(line, " "))
		for _, t := range texts {
			if at >= t.from && at < t.to {
				indent = min(indent, t.common)
			}
		}
		out.WriteString(strings.Repeat(step, indent/2) + line[indent/2*2:])
		at += len(line)
	}
	return out.String()
}

// A heredocText is the range of a heredoc's text, and the number of blanks that <<- removes from each line.
type heredocText struct{ from, to, common int }

func (b *blocks) heredocs() (all []heredocText) {
	for _, tok := range b.Tokens() {
		switch tok.Type {
		case hclsyntax.TokenOHeredoc:
			all = append(all, heredocText{from: tok.Range.End.Byte, common: -1})
			if !bytes.HasPrefix(tok.Bytes, []byte("<<-")) {
				all[len(all)-1].common = 0
			}
		case hclsyntax.TokenCHeredoc:
			t := &all[len(all)-1]
			t.to = b.lineStart(tok.Range.Start.Byte)
			for line := range bytes.Lines(b.Src[t.from:t.to]) {
				rest := bytes.TrimLeft(line, " ")
				if indent := len(line) - len(rest); len(bytes.TrimSpace(rest)) > 0 && (t.common < 0 || indent < t.common) {
					t.common = indent
				}
			}
			t.common = max(t.common, 0)
		}
	}
	return all
}

// saidBy reports whether text has the same blocks and values.
func (b *blocks) saidBy(text string) bool {
	other, err := openDocument([]byte(text))
	return err == nil && maps.Equal(other.model().says, b.model().says)
}

// formattedBlock formats the text of a block whose values are quoted.
func formattedBlock(text string) string {
	out, diags := hclfile.Format([]byte(text))
	if diags.HasErrors() {
		panic("hcledit: a block does not parse: impossible, all of it is quoted")
	}
	return string(out)
}
