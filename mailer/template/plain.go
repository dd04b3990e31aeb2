package template

import (
	"errors"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/net/html"
)

// PlainText converts HTML to plain text: tags dropped, links as "text (url)", character references decoded, blocks on
// lines of their own, lists with marks. It leaves out comments, styles, scripts and hidden elements. It returns "" if
// nothing is left.
//
// The HTML is read as browsers read it (html.Parse): a hidden element ends where HTML ends it, also without an end tag.
// The only error is ErrTooDeep.
func PlainText(source string) (string, error) {
	// With a DOCTYPE a table ends a paragraph, as mail readers show it. They run no scripts, so they show noscript.
	document, err := html.ParseWithOptions(strings.NewReader("<!DOCTYPE html>"+source),
		html.ParseOptionEnableScripting(false))
	if err != nil {
		return "", ErrTooDeep
	}
	w := &plainWriter{}
	w.nodes(document)
	return w.finish(), nil
}

// ErrTooDeep is for HTML of which html.Parse makes nothing.
var ErrTooDeep = errors.New("nests its elements deeper than 512, so no text part can be made of it: " +
	"close the elements, or give a bodyText")

// Placeholders pass through PlainText as these code points with a number between them. They are noncharacters, reserved
// for a program's internal use (Unicode 23.7), so a template has no reason to contain them.
const (
	markOpen  = "\uFDD0"
	markClose = "\uFDD1"
)

// plainSegments is PlainText for a body with placeholders. The conversion is done once, and values stay unchanged,
// whatever they contain.
func plainSegments(body []Segment) (plain []Segment, err error) {
	var b strings.Builder
	// equal placeholders must be equal here, so that a link whose text is its own address is recognised
	first := map[string]int{}
	for i, s := range body {
		b.WriteString(s.Text)
		if s.Name == "" {
			continue
		}
		if _, known := first[s.Name]; !known {
			first[s.Name] = i
		}
		b.WriteString(markOpen + strconv.Itoa(first[s.Name]) + markClose)
	}
	text, err := PlainText(b.String())
	if err != nil {
		return nil, err
	}
	for {
		before, rest, ok := strings.Cut(text, markOpen)
		if !ok {
			break
		}
		number, after, _ := strings.Cut(rest, markClose)
		i, err := strconv.Atoi(number)
		if err != nil || i < 0 || i >= len(body) || body[i].Name == "" { // the template's own characters
			plain = append(plain, Segment{Text: before})
			text = rest
			continue
		}
		plain = append(plain, Segment{Text: before, Name: body[i].Name})
		text = after
	}
	if text != "" {
		plain = append(plain, Segment{Text: text})
	}
	return plain, nil
}

// A plainWriter writes elements and their texts as text.
type plainWriter struct {
	out    strings.Builder
	breaks int  // line breaks to write before the next word
	space  bool // a blank to write before the next word
	fresh  bool // the line has only a list mark
	pre    int  // open <pre>
	quoted int  // open <blockquote>
	lists  []openList
	link   openLink
}

// An openList is an open <ul> or <ol>.
type openList struct {
	ordered bool
	items   int
}

// An openLink is an open <a>.
type openLink struct {
	url  string // "" for none
	from int    // where its text begins in the output
}

// Blocks: the number of line breaks before and after.
var blocks = map[string]int{
	"p": 2, "h1": 2, "h2": 2, "h3": 2, "h4": 2, "h5": 2, "h6": 2, "blockquote": 2, "pre": 2, "dl": 2, "hr": 2, "ul": 2,
	"ol": 2, "table": 2,
	"address": 1, "article": 1, "aside": 1, "body": 1, "caption": 1, "center": 1, "dd": 1, "details": 1, "div": 1, "dt": 1,
	"fieldset":   1,
	"figcaption": 1, "figure": 1, "footer": 1, "form": 1, "header": 1, "li": 1, "main": 1, "nav": 1, "section": 1,
	"summary": 1, "tr": 1,
}

// unseenElements are elements whose content no reader shows.
var unseenElements = map[string]bool{
	"title": true, "style": true, "script": true, "template": true, "iframe": true, "noembed": true, "noframes": true,
	"object": true, "svg": true, "select": true, "textarea": true,
}

// maxDepth bounds the indentation by lists and quotations.
const maxDepth = 8

// nodes writes what a reader sees of the nodes below parent.
func (w *plainWriter) nodes(parent *html.Node) {
	for n := range parent.ChildNodes() {
		switch {
		case n.Type == html.TextNode:
			w.token(n.Data)
		case n.Type != html.ElementNode:
		case unseenElements[n.Data] || hidden(n.Attr):
			w.breakLine(min(1, blocks[n.Data]))
		default:
			w.start(n)
			w.nodes(n)
			w.end(n.Data)
		}
	}
}

func (w *plainWriter) start(t *html.Node) {
	name := t.Data
	w.breakLine(blocks[name])
	switch name {
	case "br":
		w.breaks++
	case "hr":
		w.word("---")
		w.breakLine(2)
	case "td", "th":
		w.space = true
	case "img":
		w.token(attribute(t.Attr, "alt"))
	case "a":
		w.endLink()
		w.link = openLink{linkURL(attribute(t.Attr, "href")), -1}
	case "pre":
		w.pre++
	case "blockquote":
		w.quoted++
	case "ul", "ol":
		if len(w.lists) > 0 {
			w.breaks = min(w.breaks, 1)
		}
		w.lists = append(w.lists, openList{ordered: name == "ol"})
	case "li":
		w.item()
	}
}

