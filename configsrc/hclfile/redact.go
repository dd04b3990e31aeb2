package hclfile

import (
	"bytes"
	"cmp"
	"regexp"
	"slices"
	"strings"

	"fingerpost/resolver/catalog"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// secretNames are the attributes whose values are never shown in a snippet.
var secretNames = []string{"password", "jwt_secret", "client_secret", "oauth_client_secret", "secret", "hash"}

// secretWord finds words that name a secret; secretName tells the harmless ones apart.
var secretWord = regexp.MustCompile(`(?i)[a-z0-9_-]*(?:pass|secret|hash|token|pwd|jwt|cred)[a-z0-9_-]*`)

// secretName reports whether a value under this name may be a secret: one of secretNames, or a similar or misspelled
// name that is not another attribute's.
func secretName(name string) bool {
	name = strings.ToLower(name)
	if slices.Contains(secretNames, name) {
		return true
	}
	if slices.Contains(allAttributes, name) {
		return false
	}
	if secretWord.MatchString(name) {
		return true
	}
	return slices.ContainsFunc(secretNames, func(s string) bool { return distance(name, s) <= 2 })
}

// privateKey finds private keys, in PEM and as the member of a JWK, also with the quotes of HCL.
var privateKey = regexp.MustCompile(`PRIVATE KEY-----(?s:.*?)(?:-----END|\z)|\\?"d\\?"\s*:\s*\\?"[\w-]{8,}`)

// secretSpans returns the bytes of s that must not be shown, sorted and disjoint. The syntax tree is exact but may be
// missing or wrong in a broken file, so the lines are searched as well, where it hides too much rather than too little.
func (s *Source) secretSpans() []span {
	s.once.Do(func() {
		var found []span
		if s.Body != nil {
			found = treeSecrets(s.Body, found)
		}
		if (s.broken || s.Body == nil) && !s.hostile {
			found = s.tokenSecrets(found)
		}
		found = s.lineSecrets(found)
		for from := 0; ; {
			start, end := catalog.FindKeyText(s.Src[from:])
			if start < 0 {
				break
			}
			found = append(found, span{from + start, from + end})
			from += end
		}
		for _, at := range privateKey.FindAllIndex(s.Src, -1) { // one may stand where a public key belongs
			found = append(found, span{at[0], at[1]})
		}
		s.secrets = joinSpans(found)
	})
	return s.secrets
}

// Redact returns a file with "(redacted)" in place of everything that snippets hide, to show or log it. Line numbers
// stay the same.
func Redact(src []byte) []byte {
	s := &Source{Src: src}
	if ds := s.guard(); len(ds) == 0 {
		s.parse()
	}
	var out []byte
	at := 0
	for _, x := range s.secretSpans() {
		out = append(append(out, src[at:x.from]...), redacted...)
		out = append(out, bytes.Repeat([]byte{'\n'}, bytes.Count(src[x.from:x.to], []byte{'\n'}))...)
		at = x.to
	}
	return append(out, src[at:]...)
}

// Masked is Redact for a diff: a sealed value is shown as sealed("…"), and an env() or file() call as it is, because it
// names a secret's place and is none. In a valid file the comment behind such a call is shown with it.
func Masked(src []byte) []byte {
	s := &Source{Src: src}
	if ds := s.guard(); len(ds) == 0 {
		s.parse()
	}
	ends := map[int]int{} // of the values of secret attributes, by their beginnings
	if s.Body != nil && !s.broken {
		for _, x := range treeSecrets(s.Body, nil) {
			ends[x.from] = x.to
		}
	}
	var out []byte
	at := 0
	for _, x := range s.secretSpans() {
		out = append(out, src[at:x.from]...)
		value := src[x.from:x.to]
		end := ends[x.from]
		if at = x.to; placeCall.Match(value) ||
			end > 0 && end < x.to && placeCall.Match(src[x.from:end]) && s.isRemark(src[end:x.to]) {
			out = append(out, value...)
			continue
		}
		shown := redacted
		if bytes.HasPrefix(value, []byte("sealed(")) {
			shown = `sealed("…")`
		}
		out = append(append(out, shown...), bytes.Repeat([]byte{'\n'}, bytes.Count(value, []byte{'\n'}))...)
	}
	return append(out, src[at:]...)
}

// placeCall is a call that names where a secret is, and nothing else.
var placeCall = regexp.MustCompile(`^(?:env|file)\("[^"$%\\\n]*"\)\s*$`)

// remark is a comment up to the end of the line, in which nothing looks like a value.
var remark = regexp.MustCompile(`^[ \t]*(?:#|//)[^"=\n]*$`)

// isRemark reports whether a text is nothing but a comment that may be shown next to a secret's place. A comment may
// still have an earlier value of the secret.
func (s *Source) isRemark(text []byte) bool {
	return remark.Match(text) && s.secretInLine(text) < 0 && !bytes.Contains(text, []byte(catalog.KeyPrefix))
}

// hidden reports whether a range touches a secret.
func (s *Source) hidden(rng hcl.Range) bool {
	return slices.ContainsFunc(s.secretSpans(), func(x span) bool {
		return rng.Start.Byte < x.to && max(rng.End.Byte, rng.Start.Byte+1) > x.from
	})
}

func joinSpans(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Or(a.from-b.from, a.to-b.to) })
	joined := spans[:0]
	for _, x := range spans {
		if x.to <= x.from {
			continue
		}
		if n := len(joined); n > 0 && x.from <= joined[n-1].to {
			joined[n-1].to = max(joined[n-1].to, x.to)
			continue
		}
		joined = append(joined, x)
	}
	return joined
}

