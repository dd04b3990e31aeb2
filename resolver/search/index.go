package search

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"sort"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// MaxMatches is the most documents that a query with a text finds.
const MaxMatches = 1000

// A Ref names a document: by its id, and the project that it belongs to.
type Ref struct{ Project, ID int64 }

// A Doc is a document to be indexed.
type Doc struct {
	Ref
	Key   string   // the text that decides the order
	Texts []string // further texts
	Terms []string // exact terms, such as "status=ACTIVE"
}

// A Query selects documents.
type Query struct {
	Text     string         // a part of the key or of a text, in any case; "" selects every document
	Terms    []string       // terms that the document must have
	Projects []int64        // the document belongs to one of these; nil: to any
	IDs      map[int64]bool // the document's id is one of these; nil: any

	// From and Count select a page of the result; Count 0 stands for all that follows From.
	From, Count int
}

// An Index finds documents. It is safe for concurrent use.
type Index struct {
	base    *segment
	hidden  map[int64]bool // projects whose documents in base were replaced or removed
	news    *segment       // the documents that replace them
	newDocs []Doc          // those of news
}

// New indexes documents. Their ids are distinct, and it may change and keep docs.
func New(docs []Doc) *Index { return &Index{base: newSegment(docs), news: newSegment(nil)} }

// With returns an Index in which the documents of some projects are replaced by others, perhaps by none. x stays as it
// is.
func (x *Index) With(changed map[int64][]Doc) *Index {
	next := &Index{base: x.base, hidden: maps.Clone(x.hidden)}
	if next.hidden == nil {
		next.hidden = map[int64]bool{}
	}
	for _, d := range x.newDocs {
		if _, replaced := changed[d.Project]; !replaced {
			next.newDocs = append(next.newDocs, d)
		}
	}
	for project, docs := range changed {
		next.hidden[project] = true
		next.newDocs = append(next.newDocs, docs...)
	}
	next.news = newSegment(next.newDocs)
	return next
}

// An index with more new documents than minNews, and more than one in newsShare of all, is worn.
const (
	minNews   = 1024
	newsShare = 64
)

// Worn reports whether so many documents have been replaced that a new Index pays.
func (x *Index) Worn() bool { return len(x.newDocs) > max(minNews, len(x.base.docs)/newsShare) }

// Find returns a page of the documents that q selects, and the number of all of them, in the order of the package
// comment. With a text that number is at most MaxMatches.
func (x *Index) Find(q Query) (page []Ref, total int) {
	switch {
	case q.Text == "":
		return x.list(&q)
	case strings.Contains(q.Text, separator):
		return nil, 0
	}
	text := []byte(fold(q.Text))
	found := append(x.base.matches(text, x.base.filter(&q, x.hidden)), x.news.matches(text, x.news.filter(&q, nil))...)
	slices.SortFunc(found, func(a, b match) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), bytes.Compare(a.key, b.key), cmp.Compare(a.ID, b.ID))
	})
	found = found[:min(len(found), MaxMatches)]
	for i := q.From; i < len(found) && (q.Count == 0 || i < q.From+q.Count); i++ {
		page = append(page, found[i].Ref)
	}
	return page, len(found)
}

// list finds documents without a text.
func (x *Index) list(q *Query) (page []Ref, total int) {
	old, fresh := x.base.byID, x.news.byID
	inOld, inFresh := x.base.filter(q, x.hidden), x.news.filter(q, nil)
	for len(old)+len(fresh) > 0 {
		s, from, admits := x.base, &old, inOld
		if len(old) == 0 || len(fresh) > 0 && x.news.docs[fresh[0]].ID < x.base.docs[old[0]].ID {
			s, from, admits = x.news, &fresh, inFresh
		}
		n := (*from)[0]
		*from = (*from)[1:]
		if admits != nil && !admits(n) {
			continue
		}
		if total >= q.From && (q.Count == 0 || total < q.From+q.Count) {
			page = append(page, s.docs[n].Ref)
		}
		total++
	}
	return page, total
}

// A segment is a set of documents, numbered in the order of their keys. It is immutable.
type segment struct {
	docs  []doc
	text  []byte // see appendText
	terms []uint32
	byID  []uint32
	names map[string]uint32 // of the terms
}

type doc struct {
	Ref
	start, terms uint32 // of its text and its terms, each up to those of the next one
}

// separator stands before and after each text of a document.
const separator = "\x00"

// appendText appends the texts of a document, each between separators.
func appendText(dst []byte, key string, texts []string) []byte {
	dst = append(append(append(dst, separator...), key...), separator...)
	for _, text := range texts {
		dst = append(append(dst, fold(text)...), separator...)
	}
	return dst
}

// fold makes texts equal that differ only in case or in Unicode's normal form. Upper case comes first, because some
// letters have two lower cases.
func fold(text string) string {
	text = norm.NFC.String(strings.ToLower(strings.ToUpper(text)))
	if strings.Contains(text, separator) {
		text = strings.ReplaceAll(text, separator, " ")
	}
	return text
}

