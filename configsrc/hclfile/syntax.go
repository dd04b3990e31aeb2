package hclfile

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// parse sets s.Body to the tree, as far as the parser got, and returns one diagnostic for each cause. sound is the
// number of bytes before the first line that the parser could not read. The decoder reports problems in these bytes
// only.
func (s *Source) parse() (sound int, ds Diagnostics) {
	defer func() {
		if recover() != nil { // a panic of the parser must not end the service
			s.Body, s.broken, sound = &hclsyntax.Body{}, true, 0
			ds = Diagnostics{FileProblem(s.path, "the parser failed on this file",
				"it is not valid HCL in a way that the parser did not foresee")}
		}
	}()
	file, found := hclsyntax.ParseConfig(s.Src, s.path, hcl.InitialPos)
	s.Body = file.Body.(*hclsyntax.Body)
	sound = len(s.Src) + 1
	if !found.HasErrors() {
		return sound, nil
	}
	if what, at := s.foreign(); what != "" {
		s.broken = true
		return 0, Diagnostics{s.diagnostic(Error, s.rangeAt(at, s.lineEnd(at)), what, "config files are HCL: "+example)}
	}
	slices.SortStableFunc(found, func(a, b *hcl.Diagnostic) int { return subject(a).Start.Byte - subject(b).Start.Byte })
	// Unless the only errors are repeated attributes, secrets are found by other means.
	for _, d := range found {
		s.broken = s.broken || d.Summary != attributeRedefined
	}
	lastLine, ended := 0, false
	for _, d := range found {
		rng := subject(d)
		switch {
		case len(ds) > maxDiagnostics:
			return sound, ds
		case d.Summary == attributeRedefined:
			ds = append(ds, s.redefined(rng))
			continue
		case ended || rng.Start.Line == lastLine:
			continue
		}
		lastLine = rng.Start.Line
		ended = slices.Contains(swallowing, d.Summary)
		diag, isUnclosed := s.unclosed(d, rng)
		if !isUnclosed {
			diag = s.syntaxError(d, rng)
		}
		ds = append(ds, diag)
		sound = min(sound, s.lineStart(clamp(diag.Start.Byte, len(s.Src))))
	}
	return sound, ds
}

// unclosed finds the beginning of a string or heredoc without an end. The parser reports the end of the line or of the
// file instead, which does not help.
func (s *Source) unclosed(d *hcl.Diagnostic, rng hcl.Range) (diag Diagnostic, ok bool) {
	if !slices.Contains(swallowing[:unclosedTexts], d.Summary) {
		return diag, false
	}
	var open []hclsyntax.Token
	for _, tok := range s.Tokens() {
		if tok.Range.Start.Byte >= rng.Start.Byte && tok.Type != hclsyntax.TokenEOF {
			break
		}
		switch tok.Type {
		case hclsyntax.TokenOQuote, hclsyntax.TokenOHeredoc:
			open = append(open, tok)
		case hclsyntax.TokenCQuote, hclsyntax.TokenCHeredoc:
			open = open[:max(0, len(open)-1)]
		}
	}
	if len(open) == 0 {
		return diag, false
	}
	return s.unclosedText(open[len(open)-1]), true
}

// unclosedText reports a string or heredoc that begins with this token and does not end.
func (s *Source) unclosedText(begin hclsyntax.Token) Diagnostic {
	from := begin.Range.Start.Byte
	summary := "the string is not closed"
	detail := "it must end on its line; for text of several lines write a heredoc: <<-EOT, the text, and EOT on a line " +
		"of its own"
	if begin.Type == hclsyntax.TokenOHeredoc {
		summary = "the heredoc is not closed"
		detail = "a line with nothing but " + string(bytes.Trim(begin.Bytes, "<- \t\r\n")) +
			" must end it, and a line feed must follow"
	}
	return s.diagnostic(Error, s.rangeAt(from, s.lineEnd(from)), summary, detail)
}

const attributeRedefined = "Attribute redefined"

// swallowing are the parser errors after which it takes text for code and code for text: later errors mean nothing.
var swallowing = []string{
	"Invalid multi-line string", "Unterminated template string", "Unterminated string literal",
	"Unclosed configuration block", "Unclosed configuration body", "Unclosed template interpolation sequence",
}

