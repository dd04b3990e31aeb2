package template

import (
	"bytes"
	"html"
	"strings"
)

// A markup walks over an HTML text like a browser's tokenizer (WHATWG HTML 13.2.5), to find the context of each
// placeholder. It does not validate the HTML: parts without a placeholder may be wrong.
//
// A placeholder is refused wherever an escaped or empty value could change which tags and attributes there are.
//
// The tokenizer of x/net/html cannot do this: it says neither where an attribute's value stands nor whether it has
// quotes, and in a script it forgets <!-- at the next < that begins no tag, so it ends some scripts before browsers do.
type markup struct {
	lint          *lint
	src           string // the text with everything in double braces replaced by letters, so that it ends nothing
	holes         []hole
	next          int  // the first hole that was not reached yet
	inConditional bool // within a conditional comment, which only Outlook reads
	open          int  // start of the last construct found to be never closed
	branches      []branch
}

func newMarkup(l *lint, holes []hole) *markup {
	src := []byte(l.text)
	for _, h := range holes {
		copy(src[h.start:h.end], bytes.Repeat([]byte{'x'}, h.end-h.start))
	}
	return &markup{lint: l, src: string(src), holes: holes}
}

// Contexts in which no placeholder, or no tag of a condition, may be.
const (
	inTagName   = "the name of a tag"
	inAttribute = "the name of an attribute"
	inUnquoted  = "an attribute's value without quotes; put quotes around it"
	inScript    = "a script; put it into the text or into an attribute's quoted value"
	inStyle     = "a style sheet; put it into the text or into an attribute's quoted value"
	inOpening   = "what <! opens"
	inScheme    = "what may be a link's scheme; begin the address with it, or with https:// or the like"
	inCode      = "an address that is a script or a document of its own (javascript:, data: and the like)"
	inNested    = "an element whose content is text to some readers and HTML to others, behind a <"
	inTag       = "a tag or a comment; put conditions around whole elements"
	inComment   = "a comment, also not in one for Outlook; put conditions around whole elements"
	inCommentTo = "a comment directly before >, where its value could end the comment"
)

// refusedAttributes are those whose value is more than text: HTML or a list of addresses. Attributes that begin with on
// hold scripts.
var refusedAttributes = map[string]string{
	"srcdoc": "srcdoc, which is HTML of its own",
	"srcset": "srcset, which is a list of addresses", "imagesrcset": "imagesrcset, which is a list of addresses",
}

// refusedElements are those whose attributes may not contain a placeholder. The values of the last ones become
// attributes of other elements.
var refusedElements = map[string]bool{"meta": true, "base": true, "animate": true, "set": true}

// linkAttributes hold one address.
var linkAttributes = map[string]bool{"action": true, "formaction": true, "background": true, "poster": true,
	"data": true, "cite": true,
	"longdesc": true, "ping": true, "codebase": true, "manifest": true}

// refuse advances past the holes that begin before to and reports them. Invalid placeholders were reported already.
func (m *markup) refuse(to int, where string) {
	for ; m.has(to); m.next++ {
		m.refuseOne(&m.holes[m.next], where)
	}
}

func (m *markup) refuseOne(h *hole, where string) {
	if h.valid() && !h.refused {
		h.refused = true
		m.lint.add(h.start, h.end, "%s cannot stand in %s", h.text(), where)
	}
}

// allow advances past the holes that begin before to, in a place for values alone.
func (m *markup) allow(to int) {
	for ; m.has(to); m.next++ {
		if h := &m.holes[m.next]; h.op != Value {
			m.refuseOne(h, inTag)
		}
	}
}

// text advances past the holes that begin before to, in text.
func (m *markup) text(to int) {
	for ; m.has(to); m.next++ {
		if h := &m.holes[m.next]; h.op != Value {
			m.op(h)
		}
	}
}

// has reports whether a later hole begins before to.
func (m *markup) has(to int) bool { return m.next < len(m.holes) && m.holes[m.next].start < to }