func newSegment(docs []Doc) *segment {
	size := 0
	for i := range docs {
		d := &docs[i]
		d.Key = fold(d.Key)
		size += 2 + len(d.Key)
		for _, text := range d.Texts {
			size += 1 + len(text)
		}
	}
	slices.SortFunc(docs, func(a, b Doc) int { return cmp.Or(strings.Compare(a.Key, b.Key), cmp.Compare(a.ID, b.ID)) })
	s := &segment{docs: make([]doc, len(docs), len(docs)+1), text: make([]byte, 0, size),
		byID: make([]uint32, len(docs)), names: map[string]uint32{}}
	for i := range docs {
		d := &docs[i]
		s.docs[i] = doc{d.Ref, uint32(len(s.text)), uint32(len(s.terms))}
		s.text = appendText(s.text, d.Key, d.Texts)
		for _, term := range d.Terms {
			name, known := s.names[term]
			if !known {
				name = uint32(len(s.names))
				s.names[term] = name
			}
			s.terms = append(s.terms, name)
		}
		s.byID[i] = uint32(i)
	}
	slices.SortFunc(s.byID, func(a, b uint32) int { return cmp.Compare(s.docs[a].ID, s.docs[b].ID) })
	return s
}

// end returns where the text and the terms of document n end.
func (s *segment) end(n int) (text, terms uint32) {
	if n+1 < len(s.docs) {
		return s.docs[n+1].start, s.docs[n+1].terms
	}
	return uint32(len(s.text)), uint32(len(s.terms))
}

// key returns the key of document n.
func (s *segment) key(n int) []byte {
	text := s.text[s.docs[n].start+1:]
	return text[:bytes.IndexByte(text, separator[0])]
}

// filter returns whether a document has the terms of q, is one of its ids and belongs to its projects, and not to a hidden
// one; nil if each does.
func (s *segment) filter(q *Query, hidden map[int64]bool) func(n uint32) bool {
	if len(q.Terms) == 0 && q.Projects == nil && q.IDs == nil && len(hidden) == 0 {
		return nil
	}
	var terms []uint32
	for _, term := range q.Terms {
		name, known := s.names[term]
		if !known {
			return func(uint32) bool { return false }
		}
		terms = append(terms, name)
	}
	var projects map[int64]bool
	if q.Projects != nil {
		projects = make(map[int64]bool, len(q.Projects))
		for _, id := range q.Projects {
			projects[id] = true
		}
	}
	return func(n uint32) bool {
		d := &s.docs[n]
		if hidden[d.Project] || projects != nil && !projects[d.Project] || q.IDs != nil && !q.IDs[d.ID] {
			return false
		}
		_, end := s.end(int(n))
		for _, term := range terms {
			if !slices.Contains(s.terms[d.terms:end], term) {
				return false
			}
		}
		return true
	}
}

// A match is a document that has the text.
type match struct {
	Ref
	rank int
	key  []byte
}

// The ranks of a match, the best first.
const (
	keyBegins = iota
	textBegins
	contains
)

// matches finds the documents with the text, the best first, until there are MaxMatches.
func (s *segment) matches(text []byte, admits func(n uint32) bool) (found []match) {
	begin := append([]byte(separator), text...)
	// add takes document n if that is its rank, and reports whether there is room for more.
	add := func(n, rank int) bool {
		end, _ := s.end(n)
		whole := s.text[s.docs[n].start:end]
		if rank > keyBegins && bytes.HasPrefix(whole, begin) || rank > textBegins && bytes.Contains(whole, begin) ||
			admits != nil && !admits(uint32(n)) {
			return true
		}
		found = append(found, match{s.docs[n].Ref, rank, s.key(n)})
		return len(found) < MaxMatches
	}
	first := sort.Search(len(s.docs), func(n int) bool { return bytes.Compare(s.key(n), text) >= 0 })
	for n := first; n < len(s.docs) && bytes.HasPrefix(s.key(n), text); n++ {
		if !add(n, keyBegins) {
			return found
		}
	}
	if s.scan(begin, func(n int) bool { return add(n, textBegins) }) {
		s.scan(text, func(n int) bool { return add(n, contains) })
	}
	return found
}

// scan yields the documents whose text has a part, in their order. It reports whether yield wanted all of them.
func (s *segment) scan(part []byte, yield func(n int) bool) bool {
	for n, at := 0, 0; ; {
		hit := bytes.Index(s.text[at:], part)
		if hit < 0 {
			return true
		}
		for hit += at; n+1 < len(s.docs) && int(s.docs[n+1].start) <= hit; {
			n++
		}
		if !yield(n) {
			return false
		}
		end, _ := s.end(n)
		at = int(end)
	}
}
