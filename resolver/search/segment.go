package search

import (
	"bytes"
	"cmp"
	"slices"
	"sort"
	"strings"
)

// A segment is a set of documents, numbered in the order of their keys. It is immutable.
type segment struct {
	refs      []Ref
	text      []byte // see appendText
	starts    []int  // document n is text[starts[n]:starts[n+1]]
	byID      []uint32
	byProject []uint32 // equals by number
	grams     grams
	terms     map[string]*posting
}

// separator stands before and after each text of a document.
const separator = "\x00"

// appendText appends the folded texts of a document, each between separators. One more separator ends the document: so
// every byte of a text begins a trigram.
func appendText(dst []byte, key string, texts []string) []byte {
	dst = append(append(append(dst, separator...), key...), separator...)
	for _, text := range texts {
		dst = append(append(dst, fold(text)...), separator...)
	}
	return append(dst, separator...)
}

// fold makes texts equal that differ in case only. Upper case comes first, because some letters have two lower cases.
func fold(text string) string {
	text = strings.ToLower(strings.ToUpper(text))
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
		size += 3 + len(d.Key)
		for _, text := range d.Texts {
			size += 1 + len(text)
		}
	}
	slices.SortFunc(docs, func(a, b Doc) int { return cmp.Or(strings.Compare(a.Key, b.Key), cmp.Compare(a.ID, b.ID)) })
	s := &segment{
		refs: make([]Ref, len(docs)), text: make([]byte, 0, size), starts: make([]int, 1, len(docs)+1),
		terms: make(map[string]*posting),
	}
	table := new(gramTable)
	for i := range docs {
		d := &docs[i]
		s.refs[i] = d.Ref
		s.text = appendText(s.text, d.Key, d.Texts)
		s.starts = append(s.starts, len(s.text))
		table.add(uint32(i), s.doc(uint32(i)))
		s.addTerms(uint32(i), d.Terms)
	}
	s.grams = table.finish()
	s.byID = s.numbers(func(a, b Ref) int { return cmp.Compare(a.ID, b.ID) })
	s.byProject = s.numbers(func(a, b Ref) int { return cmp.Compare(a.Project, b.Project) })
	return s
}

func (s *segment) addTerms(n uint32, terms []string) {
	for _, term := range terms {
		list := s.terms[term]
		if list == nil {
			list = new(posting)
			s.terms[strings.Clone(term)] = list
		}
		list.add(n)
	}
}

// numbers returns all numbers in another order, equals by number.
func (s *segment) numbers(by func(a, b Ref) int) []uint32 {
	numbers := make([]uint32, len(s.refs))
	for i := range numbers {
		numbers[i] = uint32(i)
	}
	slices.SortFunc(numbers, func(a, b uint32) int { return cmp.Or(by(s.refs[a], s.refs[b]), cmp.Compare(a, b)) })
	return numbers
}

// doc returns the text of a document.
func (s *segment) doc(n uint32) []byte { return s.text[s.starts[n]:s.starts[n+1]] }

// key returns the key of a document.
func (s *segment) key(n uint32) []byte { return keyOf(s.doc(n)) }

func keyOf(text []byte) []byte {
	text = text[len(separator):]
	return text[:bytes.IndexByte(text, separator[0])]
}

// ofProject returns the numbers of a project's documents.
func (s *segment) ofProject(project int64) []uint32 {
	at := func(least int64) int {
		return sort.Search(len(s.byProject), func(i int) bool { return s.refs[s.byProject[i]].Project >= least })
	}
	return s.byProject[at(project):at(project+1)]
}

// withKey returns the range of numbers whose keys begin with text.
func (s *segment) withKey(text []byte) (from, to uint32) {
	from = uint32(sort.Search(len(s.refs), func(i int) bool { return bytes.Compare(s.key(uint32(i)), text) >= 0 }))
	rest := len(s.refs) - int(from)
	to = from + uint32(sort.Search(rest, func(i int) bool { return !bytes.HasPrefix(s.key(from+uint32(i)), text) }))
	return from, to
}
