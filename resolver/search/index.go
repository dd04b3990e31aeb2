package search

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"sort"
	"strings"
	"sync"

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

	mu    sync.Mutex          // guards lists
	lists map[string][]uint32 // of queries without text, projects and ids, by their terms: see all
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

// maxLists is the most lists that an Index keeps: one for each status, the list of all, and a few for labels. A list
// that finds no room is made for each query, as one of some projects is.
const maxLists = 8

// list finds documents without a text.
func (x *Index) list(q *Query) (page []Ref, total int) {
	all := x.all(q)
	for _, n := range all[min(q.From, len(all)):] {
		if q.Count > 0 && len(page) == q.Count {
			break
		}
		page = append(page, x.ref(n))
	}
	return page, len(all)
}

// all returns the documents that have the terms of q, ascending by id: those of news are numbered after those of base.
// It keeps the list for the next page: of 300,000 documents it takes 1.5 ms.
func (x *Index) all(q *Query) []uint32 {
	kept := q.Projects == nil && q.IDs == nil
	name := strings.Join(q.Terms, separator)
	if kept {
		x.mu.Lock()
		list, found := x.lists[name]
		x.mu.Unlock()
		if found {
			return list
		}
	}
	list := x.merge(q)
	if !kept {
		return list
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.lists) < maxLists {
		if x.lists == nil {
			x.lists = map[string][]uint32{}
		}
		x.lists[name] = list
	}
	return list
}

// merge returns the documents of both segments that q selects without its text, see all.
func (x *Index) merge(q *Query) []uint32 {
	list := []uint32{}
	old, fresh := x.base.byID, x.news.byID
	inOld, inFresh := x.base.filter(q, x.hidden), x.news.filter(q, nil)
	for len(old)+len(fresh) > 0 {
		from, first, admits := &old, uint32(0), inOld
		if len(old) == 0 || len(fresh) > 0 && x.news.docs[fresh[0]].ID < x.base.docs[old[0]].ID {
			from, first, admits = &fresh, uint32(len(x.base.docs)), inFresh
		}
		n := (*from)[0]
		*from = (*from)[1:]
		if admits == nil || admits(n) {
			list = append(list, first+n)
		}
	}
	return list
}

// ref returns the document with a number of all.
func (x *Index) ref(n uint32) Ref {
	if old := uint32(len(x.base.docs)); n >= old {
		return x.news.docs[n-old].Ref
	}
	return x.base.docs[n].Ref
}

// A segment is a set of documents, numbered in the order of their keys. It is immutable.
type segment struct {
	docs  []doc
	text  []byte // see appendTexts
	terms []uint32
	byID  []uint32
	names map[string]uint32 // of the terms

	begins [256][]uint32 // where the texts other than keys begin in text, by their first byte, ascending
	counts [256]uint32   // how often text has each byte
}

type doc struct {
	Ref
	start, terms uint32 // of its text and its terms, each up to those of the next one
}

// separator stands before and after each text of a document.
const separator = "\x00"

// appendTexts appends the texts of a document, each between separators.
func (s *segment) appendTexts(key string, texts []string) {
	s.text = append(append(append(s.text, separator...), key...), separator...)
	for _, text := range texts {
		if text = fold(text); text != "" {
			s.begins[text[0]] = append(s.begins[text[0]], uint32(len(s.text)))
		}
		s.text = append(append(s.text, text...), separator...)
	}
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
		s.appendTexts(d.Key, d.Texts)
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
	for i := range s.begins {
		s.begins[i] = slices.Clip(s.begins[i])
	}
	for _, b := range s.text {
		s.counts[b]++
	}
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
	// add appends document n if that is its rank, and reports whether there is room for more.
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
	if s.beginning(text, func(n int) bool { return add(n, textBegins) }) {
		s.containing(text, func(n int) bool { return add(n, contains) })
	}
	return found
}

// beginning yields the documents with a further text that begins with part, in their order. It reports whether yield
// wanted all of them.
func (s *segment) beginning(part []byte, yield func(n int) bool) bool {
	n, last := 0, -1
	for _, at := range s.begins[part[0]] {
		if !bytes.HasPrefix(s.text[at:], part) {
			continue
		}
		if n = s.docAt(at, n); n == last {
			continue
		}
		if last = n; !yield(n) {
			return false
		}
	}
	return true
}

// containing yields the documents whose text contains part, in their order, until yield wants no more. It looks for the
// rarest byte of part: bytes.Index looks for the first one, which is often the commonest of a text.
func (s *segment) containing(part []byte, yield func(n int) bool) {
	rarest := 0
	for i, b := range part {
		if s.counts[b] < s.counts[part[rarest]] {
			rarest = i
		}
	}
	for n, at := 0, rarest; at < len(s.text); {
		next := bytes.IndexByte(s.text[at:], part[rarest])
		if next < 0 {
			return
		}
		at += next + 1
		if start := at - 1 - rarest; bytes.HasPrefix(s.text[start:], part) {
			n = s.docAt(uint32(start), n)
			if !yield(n) {
				return
			}
			end, _ := s.end(n)
			at = int(end) + rarest
		}
	}
}

// docAt returns the document that has a place of the text, which is in document from or in a later one.
func (s *segment) docAt(at uint32, from int) int {
	for from+1 < len(s.docs) && s.docs[from+1].start <= at {
		from++
	}
	return from
}
