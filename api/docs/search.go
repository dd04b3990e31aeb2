package docs

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
)

// A section is a heading with what stands below it, up to the next heading, as the search sees it.
type section struct {
	id, heading string
	blocks      []block
}

// A block is a paragraph, an item of a list, a row of a table or an example.
type block struct {
	text     string // in one line
	low      string // the same in lower case
	squashed string // the same without blanks and hyphens
	term     string // what a row or an item explains, in lower case without its value: a code, flag, header or metric
}

// sectionsOf reads the sections of a page from its HTML, so that all kinds of pages are searched alike.
func sectionsOf(body string) (sections []*section) {
	doc, err := html.Parse(strings.NewReader(body))
	if err != nil {
		return nil // a reader of a string has no errors
	}
	now := new(section)
	sections = []*section{now}
	var walk func(n *html.Node)
	walk = func(n *html.Node) {
		switch n.Data {
		case "h1", "h2", "h3", "h4":
			if attribute(n, "id") == "" && n.Data != "h1" { // nothing leads to it
				now.add(n)
				return
			}
			now = &section{id: attribute(n, "id"), heading: textOf(n)}
			sections = append(sections, now)
			return
		case "p", "pre", "tr", "li", "summary":
			now.add(n)
			return
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c)
		}
	}
	walk(doc)
	return sections
}

func (s *section) add(n *html.Node) {
	b := block{text: textOf(n)}
	b.low = strings.ToLower(b.text)
	if b.squashed = squash(b.low); n.Data == "tr" || n.Data == "li" {
		first := n
		for first.FirstChild != nil && first.Data != "code" {
			first = first.FirstChild
			for first.Type == html.TextNode && strings.TrimSpace(first.Data) == "" && first.NextSibling != nil {
				first = first.NextSibling
			}
		}
		b.term = termOf(textOf(first))
	}
	s.blocks = append(s.blocks, b)
}

// maxTerm is the length of the longest term, in bytes: more is a sentence.
const maxTerm = 80

// termOf returns the name that a text begins with: "--listen" of "--listen ADDR", a metric without its labels.
func termOf(text string) string {
	if len(text) > maxTerm {
		return ""
	}
	name, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	name, _, _ = strings.Cut(name, "{")
	name, _, _ = strings.Cut(name, "=")
	return strings.ToLower(strings.Trim(name, ":,"))
}

