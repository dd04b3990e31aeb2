package hcledit

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"fingerpost/configsrc/hclfile"
)

// A heredoc is the form of a heredoc, without its text.
type heredoc struct {
	flush  bool   // <<-, which removes common indentation
	marker string // "EOT"
	indent string // before each line of the text
	end    string // before the last marker
}

// heredocForm is the form of new text: <<- with this indentation, or << without one.
func heredocForm(indent string) heredoc {
	return heredoc{flush: indent != "", marker: "EOT", indent: indent}
}

// write returns s in this form, with trimsuffix() around it if s has no final line feed. A marker that occurs in s gets
// a number.
func (h heredoc) write(s string) string {
	begin, end := "<<", ""
	if h.flush {
		begin = "<<-"
	}
	marker := h.marker
	for n := 2; hasLine(s, marker); n++ {
		marker = fmt.Sprintf("%s%d", h.marker, n)
	}
	body, newline := strings.CutSuffix(s, "\n")
	if !newline {
		begin, end = "trimsuffix("+begin, "\n"+h.end+", \"\\n\")"
	}
	var b strings.Builder
	b.WriteString(begin + marker + "\n")
	for line := range strings.SplitSeq(body, "\n") {
		if line != "" {
			b.WriteString(h.indent + escapeHeredoc.Replace(line))
		}
		b.WriteByte('\n')
	}
	b.WriteString(h.end + marker + end)
	return b.String()
}

var escapeHeredoc = strings.NewReplacer("${", "$${", "%{", "%%{")

// hasLine reports whether a line of s consists of word and blanks, which would end a heredoc.
func hasLine(s, word string) bool {
	for line := range strings.SplitSeq(s, "\n") {
		if strings.TrimSpace(line) == word {
			return true
		}
	}
	return false
}

// inFormOf returns text of several lines in the form of the heredoc that it replaces, so that the diff shows only the
// changed lines. ok is false if the old value is no heredoc or the new text would not read back.
func (doc *document) inFormOf(old hclsyntax.Expression, value *expression) (text string, ok bool) {
	s, isString := strings.CutPrefix(value.Canonical(value.expr), "string ")
	if call, isCall := hclfile.Unparen(old).(*hclsyntax.FunctionCallExpr); isCall && len(call.Args) == 2 {
		old = hclfile.Unparen(call.Args[0])
	}
	old = hclfile.Unparen(old)
	// A carriage return would be read as part of a line ending, or become one in another checkout.
	if !isString || !strings.Contains(s, "\n") || strings.Contains(s, "\r") || !doc.isHeredoc(old) || !fitsHeredoc(s) {
		return "", false
	}
	text = doc.heredocAt(old.Range().Start.Byte).write(s)
	return text, says(text, s)
}

// heredocAt returns the form of the heredoc that begins at src[at].
func (doc *document) heredocAt(at int) heredoc {
	tokens := doc.Tokens()[doc.after(at):]
	open := strings.TrimSpace(string(tokens[0].Bytes))
	h := heredoc{flush: strings.HasPrefix(open, "<<-"), marker: strings.TrimLeft(open, "<-")}
	end := len(doc.Src)
	for _, tok := range tokens {
		if tok.Type == hclsyntax.TokenCHeredoc {
			end = tok.Range.Start.Byte
			h.end = string(tok.Bytes[:len(tok.Bytes)-len(bytes.TrimLeft(tok.Bytes, " \t"))])
			break
		}
	}
	if !h.flush {
		return h
	}
	first := true
	for line := range bytes.Lines(doc.Src[tokens[0].Range.End.Byte:end]) {
		rest := bytes.TrimLeft(line, " \t")
		if indent := string(line[:len(line)-len(rest)]); len(bytes.TrimSpace(rest)) > 0 &&
			(first || len(indent) < len(h.indent)) {
			h.indent, first = indent, false
		}
	}
	return h
}

func (doc *document) isHeredoc(e hclsyntax.Expression) bool {
	t, ok := e.(*hclsyntax.TemplateExpr)
	return ok && bytes.HasPrefix(doc.Src[t.SrcRange.Start.Byte:], []byte("<"))
}