// treeSecrets adds the values of secret attributes. Bodies nest no deeper than maxDepth.
func treeSecrets(body *hclsyntax.Body, found []span) []span {
	for _, attr := range body.Attributes {
		if attr != nil && attr.Expr != nil && secretName(attr.Name) {
			rng := attr.Expr.Range()
			found = append(found, span{rng.Start.Byte, rng.End.Byte})
		}
	}
	for _, block := range body.Blocks {
		if schemaOf(block.Type) == nil && secretName(block.Type) { // a typo, such as a forgotten equals sign
			found = append(found, span{block.TypeRange.End.Byte, block.CloseBraceRange.End.Byte})
		}
		if block.Body != nil {
			found = treeSecrets(block.Body, found)
		}
	}
	return found
}

// tokenSecrets adds the tokens between the equals sign after a secret's name and the end of that statement.
func (s *Source) tokenSecrets(found []span) []span {
	tokens := s.Tokens()
	depth, open, start := 0, -1, 0
	for i, tok := range tokens {
		switch tok.Type {
		case hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen, hclsyntax.TokenOQuote,
			hclsyntax.TokenOHeredoc,
			hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl:
			depth++
		case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen, hclsyntax.TokenCQuote,
			hclsyntax.TokenCHeredoc,
			hclsyntax.TokenTemplateSeqEnd:
			depth--
		case hclsyntax.TokenEqual:
			if open < 0 && i > 0 && tokens[i-1].Type == hclsyntax.TokenIdent && secretName(string(tokens[i-1].Bytes)) {
				open, start = depth, tok.Range.End.Byte
				if i+1 < len(tokens) && tokens[i+1].Range.Start.Line == tok.Range.Start.Line {
					start = tokens[i+1].Range.Start.Byte // without the blanks between, which look better shown
				}
			}
		}
		if open >= 0 && (EndsLine(tok) && depth <= open || tok.Type == hclsyntax.TokenEOF) {
			found = append(found, span{start, tok.Range.End.Byte})
			open = -1
		}
	}
	return found
}

var heredocMark = regexp.MustCompile(`<<-?([\pL\pN_-]+)`)

// lineSecrets goes by lines alone, for text that the lexer cannot read: unclosed quotes, comments.
func (s *Source) lineSecrets(found []span) []span {
	var until []string // terminators of open heredocs that belong to secrets
	tail := 0          // lines that still belong to a value with an open quote or bracket
	for at := 0; at < len(s.Src); {
		end := s.lineEnd(at)
		line := s.Src[at:end]
		start := s.secretInLine(line)
		inside := len(until) > 0 || tail > 0
		if i := slices.Index(until, string(bytes.TrimSpace(line))); i >= 0 {
			until = slices.Delete(until, i, i+1)
		}
		if tail > 0 {
			if tail--; bytes.ContainsAny(line, "\")]}") {
				tail = 0
			}
		}
		if start >= 0 && s.broken {
			if m := heredocMark.FindSubmatch(line[start:]); m != nil && len(until) < maxOpenHeredocs {
				until = append(until, string(m[1]))
			} else if openEnded(line[start:]) {
				tail = 8
			}
		}
		if inside {
			start = 0
		}
		if start >= 0 {
			found = append(found, span{at + start, end})
		}
		at = end + 1
	}
	return found
}

// maxOpenHeredocs bounds the work on a file that opens heredocs and never closes them; everything is hidden then
// anyway.
const maxOpenHeredocs = 20

// secretInLine returns where the value of the first secret in the line may begin, or -1. In a valid file it needs an
// equals sign or colon after the name; in a broken one the name alone is enough, even in prose.
func (s *Source) secretInLine(line []byte) int {
	for _, m := range secretWord.FindAllIndex(line, -1) {
		name := string(line[m[0]:m[1]])
		if !secretName(name) {
			continue
		}
		rest := bytes.TrimLeft(line[m[1]:], "\"' \t")
		if len(rest) > 0 && (rest[0] == '=' || rest[0] == ':') {
			return len(line) - len(bytes.TrimLeft(rest[1:], " \t"))
		}
		if s.broken && slices.Contains(secretNames, strings.ToLower(name)) {
			return m[1]
		}
	}
	return -1
}

// openEnded reports whether a value seems to go on in the next line.
func openEnded(rest []byte) bool {
	rest = bytes.TrimSpace(rest)
	if len(rest) == 0 {
		return true
	}
	quotes := bytes.Count(rest, []byte{'"'}) - bytes.Count(rest, []byte(`\"`))
	open := bytes.Count(rest, []byte{'('}) + bytes.Count(rest, []byte{'['}) - bytes.Count(rest,
		[]byte{')'}) - bytes.Count(rest, []byte{']'})
	return quotes%2 != 0 || open > 0
}