// textOf returns the text below a node, with single blanks.
func textOf(n *html.Node) string {
	if n.Type == html.TextNode {
		return strings.Join(strings.Fields(n.Data), " ")
	}
	var b strings.Builder
	for c := range n.Descendants() {
		switch {
		case c.Type == html.TextNode:
			b.WriteString(c.Data)
		case c.Data == "td" || c.Data == "th" || c.Data == "li" || c.Data == "p":
			b.WriteByte(' ')
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// A hit is a section that a search finds, with the sentence around what was found.
type hit struct {
	Path, Page, Heading string
	Before, Hit, After  string // of the sentence

	score int
}

// maxHits is how many are shown.
const maxHits = 40

// What a hit is worth: a row that explains the very term, a heading that is the query, the words in a title, in a heading,
// next to each other, anywhere in a block, or anywhere in the section. A document is worth more than the API's reference,
// which repeats what holds for all calls at each of them.
const (
	worthTerm = 1000
	worthIs   = 500
	worthName = 200
	worthNear = 60
	worthText = 30
	worthPart = 10

	ofReference = 4 // a hit in the reference is worth a part
)

// find returns the sections that have all words of a query, the best first. "back up" finds "backup", and the other way
// round.
func (s *site) find(query string) (hits []hit) {
	q := newQuery(query)
	if len(q.words) == 0 {
		return nil
	}
	for _, p := range s.pages {
		for i, sec := range p.sections {
			h, found := q.searchSection(p, sec, i)
			if !found {
				continue
			}
			if h.Path = Prefix + p.name; sec.id != "" && i > 1 { // the first heading is the title
				h.Path += "#" + sec.id
			}
			h.Page, h.Heading = p.title, sec.heading
			if strings.HasPrefix(p.name, apiPage) {
				h.score /= ofReference
			}
			hits = append(hits, h)
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(b.score, a.score) })
	return hits[:min(len(hits), maxHits)]
}

// A searched is a query in the forms that texts are compared with.
type searched struct {
	whole    string   // in lower case
	words    []string // of it
	squashed string   // without blanks and hyphens
}

// The bounds of a query. Anybody may search, and each word costs a look at every text.
const (
	maxQuery = 200 // bytes
	maxWords = 8
)

func newQuery(text string) searched {
	words := strings.Fields(strings.ToLower(valid(text[:min(len(text), maxQuery)])))
	words = words[:min(len(words), maxWords)]
	return searched{strings.Join(words, " "), words, squash(strings.Join(words, ""))}
}

// joints are what some people write between the parts of a word.
var joints = strings.NewReplacer(" ", "", "-", "")

func squash(text string) string { return joints.Replace(text) }

// in reports whether a text in lower case has all words, or the query as one word.
func (q *searched) in(text, squashed string) bool {
	return !slices.ContainsFunc(q.words, func(w string) bool { return !strings.Contains(text, w) }) ||
		len(q.squashed) > 3 && strings.Contains(squashed, q.squashed)
}

// searchSection searches a section, the i-th of its page.
func (q *searched) searchSection(p *page, sec *section, i int) (h hit, found bool) {
	heading, title := strings.ToLower(sec.heading), strings.ToLower(p.title)
	switch {
	case heading == q.whole:
		h.score = worthIs
	case heading != "" && q.in(heading, squash(heading)):
		h.score = worthName
	case i == 1 && q.in(title, squash(title)):
		h.score = worthName
	}
	best, worth := -1, 0
	for k := range sec.blocks {
		b, w := &sec.blocks[k], 0
		switch {
		case b.term != "" && b.term == q.whole:
			w = worthTerm
		case len(q.words) > 1 && strings.Contains(b.low, q.whole):
			w = worthNear
		case q.in(b.low, b.squashed):
			w = worthText
		}
		if w > worth {
			best, worth = k, w
		}
	}
	if h.score += worth; h.score == 0 && q.inAny(heading, title, sec) {
		h.score = worthPart
	}
	if best < 0 && len(sec.blocks) > 0 {
		best = 0
	}
	if best >= 0 {
		h.Before, h.Hit, h.After = q.around(sec.blocks[best])
	}
	return h, h.score > 0
}

// inAny reports whether each word is somewhere in a section, its heading or its page's title.
func (q *searched) inAny(heading, title string, sec *section) bool {
	return !slices.ContainsFunc(q.words, func(w string) bool {
		return !strings.Contains(heading, w) && !strings.Contains(title, w) &&
			!slices.ContainsFunc(sec.blocks, func(b block) bool { return strings.Contains(b.low, w) })
	})
}

// excerpt is how much of a text is shown on each side of what was found, in bytes.
const excerpt = 110

// around returns the part of a block that has what was found.
func (q *searched) around(b block) (before, found, after string) {
	at, n := -1, 0
	for _, part := range append([]string{q.whole}, q.words...) {
		if at = strings.Index(b.low, part); at >= 0 && len(b.low) == len(b.text) {
			n = len(part)
			break
		}
	}
	at = max(at, 0)
	if n == 0 {
		at = 0
	}
	before, found, after = b.text[:at], b.text[at:at+n], b.text[at+n:]
	if len(before) > excerpt {
		before = "…" + valid(before[len(before)-excerpt:])
	}
	if len(after) > excerpt {
		after = valid(after[:excerpt]) + "…"
	}
	return before, found, after
}

// valid leaves out the bytes of characters that were cut.
func valid(text string) string {
	for text != "" && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	return strings.ToValidUTF8(text, "")
}