func (w *plainWriter) end(name string) {
	switch name {
	case "a":
		w.endLink()
	case "pre":
		w.pre = max(0, w.pre-1)
	case "blockquote":
		w.quoted = max(0, w.quoted-1)
	case "ul", "ol":
		w.lists = w.lists[:max(0, len(w.lists)-1)]
	}
	n := blocks[name]
	if (name == "ul" || name == "ol") && len(w.lists) > 0 {
		n = 1
	}
	w.breakLine(n)
}

// hidden reports whether an element's own attributes hide it and its content.
func hidden(attrs []html.Attribute) bool {
	for _, a := range attrs {
		if a.Key == "hidden" || a.Key == "style" && hides(a.Val) {
			return true
		}
	}
	return false
}

var cssComment = regexp.MustCompile(`(?s)/\*.*?(\*/|$)`)

// hides reports whether a style attribute hides its element: the last display or the last visibility says so.
func hides(style string) bool {
	last := map[string]string{}
	for declaration := range strings.SplitSeq(cssComment.ReplaceAllString(strings.ToLower(style), ""), ";") {
		property, value, _ := strings.Cut(declaration, ":")
		value = strings.TrimSuffix(strings.Join(strings.Fields(value), ""), "!important")
		last[strings.TrimSpace(property)] = value
	}
	return last["display"] == "none" || last["visibility"] == "hidden"
}

func attribute(attrs []html.Attribute, key string) string {
	for _, a := range attrs {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// linkURL returns the part of an href that is worth showing, or "".
func linkURL(href string) string {
	href = strings.Join(strings.Fields(href), "")
	scheme, _, _ := strings.Cut(strings.ToLower(href), ":")
	switch {
	case strings.HasPrefix(href, markOpen), scheme == "http", scheme == "https", scheme == "mailto", scheme == "tel":
		return href
	}
	return ""
}

func (w *plainWriter) endLink() {
	l := w.link
	w.link = openLink{}
	if l.url == "" {
		return
	}
	if l.from < 0 { // it has no words
		w.word(l.url)
		return
	}
	text := strings.TrimSpace(w.out.String()[l.from:])
	bare := l.url[strings.IndexByte(l.url, ':')+1:]
	if text == l.url || text == bare || text == strings.TrimPrefix(bare, "//") || text+"/" == strings.TrimPrefix(bare,
		"//") {
		return
	}
	w.out.WriteString(" (" + l.url + ")") // before pending blanks and breaks, which come after the text
}

// item begins an item of the innermost list.
func (w *plainWriter) item() {
	mark := "- "
	if n := len(w.lists); n > 0 && w.lists[n-1].ordered {
		w.lists[n-1].items++
		mark = strconv.Itoa(w.lists[n-1].items) + ". "
	}
	w.breaks = max(w.breaks, 1)
	w.gap(true)
	w.out.WriteString(mark)
	w.fresh = true
}

// breakLine ends the line, and adds an empty one if n is 2.
func (w *plainWriter) breakLine(n int) {
	if n > 0 && !w.fresh {
		w.breaks = max(w.breaks, n)
	}
}

// token writes a text node, or the text of an attribute.
func (w *plainWriter) token(s string) {
	s = strings.ReplaceAll(s, "\u00a0", " ")
	if w.pre > 0 {
		for i, line := range strings.Split(s, "\n") {
			if i > 0 {
				w.breaks++
			}
			if line != "" {
				w.word(strings.TrimSuffix(line, "\r"))
			}
		}
		return
	}
	for s != "" {
		rest := strings.TrimLeft(s, " \t\r\n\f")
		w.space = w.space || len(rest) < len(s)
		n := strings.IndexAny(rest, " \t\r\n\f")
		if n < 0 {
			n = len(rest)
		}
		if n > 0 {
			w.word(rest[:n])
		}
		s = rest[n:]
	}
}

// word writes visible text, after the gap before it.
func (w *plainWriter) word(s string) {
	w.gap(false)
	if w.link.url != "" && w.link.from < 0 {
		w.link.from = w.out.Len()
	}
	w.out.WriteString(s)
}

// gap writes the pending breaks or blank, and the prefix of each line. mark says that a list mark follows.
func (w *plainWriter) gap(mark bool) {
	switch {
	case w.out.Len() == 0:
		w.prefix(mark)
	case w.breaks > 0:
		for range min(w.breaks, 2) {
			w.out.WriteByte('\n')
		}
		w.prefix(mark)
	case w.space && !w.fresh:
		w.out.WriteByte(' ')
	}
	w.breaks, w.space, w.fresh = 0, false, false
}

func (w *plainWriter) prefix(mark bool) {
	w.out.WriteString(strings.Repeat("> ", min(w.quoted, maxDepth)))
	depth := min(len(w.lists), maxDepth)
	if mark {
		depth = max(0, depth-1)
	}
	w.out.WriteString(strings.Repeat("  ", depth))
}

func (w *plainWriter) finish() string {
	w.endLink()
	s := strings.Map(func(r rune) rune { // makes it valid UTF-8, too
		if badInBody(r) {
			return -1
		}
		return r
	}, w.out.String())
	if s = strings.TrimSpace(s); s == "" {
		return ""
	}
	return s + "\n"
}
