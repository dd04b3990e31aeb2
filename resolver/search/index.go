package search

import (
	"cmp"
	"slices"
)

// MaxMatches is the most documents that a query with a text finds.
const MaxMatches = 1000

// A Ref names a document: its id, unique in the Index, and the project that it belongs to.
type Ref struct{ Project, ID int64 }

// A Doc is what an Index knows of a document.
type Doc struct {
	Ref
	Key   string   // the text that decides the order
	Texts []string // further texts
	Terms []string // exact terms, such as "status=ACTIVE"
}

// An Index finds documents. It is immutable; its methods may be called from any goroutine.
type Index struct {
	base *segment
	dead bitset    // the documents of the base that were replaced or removed; nil: none
	news []*newDoc // the documents that replace them, by ascending id
}

// New makes an Index. It takes docs over.
func New(docs []Doc) *Index { return &Index{base: newSegment(docs)} }

// With returns an Index in which the documents of some projects are replaced: changed holds, for each of these
// projects, all documents that it has now. x stays as it is.
func (x *Index) With(changed map[int64][]Doc) *Index {
	next := &Index{base: x.base, dead: slices.Clone(x.dead)}
	if next.dead == nil {
		next.dead = newBitset(len(x.base.refs))
	}
	for _, d := range x.news {
		if _, replaced := changed[d.Project]; !replaced {
			next.news = append(next.news, d)
		}
	}
	for project, docs := range changed {
		for _, n := range x.base.ofProject(project) {
			next.dead.set(n)
		}
		for i := range docs {
			next.news = append(next.news, prepare(&docs[i]))
		}
	}
	slices.SortFunc(next.news, func(a, b *newDoc) int { return cmp.Compare(a.ID, b.ID) })
	return next
}

// The documents that With may have added: each query compares all of them.
const (
	minNews   = 1024
	newsShare = 16 // of the documents in the base, one in so many
)

// Worn reports whether so many documents were replaced that a new Index pays.
func (x *Index) Worn() bool { return len(x.news) > max(minNews, len(x.base.refs)/newsShare) }

// A newDoc is a document outside of the base.
type newDoc struct {
	Ref
	key   string
	text  []byte // as in a segment
	terms []string
}

func prepare(d *Doc) *newDoc {
	key := fold(d.Key)
	return &newDoc{Ref: d.Ref, key: key, text: appendText(nil, key, d.Texts), terms: d.Terms}
}

// admits reports whether the document has the terms and belongs to one of the projects of q.
func (d *newDoc) admits(q *Query) bool {
	if q.Projects != nil && !slices.Contains(q.Projects, d.Project) {
		return false
	}
	for _, term := range q.Terms {
		if !slices.Contains(d.terms, term) {
			return false
		}
	}
	return true
}