// unclosed ends the walk in a construct that begins at start and has no end. Clients differ in how they go on from
// there, so no placeholder may be in it.
func (m *markup) unclosed(what string, start, end int) int {
	m.allow(end)
	if start < m.open { // such as a quote within a tag, which ends there too
		return end
	}
	for i := m.next - 1; i >= 0 && m.holes[i].start > start; i-- {
		if h := &m.holes[i]; h.valid() && !h.refused {
			m.lint.add(start, start+1, "%s is never closed, and a placeholder stands in it", what)
			m.open = start
			break
		}
	}
	return end
}

// content walks over text and tags.
func (m *markup) content(at, end int) {
	for m.has(end) {
		i := strings.IndexByte(m.src[at:end], '<')
		if i < 0 {
			break
		}
		at += i
		m.text(at)
		at = m.markupAt(at, end)
	}
	m.text(end)
}

// markupAt walks over the construct that a < begins and returns its end.
func (m *markup) markupAt(at, end int) int {
	rest := m.src[at+1 : end]
	switch {
	case rest == "":
		return end
	case isLetter(rest[0]):
		return m.startTag(at, end)
	case rest[0] == '!':
		return m.declaration(at, end)
	case rest[0] == '?':
		return m.bogusComment(at, end)
	case rest[0] == '/' && len(rest) > 1 && isLetter(rest[1]):
		name, to := m.tag(at, at+2, end)
		m.closes(name, at, to)
		return to
	case rest[0] == '/' && len(rest) > 1:
		return m.bogusComment(at, end)
	}
	return at + 1
}

// rawElements are those whose content has no tags. The value is the reason why a placeholder in it is refused, or "" if
// the content is text.
var rawElements = map[string]string{
	"script": inScript, "style": inStyle, "title": "", "textarea": "", "xmp": "", "iframe": "", "noembed": "",
	"noframes": "", "plaintext": "",
}

func (m *markup) startTag(open, end int) int {
	name, at := m.tag(open, open+1, end)
	m.opens(name, open, at)
	where, raw := rawElements[name]
	if !raw || !m.has(end) {
		return at
	}
	stop := -1
	switch name {
	case "script":
		stop = scriptEnd(m.src[at:end])
	case "plaintext":
	default:
		stop = rawEnd(m.src[at:end], "/"+name)
	}
	to := at + stop
	if stop < 0 {
		to = end
	}
	if where != "" {
		m.refuse(to, where)
		return to
	}
	nested := strings.IndexByte(m.src[at:to], '<') // within <svg> these elements hold tags
	for ; m.has(to); m.next++ {
		h := &m.holes[m.next]
		tail := strings.ToLower(m.src[max(at, h.start-len(name)-2):h.start])
		if i := strings.LastIndexByte(tail, '<'); i >= 0 && strings.HasPrefix("</"+name, tail[i:]) {
			m.refuseOne(h, inTagName)
		} else if nested >= 0 && at+nested < h.start {
			m.refuseOne(h, inNested)
		} else if stop < 0 {
			return m.unclosed("<"+name+">", open, end)
		} else if h.op != Value {
			m.op(h)
		}
	}
	return to
}

// tag walks over a tag, starting at its name, and returns the name and the end of the tag.
func (m *markup) tag(open, at, end int) (string, int) {
	n := m.until(at, end, "/>")
	m.refuse(n, inTagName)
	name := strings.ToLower(m.src[at:n])
	for at = n; ; {
		for at < end && (blank(m.src[at]) || m.src[at] == '/') {
			at++
		}
		if at >= end {
			return name, m.unclosed("this tag", open, end)
		}
		if m.src[at] == '>' {
			return name, at + 1
		}
		n := m.until(at+1, end, "/>=") // a leading = belongs to the name
		m.refuse(n, inAttribute)
		attr := strings.ToLower(m.src[at:n])
		if at = m.blanks(n, end); at < end && m.src[at] == '=' {
			at = m.value(name, attr, m.blanks(at+1, end), end)
		}
	}
}