// unclosedTexts is how many of them are about strings and heredocs.
const unclosedTexts = 3

func subject(d *hcl.Diagnostic) hcl.Range {
	if d.Subject == nil {
		return hcl.Range{Start: hcl.InitialPos, End: hcl.InitialPos}
	}
	return *d.Subject
}

// syntaxError makes a diagnostic of a parser's error. Its detail may quote the source, so it is dropped next to a
// secret.
func (s *Source) syntaxError(d *hcl.Diagnostic, rng hcl.Range) Diagnostic {
	detail := d.Detail
	if s.hidden(rng) {
		detail = ""
	}
	summary := lowerFirst(d.Summary)
	if p, is := plainer[d.Summary]; is {
		summary, detail = p.summary, p.detail
	}
	if s.Text(rng) == "}" {
		summary, detail = `this "}" closes nothing`, "there is one too many, here or above"
	}
	if s.inTemplate(rng.Start.Byte) {
		detail = escapeTemplate
	}
	return s.diagnostic(Error, rng, summary, lowerFirst(strings.TrimSuffix(detail, ".")))
}

// example is shown where a file is something else than HCL.
const example = `project "acme" { name = "Acme" }`

// plainer says in other words what the parser says most often.
var plainer = map[string]struct{ summary, detail string }{
	"Unclosed configuration block": {"the block is not closed",
		"it needs a } after its last line, or one of the blocks in it does"},
	"Argument or block definition required": {"this is neither an attribute nor a block",
		`an attribute has an equals sign, as in name = "Acme"; a block has braces, as in ` + example},
	"Missing attribute separator": {"two attributes have nothing between them",
		`put a comma there, or each on a line of its own: { a = 1, b = 2 }`},
	"Invalid single-argument block definition": {"a block on one line has one attribute",
		"put each attribute, and the closing brace, on a line of its own"},
}

var (
	yaml = regexp.MustCompile(`^(?:---|- |[\w.-]+:)(?:\s|$)`)
	json = regexp.MustCompile(`^(?:\[|\{\s*(?:["{}]|$))`)
)

// foreign says which other language a file with errors is written in, judged by the beginning of its text, and where
// that is. It returns "" if none is known.
func (s *Source) foreign() (what string, at int) {
	for line := range bytes.Lines(s.Src) {
		text := bytes.TrimSpace(line)
		switch {
		case len(text) == 0 || text[0] == '#':
			at += len(line)
			continue
		case json.Match(text):
			return "this is JSON", at
		case text[0] == '{':
			return `nothing stands before the first "{"`, at
		case yaml.Match(text):
			return "this is YAML", at
		}
		break
	}
	return "", 0
}

// inTemplate reports whether at is inside an interpolation or directive, or at its beginning.
func (s *Source) inTemplate(at int) bool {
	depth := 0
	for _, tok := range s.Tokens() {
		if tok.Range.Start.Byte > at {
			break
		}
		switch tok.Type {
		case hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl:
			depth++
		case hclsyntax.TokenTemplateSeqEnd:
			if depth--; depth == 0 && tok.Range.Start.Byte == at {
				return true
			}
		}
	}
	return depth > 0
}

// redefined finds the first attribute of the same name in the same block.
func (s *Source) redefined(rng hcl.Range) Diagnostic {
	name := s.Text(rng)
	body := s.Body
next:
	for {
		for _, block := range body.Blocks {
			if block.Body != nil && block.OpenBraceRange.End.Byte <= rng.Start.Byte &&
				rng.End.Byte <= block.CloseBraceRange.Start.Byte {
				body = block.Body
				continue next
			}
		}
		break
	}
	detail := "delete one of the two"
	if first := body.Attributes[name]; first != nil {
		detail = "the first is at " + s.at(first.NameRange) + "; " + detail
	}
	return s.diagnostic(Error, rng, "attribute "+Quoted(name)+" is set twice", detail)
}

func lowerFirst(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	if n == 0 || len(s) > n && unicode.IsUpper(rune(s[n])) {
		return s
	}
	return string(unicode.ToLower(r)) + s[n:]
}
