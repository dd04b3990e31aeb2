package hclfile

import (
	"bytes"
	"regexp"
	"slices"

	"fingerpost/resolver/catalog"
)

// DecodeProject decodes only the block of src that declares a project. src was accepted before. A file of 1 MiB takes
// 0.4 s of CPU to decode as a whole, and one page of the console asks for two such files three times. nil: the block
// cannot be told from the rest without the parser, so the caller decodes the whole file.
func DecodeProject(path string, src []byte, project catalog.UUID) *Result {
	id := []byte(project.String())
	return decodePart(path, src, func(p *part) bool {
		return p.kind == "project" && (catalog.DeriveProjectUUID(p.label) == project || bytes.Contains(p.text, id))
	}, func(d *catalog.Declared) bool { return len(d.Projects) == 1 && d.Projects[0].Project.UUID == project })
}

// DecodeDefaults is DecodeProject for the defaults block.
func DecodeDefaults(path string, src []byte) *Result {
	return decodePart(path, src, func(p *part) bool { return p.kind == "defaults" },
		func(d *catalog.Declared) bool { return d.Defaults != nil })
}

// decodePart decodes the blocks of the top level that may be the right one, until one is.
func decodePart(path string, src []byte, may func(p *part) bool, is func(d *catalog.Declared) bool) (found *Result) {
	eachPart(src, func(p *part) bool {
		if !may(p) {
			return true
		}
		r, ds := Decode(path, p.text, Options{})
		if !slices.ContainsFunc(ds, func(d Diagnostic) bool { return d.Severity == Error }) && is(r.Declared) {
			r.before = bytes.Count(src[:p.from], []byte{'\n'})
			found = r
		}
		return found == nil
	})
	return found
}

// A part is one block of a file's top level: whole lines.
type part struct {
	from        int // its first byte
	text        []byte
	kind, label string
}

// partHeader is a block's header with at most one label.
var partHeader = regexp.MustCompile(`^([a-z_]+)[ \t]*(?:"([^"\\]*)")?[ \t]*$`)

// eachPart yields the blocks of the top level of a valid file in their order, until yield returns false or something
// comes that is rare and hard to read without a lexer: an interpolation, or a heredoc with an end that looks like one.
func eachPart(src []byte, yield func(p *part) bool) {
	i := 0
	if bytes.HasPrefix(src, bom) {
		i = len(bom)
	}
	depth, start := 0, -1 // start is the first byte of the statement on the top level
	var open *part        // nil: a block that is not yielded
	for i < len(src) {
		c, at := src[i], i
		switch {
		case c == '#', bytes.HasPrefix(src[i:], []byte("//")):
			i = endOfLine(src, i)
			continue
		case bytes.HasPrefix(src[i:], []byte("/*")):
			n := bytes.Index(src[i+2:], []byte("*/"))
			if n < 0 {
				return
			}
			i += n + 4
			continue
		case bytes.HasPrefix(src[i:], []byte("<<")):
			i = endOfHeredoc(src, i)
		case c == '"':
			i = endOfQuoted(src, i)
		default:
			i++
		}
		if i < 0 {
			return
		}
		switch c {
		case ' ', '\t', '\r':
			continue
		case '\n':
			if depth == 0 {
				start = -1
			}
			continue
		case '{', '[', '(':
			if depth++; c == '{' && depth == 1 {
				open = partAt(src, start, at)
			}
			continue
		case '}', ']', ')':
			if depth--; depth < 0 {
				return
			}
			if depth == 0 && c == '}' && open != nil {
				open.text = src[open.from:min(endOfLine(src, at)+1, len(src))] // a CR alone is an error
				if !yield(open) {
					return
				}
				open = nil
			}
			continue
		}
		if depth == 0 && start < 0 {
			start = at
		}
	}
}

// partAt returns the part whose header is src[from:to], nil if other text stands on its first line.
func partAt(src []byte, from, to int) *part {
	if from < 0 {
		return nil
	}
	line := 1 + bytes.LastIndexByte(src[:from], '\n')
	m := partHeader.FindSubmatch(src[from:to])
	if m == nil || len(bytes.Trim(bytes.TrimPrefix(src[line:from], bom), " \t")) > 0 {
		return nil
	}
	return &part{from: line, kind: string(m[1]), label: string(m[2])}
}

// endOfLine returns the end of the line that at is on, without its line feed.
func endOfLine(src []byte, at int) int {
	if n := bytes.IndexByte(src[at:], '\n'); n >= 0 {
		return at + n
	}
	return len(src)
}

// endOfQuoted returns the end of the text in quotes that begins at at, -1 if that takes a lexer.
func endOfQuoted(src []byte, at int) int {
	for i := at + 1; i < len(src); i++ {
		switch src[i] {
		case '\\':
			i++
		case '\n':
			return -1
		case '"':
			if interpolates(src[at:i]) {
				return -1
			}
			return i + 1
		}
	}
	return -1
}

// heredocHead is the first line of a heredoc.
var heredocHead = regexp.MustCompile(`^<<(-?)([A-Za-z_][A-Za-z0-9_]*)\r?\n`)

// endOfHeredoc returns the end of the heredoc that begins at at, before its last line feed, -1 if that takes a lexer.
func endOfHeredoc(src []byte, at int) int {
	m := heredocHead.FindSubmatch(src[at:min(len(src), at+256)])
	if m == nil {
		return -1
	}
	for i := at + len(m[0]); i < len(src); i = endOfLine(src, i) + 1 {
		end := endOfLine(src, i)
		line := bytes.TrimSuffix(src[i:end], []byte{'\r'})
		word := bytes.TrimSpace(line)
		switch {
		case !bytes.HasPrefix(word, m[2]):
		case len(word) == len(m[2]) && bytes.HasSuffix(line, m[2]) && (len(line) == len(word) || len(m[1]) > 0):
			if interpolates(src[at:i]) {
				return -1
			}
			return end
		default: // close to an end
			return -1
		}
	}
	return -1
}

// interpolates reports whether a text may have an interpolation. $${ and %%{ are escapes.
func interpolates(text []byte) bool {
	for i := 0; i+1 < len(text); i++ {
		if c := text[i]; c != '$' && c != '%' {
			continue
		}
		if text[i+1] == '{' {
			return true
		}
		if i+2 < len(text) && text[i+1] == text[i] {
			if text[i+2] == text[i] {
				return true // which of them escapes is for the lexer
			}
			i += 2
		}
	}
	return false
}