// value walks over the value of an element's attribute.
func (m *markup) value(element, attr string, at, end int) int {
	if at >= end || m.src[at] == '>' {
		return at
	}
	quote := m.src[at]
	if quote != '"' && quote != '\'' {
		n := m.until(at, end, ">")
		m.refuse(n, inUnquoted)
		return n
	}
	n := strings.IndexByte(m.src[at+1:end], quote)
	if n < 0 {
		return m.unclosed("the quote", at, end)
	}
	n += at + 1
	attr = attr[strings.LastIndexByte(attr, ':')+1:] // xlink:href is an href
	switch {
	case !m.has(n):
	case refusedElements[element]:
		m.refuse(n, "<"+element+">")
	case strings.HasPrefix(attr, "on"):
		m.refuse(n, inScript)
	case attr == "style":
		m.style(at+1, n)
	case attr == "bgcolor":
		m.wholeColour(at+1, n)
	case refusedAttributes[attr] != "":
		m.refuse(n, refusedAttributes[attr])
	case linkAttributes[attr] || strings.HasSuffix(attr, "href") || strings.HasSuffix(attr, "src"):
		m.address(at+1, n)
	}
	m.allow(n)
	return n + 1
}

// ignoredInURLs removes what URLs ignore (WHATWG URL, 4.4).
var ignoredInURLs = strings.NewReplacer("\t", "", "\n", "", "\r", "")

// address checks a value that is an address. The text before its first placeholder decides its kind.
func (m *markup) address(at, end int) {
	h := &m.holes[m.next]
	before := html.UnescapeString(m.src[at:h.start])
	before = strings.TrimLeftFunc(before, func(r rune) bool { return r <= ' ' })
	before = ignoredInURLs.Replace(before)
	scheme, rest, _ := strings.Cut(strings.ToLower(before), ":")
	switch {
	case before == "":
		h.link = true
	case schemeAlone[strings.ToLower(before)]:
		h.rest = true
	case mayBeScheme(before): // with a value of "script:…" java{{a}} would be a link of another kind
		m.refuseOne(h, inScheme)
	case scheme == "javascript" || scheme == "vbscript" || scheme == "data" && !isImageData(rest):
		m.refuse(end, inCode)
	}
}

// schemeAlone has what editors put before a placeholder that is a whole address.
var schemeAlone = map[string]bool{"http://": true, "https://": true, "mailto:": true, "tel:": true}

// isImageData reports whether the text after data: begins an image type that is no document, whatever follows.
func isImageData(rest string) bool {
	kind, _, complete := strings.Cut(rest, ",")
	return complete && strings.HasPrefix(kind, "image/") && !strings.HasPrefix(kind, "image/svg")
}

// mayBeScheme reports whether the non-empty beginning of a link may be the beginning of a scheme (RFC 3986 3.1). A
// character reference that a value could complete may be anything.
func mayBeScheme(link string) bool {
	if i := strings.LastIndexByte(link, '&'); i >= 0 && !strings.Contains(link[i:], ";") {
		link = link[:i]
	}
	for i := range len(link) {
		switch c := link[i]; {
		case isLetter(c):
		case i > 0 && strings.IndexByte("0123456789+-.", c) >= 0:
		default:
			return false
		}
	}
	return true
}

// declaration walks over a comment, a DOCTYPE, or what is read as a comment.
func (m *markup) declaration(at, end int) int {
	if strings.HasPrefix(m.src[at:end], "<!--") {
		return m.comment(at, end)
	}
	if m.has(end) {
		// A value of - would turn <!{{a}}-{{b}} into the beginning of a comment.
		before := m.lint.text[at+2 : min(end, max(at+2, m.holes[m.next].start))]
		if strings.HasPrefix("--", before) || strings.HasPrefix("[CDATA[", before) {
			m.refuseOne(&m.holes[m.next], inOpening)
			m.next++
		}
	}
	return m.bogusComment(at, end)
}

