package hclfile

import (
	"bytes"
	"unicode/utf8"

	"fingerpost/resolver/catalog"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// Limits on one file. The parser recurses with every bracket, operator and template directive, and a stack that
// overflows ends the process, so nothing beyond them ever reaches it.
const (
	MaxFileBytes = 1 << 20
	maxDepth     = 100 // brackets and templates
	maxForeign   = 100 // HCL tokens that this language does not use: operators, references, interpolations
	maxNumber    = 64  // bytes of a number; parsing one takes time in the square of its length
	// maxMelding bounds the bytes that the parser moves to join the lines of texts: its time grows with the square of
	// their number. 10,000 lines of one text of half a MiB fit, which takes about half a second.
	maxMelding = 4_000_000_000
)

// melding estimates the bytes moved for one text with that many pieces (lines, escapes) and bytes.
func melding(pieces, size int) int { return 8*pieces*pieces + pieces*size/2 }

// Heavy reports whether a text with that many pieces takes more than a quarter of the parse time that the guard allows
// a file.
func Heavy(pieces int, s string) bool { return melding(pieces, len(s)) > maxMelding/4 }

// bom is the UTF-8 byte order mark, which some editors write.
var bom = []byte("\xef\xbb\xbf")

// guard refuses files that must not reach the parser, or would only give misleading errors. Without diagnostics, parse.
func (s *Source) guard() Diagnostics {
	if len(s.Src) > MaxFileBytes {
		return Diagnostics{FileProblem(s.path, "the file is larger than 1 MiB",
			"split it: any number of files is read; long mail bodies can stand in files of their own, see file()")}
	}
	if !utf8.Valid(s.Src) || bytes.IndexByte(s.Src, 0) >= 0 {
		return Diagnostics{s.badEncoding()}
	}
	if catalog.IsLFSPointer(s.Src) {
		return Diagnostics{FileProblem(s.path, "the file "+catalog.LFSPointerText, "")}
	}
	if bytes.Contains(s.Src, []byte("<<<<<<< ")) {
		if d, bad := s.guardConflict(); bad {
			return Diagnostics{d}
		}
	}
	if _, many := tokenStarts(s.Src, maxTokens); !many && roughlyFlat(s.Src) {
		return nil
	}
	if len(s.Src) > probeBytes { // hostile content mostly shows early, and then costs little
		if d, bad := s.guardTokens(s.probe()); bad {
			return Diagnostics{d}
		}
	}
	if d, bad := s.guardTokenStarts(); bad {
		return Diagnostics{d}
	}
	if d, bad := s.guardTokens(s.Tokens()); bad {
		return Diagnostics{d}
	}
	return nil
}

// probeBytes is how much of a large file is lexed first.
const probeBytes = 64 << 10

// probe returns the tokens of the first lines.
func (s *Source) probe() hclsyntax.Tokens {
	end := 1 + bytes.LastIndexByte(s.Src[:probeBytes], '\n')
	if end == 0 {
		end = s.runeStart(probeBytes, 0)
	}
	tokens, _ := hclsyntax.LexConfig(s.Src[:end], s.path, hcl.InitialPos)
	return tokens
}

// badEncoding reports what a file is that is not UTF-8 text.
func (s *Source) badEncoding() Diagnostic {
	at, summary, detail := 0, "the file is UTF-16 text", "save it as UTF-8"
	if !bytes.HasPrefix(s.Src, []byte{0xff, 0xfe}) && !bytes.HasPrefix(s.Src, []byte{0xfe, 0xff}) {
		at = bytes.IndexByte(s.Src, 0)
		summary, detail = "the file holds a NUL byte", "it seems to be binary or UTF-16; a config file is UTF-8 text"
	}
	if at < 0 {
		at = 0
		for r, n := utf8.DecodeRune(s.Src); r != utf8.RuneError || n > 1; r, n = utf8.DecodeRune(s.Src[at:]) {
			at += n
		}
		summary, detail = "the file is not valid UTF-8", "save it as UTF-8; this byte belongs to another encoding"
	}
	if bytes.HasPrefix(s.Src, []byte("\x00GITCRYPT\x00")) {
		summary, detail = "the file is encrypted by git-crypt", `run "git-crypt unlock" in this clone`
	}
	s.broken, s.hostile = true, true
	d := s.diagnostic(Error, s.rangeAt(at, at+1), summary, detail)
	d.Snippet, d.mark = "", [2]int{} // binary to the eye
	return d
}

// guardConflict refuses git's conflict markers, also inside heredocs, whose text would be mailed.
func (s *Source) guardConflict() (Diagnostic, bool) {
	open, middle := -1, -1
	for at := 0; at < len(s.Src); {
		end := s.lineEnd(at)
		line := bytes.TrimSuffix(s.Src[at:end], []byte{'\r'})
		switch {
		case open < 0 && bytes.HasPrefix(line, []byte("<<<<<<< ")):
			open = at
		case open >= 0 && string(line) == "=======":
			middle = at
		case middle >= 0 && bytes.HasPrefix(line, []byte(">>>>>>> ")):
			s.broken = true
			return s.diagnostic(Error, s.rangeAt(open, s.lineEnd(open)), "the file holds an unresolved merge conflict",
				"it ends at "+s.at(s.rangeAt(at, at))+"; keep what is right of both sides and delete the three marker lines"), true
		}
		at = end + 1
	}
	return Diagnostic{}, false
}

// guardKeys reports every full key in the file.
func (s *Source) guardKeys() (ds Diagnostics) {
	for from := 0; len(ds) < maxDiagnostics; {
		start, end := catalog.FindKeyText(s.Src[from:])
		if start < 0 {
			break
		}
		ds = append(ds, s.diagnostic(Error, s.rangeAt(from+start, from+end), "a full API key stands in the file",
			"whoever can read the file or its history can use it: make a new one with \"fingerpost keys rotate\", and keep "+
				"only the hash here"))
		from += end
	}
	return ds
}

// roughlyFlat reports whether a file is so plain that its tokens need not be checked before parsing, which saves a
// third of the time. It counts bytes that could be brackets, operators or pieces of text, in any context. {{name}} is
// balanced in every context and passes.
func roughlyFlat(src []byte) bool {
	brackets, operators, pieces, digits := 0, 0, 0, 0
	for i := 0; i < len(src); i++ {
		c := src[i]
		if c >= '0' && c <= '9' {
			if digits++; digits > maxNumber/2 {
				return false
			}
			continue
		}
		digits = 0
		switch c {
		case '{':
			if i+1 < len(src) && src[i+1] == '{' {
				if rest := bytes.TrimLeft(src[i+2:], placeholderBytes); bytes.HasPrefix(rest, []byte("}}")) {
					i = len(src) - len(rest) + 1
					continue
				}
			}
			brackets++
		case '[', '(', '!', '*', '?':
			brackets++
		case '-':
			if next := bytes.TrimLeft(src[i+1:min(i+8, len(src))], " \t\r\n"); len(next) == 0 || next[0] == '-' {
				brackets++
			}
		case '+', '.', '/', '<', '>', '&', '|', ':':
			operators++
		case '$', '%':
			pieces += 2
			operators++
		case '\n':
			pieces++
		}
	}
	return brackets <= maxForeign && operators <= plainOperators && melding(pieces, len(src)) <= maxMelding
}

// plainOperators is how many bytes outside of text may be operators.
const plainOperators = 4096

// placeholderBytes are the bytes of a name between {{ and }}.
const placeholderBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_. "

// A census is the running counts of guardTokens.
type census struct {
	depth, foreign      int
	pieces, size, moved int              // of the present text, and the work for the previous ones
	first               *hclsyntax.Token // the first foreign token
	quote, unclosed     *hclsyntax.Token // the last opening quote, and the first whose line ended before it was closed
}

// guardTokens refuses nesting, foreign tokens, numbers and texts beyond the limits, and too many tokens. The lexer does
// not recurse.
func (s *Source) guardTokens(tokens hclsyntax.Tokens) (d Diagnostic, bad bool) {
	s.broken, s.hostile = true, true // for the snippet
	var c census
	for i := range tokens {
		tok := &tokens[i]
		c.count(tok, i > 0 && tokens[i-1].Type == hclsyntax.TokenMinus)
		switch {
		case c.unclosed != nil && (c.depth > maxDepth || c.foreign > maxForeign):
			// The lexer read all text after the quote as code.
			return s.unclosedText(*c.unclosed), true
		case c.depth > maxDepth:
			return s.diagnostic(Error, tok.Range, "brackets and templates are nested too deeply",
				"100 levels are allowed; a config file needs about five. Is a quote or bracket not closed before here?"), true
		case c.foreign > maxForeign:
			return s.diagnostic(Error, c.first.Range,
				"the file is full of what a config file cannot hold: operators, references or interpolations, from here on",
				literalsOnly+"; "+escapeTemplate), true
		case tok.Type == hclsyntax.TokenNumberLit && len(tok.Bytes) > maxNumber:
			return s.diagnostic(Error, tok.Range, "this number has too many digits", "64 characters are allowed"), true
		case c.moved+melding(c.pieces, c.size) > maxMelding:
			return s.diagnostic(Error, tok.Range, "the texts up to here have too many lines or escapes",
				"put long mail bodies into files of their own: body_html = file(\"mail/welcome.html\")"), true
		}
	}
	if len(tokens) > maxTokens+1 { // the last one is the end of the file
		return s.diagnostic(Error, tokens[maxTokens].Range,
			"the file has more than 400,000 tokens (names, values, signs and line ends)",
			"1 MiB of ordinary configuration has half of that. Split the file: any number of files is read"), true
	}
	s.broken, s.hostile = false, false
	return d, false
}

func (c *census) count(tok *hclsyntax.Token, afterMinus bool) {
	switch tok.Type {
	case hclsyntax.TokenQuotedLit, hclsyntax.TokenStringLit, hclsyntax.TokenQuotedNewline:
		c.pieces++
		c.size += len(tok.Bytes)
		if tok.Type == hclsyntax.TokenQuotedNewline && c.unclosed == nil {
			c.unclosed = c.quote
		}
		return
	}
	c.moved, c.pieces, c.size = c.moved+melding(c.pieces, c.size), 0, 0
	switch tok.Type {
	case hclsyntax.TokenOQuote:
		c.depth++
		c.quote = tok
	case hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen, hclsyntax.TokenOHeredoc:
		c.depth++
	case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen, hclsyntax.TokenCQuote,
		hclsyntax.TokenCHeredoc,
		hclsyntax.TokenTemplateSeqEnd:
		c.depth--
	case hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl:
		c.depth++
		c.foreign++
	case hclsyntax.TokenMinus:
		if afterMinus {
			c.foreign++
		}
	case hclsyntax.TokenIdent, hclsyntax.TokenNumberLit, hclsyntax.TokenComment, hclsyntax.TokenNewline,
		hclsyntax.TokenEqual, hclsyntax.TokenColon, hclsyntax.TokenComma, hclsyntax.TokenEOF:
	default:
		c.foreign++
	}
	if c.first == nil && c.foreign > 0 {
		c.first = tok
	}
}
