package search_test

import (
	"fmt"
	"slices"
	"testing"

	"fingerpost/resolver/search"
)

func doc(id int64, key string, texts ...string) search.Doc {
	return search.Doc{Ref: search.Ref{Project: id, ID: id}, Key: key, Texts: texts}
}

func found(x *search.Index, text string) (ids []int64) {
	refs, _ := x.Find(search.Query{Text: text})
	for _, ref := range refs {
		ids = append(ids, ref.ID)
	}
	return ids
}

func TestOrder(t *testing.T) {
	t.Parallel()
	x := search.New([]search.Doc{
		doc(1, "zeta", "An Acme project"), doc(2, "my-acme", "My", "acme.example"), doc(3, "acme-b", "B"),
		doc(4, "acme-a", "A"), doc(5, "globex", "ACME of Globex"), doc(6, "initech", "Initech"),
	})
	f := func(text string, want ...int64) {
		t.Helper()
		if got := found(x, text); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	f("acme", 4, 3, 5, 2, 1) // keys that begin so, other texts that do, the rest; each by key
	f("AcMe-", 4, 3)
	f("acme-a", 4)
	f("a", 4, 3, 5, 2, 1)
	f("x", 5, 2)
	f("e.", 2)
	f("%")
	f("*")
	f("a*e")
	f("acme\x00")
	f("\x00acme")
	f("acmeacme")
}

// TestMostMatches: a query ends with MaxMatches, and still finds the best ones.
func TestMostMatches(t *testing.T) {
	t.Parallel()
	var docs []search.Doc
	const many = 3 * search.MaxMatches
	for i := range int64(many) {
		docs = append(docs, doc(i+1, fmt.Sprintf("p%05d-shop", i), "Name"))
	}
	docs = append(docs, doc(9001, "zz-last", "shop of the last"), doc(9000, "shop-of-all", "Name"))
	x := search.New(docs).With(map[int64][]search.Doc{1: {doc(1, "zzz", "the shop")}, 9002: {doc(9002, "shop", "New")}})
	got := found(x, "shop")
	if len(got) != search.MaxMatches || !slices.Equal(got[:5], []int64{9002, 9000, 9001, 2, 3}) {
		t.Errorf("%d matches, first %v", len(got), got[:5])
	}
	if _, total := x.Find(search.Query{}); total != many+3 {
		t.Errorf("%d documents without a text", total)
	}
	if page, total := x.Find(search.Query{Text: "shop", From: search.MaxMatches, Count: 10}); len(page) != 0 || total != search.MaxMatches {
		t.Errorf("behind the last match: %v of %d", page, total)
	}
}

// TestWorn: many replaced documents ask for a new Index; the same one again and again does not.
func TestWorn(t *testing.T) {
	t.Parallel()
	x := search.New(nil)
	for i := range 5000 {
		x = x.With(map[int64][]search.Doc{1: {doc(1, fmt.Sprint("name-", i))}})
	}
	if x.Worn() {
		t.Error("one document wears the index out")
	}
	changed := map[int64][]search.Doc{}
	for i := range int64(5000) {
		changed[i] = []search.Doc{doc(i, fmt.Sprint("name-", i))}
	}
	if x = x.With(changed); !x.Worn() {
		t.Error("5,000 documents in a list do not wear the index out")
	}
}