func (m *markup) bogusComment(at, end int) int {
	n := strings.IndexByte(m.src[at:end], '>')
	if n < 0 {
		return m.unclosed("this tag", at, end)
	}
	m.allow(at + n)
	return at + n + 1
}

// comment walks over a comment. A conditional comment, <!--[if mso]>…<![endif]-->, is HTML to Outlook, and is checked
// as such.
func (m *markup) comment(open, end int) int {
	at := open + 4
	body := m.src[at:end]
	if strings.HasPrefix(body, ">") || strings.HasPrefix(body, "->") {
		return at + strings.IndexByte(body, '>') + 1
	}
	stop, after := commentEnd(body)
	if stop < 0 {
		return m.unclosed("this comment", open, end)
	}
	if !m.has(at + stop) {
		return at + after
	}
	body = body[:stop]
	first := m.next
	const begin = "[if"
	if i := strings.Index(body, "]>"); !m.inConditional && i >= 0 && len(body) > len(begin) &&
		strings.EqualFold(body[:len(begin)], begin) {
		to := len(body)
		if j := strings.LastIndex(body, "<![endif]"); j > i {
			to = j
		}
		m.allow(at + i + 2)
		m.inConditional = true
		m.content(at+i+2, at+to)
		m.inConditional = false
	}
	m.allow(at + stop)
	for i := first; i < m.next; i++ { // a value such as -- would, with the following text, end the comment
		rest := strings.TrimPrefix(strings.TrimPrefix(m.src[m.holes[i].end:], "-"), "!")
		if strings.HasPrefix(rest, ">") {
			m.refuseOne(&m.holes[i], inCommentTo)
		}
	}
	return at + after
}

// commentEnd finds --> or --!> and returns its start and end; -1 if there is none.
func commentEnd(s string) (from, to int) {
	for i := 0; ; i++ {
		n := strings.Index(s[i:], "--")
		if n < 0 {
			return -1, -1
		}
		i += n
		switch rest := s[i+2:]; {
		case strings.HasPrefix(rest, ">"):
			return i, i + 3
		case strings.HasPrefix(rest, "!>"):
			return i, i + 4
		}
	}
}

// rawEnd finds the tag that ends a raw element's content; -1 where there is none.
func rawEnd(s, name string) int {
	for i := 0; ; i++ {
		n := strings.IndexByte(s[i:], '<')
		if n < 0 {
			return -1
		}
		i += n
		if isTag(s[i+1:], name) {
			return i
		}
	}
}

// scriptEnd is rawEnd for scripts, in which <!-- hides </script> after a further <script> (WHATWG HTML 13.2.5.15 on).
func scriptEnd(s string) int {
	hidden, twice := false, false
	for i := 0; i < len(s); i++ {
		switch {
		case hidden && strings.HasPrefix(s[i:], "-->"):
			hidden, twice = false, false
		case s[i] != '<':
		case !hidden && strings.HasPrefix(s[i:], "<!--"):
			hidden = true
			i++ // its dashes may be those of -->
		case hidden && !twice && isTag(s[i+1:], "script"):
			twice = true
		case isTag(s[i+1:], "/script"):
			if !twice {
				return i
			}
			twice = false
		}
	}
	return -1
}

// isTag reports whether s begins with a name that ends there.
func isTag(s, name string) bool {
	if len(s) <= len(name) || !strings.EqualFold(s[:len(name)], name) {
		return false
	}
	c := s[len(name)]
	return blank(c) || c == '/' || c == '>'
}

func blank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\f' || c == '\r' }

func (m *markup) blanks(at, end int) int {
	for at < end && blank(m.src[at]) {
		at++
	}
	return at
}

// until finds the next blank or byte of stops.
func (m *markup) until(at, end int, stops string) int {
	for at < end && !blank(m.src[at]) && strings.IndexByte(stops, m.src[at]) < 0 {
		at++
	}
	return at
}
