package search

import (
	"bytes"
	"cmp"
	"iter"
	"slices"
	"strings"
)

// A Query selects documents.
type Query struct {
	Text     string   // a part of the key or of a text, in any case; "" selects every document
	Terms    []string // terms that the document must have
	Projects []int64  // the document belongs to one of these; nil: to any

	// From and Count select a page of the result; Count 0 stands for all that follows From.
	From, Count int
}

// Find returns a page of the documents that q selects, and the number of all of them, in the order of the package
// comment. With a text that number is at most MaxMatches.
func (x *Index) Find(q Query) (page []Ref, total int) {
	if q.Text == "" {
		return x.list(&q)
	}
	matches := x.matches(&q)
	from := min(q.From, len(matches))
	to := len(matches)
	if q.Count > 0 {
		to = min(to, from+q.Count)
	}
	page = make([]Ref, 0, to-from)
	for _, m := range matches[from:to] {
		page = append(page, m.Ref)
	}
	return page, len(matches)
}

// list finds documents without a text. If every document is selected, it stops behind the page.
func (x *Index) list(q *Query) (page []Ref, total int) {
	admitted, all := x.base.admitted(q)
	end := q.From + q.Count
	for ref := range x.byID(q, admitted, all) {
		if total >= q.From && (q.Count == 0 || total < end) {
			page = append(page, ref)
		}
		if total++; all && q.Count > 0 && total == end {
			return page, x.size()
		}
	}
	return page, total
}

// byID yields the selected documents, those of the base and the new ones, by ascending id.
func (x *Index) byID(q *Query, admitted bitset, all bool) iter.Seq[Ref] {
	return func(yield func(Ref) bool) {
		news := x.news
		for _, n := range x.base.byID {
			if x.dead.has(n) || !all && !admitted.has(n) {
				continue
			}
			ref := x.base.refs[n]
			for ; len(news) > 0 && news[0].ID < ref.ID; news = news[1:] {
				if news[0].admits(q) && !yield(news[0].Ref) {
					return
				}
			}
			if !yield(ref) {
				return
			}
		}
		for _, d := range news {
			if d.admits(q) && !yield(d.Ref) {
				return
			}
		}
	}
}

// size returns the number of all documents.
func (x *Index) size() int { return len(x.base.refs) - x.dead.count() + len(x.news) }

// A rank is the place of a match in the order of matches.
type rank uint8

const (
	keyBegins rank = iota
	textBegins
	contained
	none
)

// rankOf compares the text of a document. begin is the folded text of the query behind a separator.
func rankOf(doc, begin []byte) rank {
	switch {
	case bytes.HasPrefix(doc, begin):
		return keyBegins
	case bytes.Contains(doc, begin):
		return textBegins
	case bytes.Contains(doc, begin[len(separator):]):
		return contained
	}
	return none
}

type match struct {
	Ref
	rank rank
	key  []byte
}

// matches finds documents by text: the best MaxMatches, the best first.
func (x *Index) matches(q *Query) []match {
	if strings.Contains(q.Text, separator) {
		return nil
	}
	begin := []byte(separator + fold(q.Text))
	found := x.inBase(q, begin)
	old := len(found)
	for _, d := range x.news {
		if rank := rankOf(d.text, begin); rank != none && d.admits(q) {
			found = append(found, match{d.Ref, rank, keyOf(d.text)})
		}
	}
	if len(found) > old {
		slices.SortFunc(found, func(a, b match) int {
			return cmp.Or(cmp.Compare(a.rank, b.rank), bytes.Compare(a.key, b.key), cmp.Compare(a.ID, b.ID))
		})
	}
	return found[:min(len(found), MaxMatches)]
}

// inBase is matches for the documents of the base. It makes one pass for each rank and stops at MaxMatches. A pass
// yields numbers in ascending order, which is the order of the keys.
func (x *Index) inBase(q *Query, begin []byte) (found []match) {
	s := x.base
	admitted, all := s.admitted(q)
	if all {
		admitted = nil
	}
	// pass adds the candidates of one rank, and reports whether there is room for more.
	pass := func(want rank, candidates iter.Seq[uint32]) bool {
		for n := range candidates {
			if x.dead.has(n) || !all && !admitted.has(n) || rankOf(s.doc(n), begin) != want {
				continue
			}
			if found = append(found, match{s.refs[n], want, s.key(n)}); len(found) == MaxMatches {
				return false
			}
		}
		return true
	}
	_ = pass(keyBegins, between(s.withKey(begin[len(separator):]))) &&
		pass(textBegins, s.candidates(begin, admitted)) &&
		pass(contained, s.candidates(begin[len(separator):], admitted))
	return found
}

func between(from, to uint32) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for n := from; n < to && yield(n); n++ {
		}
	}
}

// admitted returns the documents that have the terms and belong to the projects of q. all stands for every document.
func (s *segment) admitted(q *Query) (set bitset, all bool) {
	if q.Projects != nil {
		set = newBitset(len(s.refs))
		for _, project := range q.Projects {
			for _, n := range s.ofProject(project) {
				set.set(n)
			}
		}
	}
	for _, term := range q.Terms {
		having := newBitset(len(s.refs))
		if list := s.terms[term]; list != nil {
			list.addTo(having)
		}
		if set == nil {
			set = having
		} else {
			set.and(having)
		}
	}
	return set, q.Projects == nil && len(q.Terms) == 0
}

// candidates yields the numbers of documents that may contain text, and of all that do. If admitted is not nil, others
// than those in it need not be yielded.
func (s *segment) candidates(text []byte, admitted bitset) iter.Seq[uint32] {
	var from iter.Seq[uint32]
	count := 0
	if len(text) < gramLen {
		from, count = s.shortText(text)
	} else if list := s.rarest(text); list != nil {
		from, count = list.all(), list.count
	} else {
		return between(0, 0)
	}
	if admitted != nil && admitted.count() < count {
		return admitted.all()
	}
	return from
}

// rarest returns the shortest posting list of a trigram of text, nil if no document has one of its trigrams.
func (s *segment) rarest(text []byte) (least *posting) {
	for ; len(text) >= gramLen; text = text[1:] {
		list := s.grams.find(gramOf(text))
		if list == nil {
			return nil
		}
		if least == nil || list.count < least.count {
			least = list
		}
	}
	return least
}

// shortText yields the documents with a text of one or two bytes: those with a trigram that begins with it.
func (s *segment) shortText(text []byte) (from iter.Seq[uint32], count int) {
	lists := s.grams.starting(text)
	for i := range lists {
		count += lists[i].count
	}
	if count >= len(s.refs) { // so many documents have it that a scan meets MaxMatches soon
		return between(0, uint32(len(s.refs))), len(s.refs)
	}
	set := newBitset(len(s.refs))
	for i := range lists {
		lists[i].addTo(set)
	}
	return set.all(), count
}
