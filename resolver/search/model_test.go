package search_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/search"
)

// A model answers queries by looking at every document.
type model map[int64][]search.Doc // by project

func (m model) docs() (all []search.Doc) {
	for _, docs := range m {
		all = append(all, docs...)
	}
	return all
}

func lower(text string) string { return strings.ToLower(strings.ToUpper(text)) }

// rankOf returns 0 if the key begins with text, 1 if another text does, 2 if one contains it, else 3.
func rankOf(d search.Doc, text string) int {
	rank := 3
	for i, t := range append([]string{d.Key}, d.Texts...) {
		switch t = lower(t); {
		case i == 0 && strings.HasPrefix(t, text):
			rank = 0
		case strings.HasPrefix(t, text):
			rank = min(rank, 1)
		case strings.Contains(t, text):
			rank = min(rank, 2)
		}
	}
	return rank
}

func (m model) find(q search.Query) (page []search.Ref, total int) {
	text := lower(q.Text)
	var found []search.Doc
	for _, d := range m.docs() {
		if q.Projects != nil && !slices.Contains(q.Projects, d.Project) || q.IDs != nil && !q.IDs[d.ID] ||
			slices.ContainsFunc(q.Terms, func(term string) bool { return !slices.Contains(d.Terms, term) }) ||
			rankOf(d, text) == 3 {
			continue
		}
		found = append(found, d)
	}
	slices.SortFunc(found, func(a, b search.Doc) int {
		if text == "" {
			return cmp.Compare(a.ID, b.ID)
		}
		return cmp.Or(cmp.Compare(rankOf(a, text), rankOf(b, text)), cmp.Compare(lower(a.Key), lower(b.Key)), cmp.Compare(a.ID, b.ID))
	})
	if text != "" {
		found = found[:min(len(found), search.MaxMatches)]
	}
	for i, d := range found {
		if i >= q.From && (q.Count == 0 || i < q.From+q.Count) {
			page = append(page, d.Ref)
		}
	}
	return page, len(found)
}

// alphabet is small, so that texts meet; its letters differ in the number of bytes and in how case changes them.
var alphabet = []rune("aabbcdAB.-_%* 1äÄſσςΣKİ漢")

func randomText(random *rand.Rand, most int) string {
	var b strings.Builder
	for range random.IntN(most + 1) {
		b.WriteRune(alphabet[random.IntN(len(alphabet))])
	}
	return b.String()
}

func randomTerm(random *rand.Rand) string {
	return fmt.Sprintf("label.%c=%d", 'a'+random.IntN(3), random.IntN(3))
}

func randomDocs(random *rand.Rand, project int64) (docs []search.Doc) {
	for i := range int64(random.IntN(4)) {
		d := search.Doc{Ref: search.Ref{Project: project, ID: 10*((project*7919)%1000) + i}, Key: randomText(random, 8)}
		for range random.IntN(4) {
			d.Texts = append(d.Texts, randomText(random, 12))
		}
		for range random.IntN(3) {
			d.Terms = append(d.Terms, randomTerm(random))
		}
		docs = append(docs, d)
	}
	return docs
}

func randomQuery(random *rand.Rand, m model) search.Query {
	q := search.Query{From: random.IntN(4) * random.IntN(20), Count: random.IntN(12)}
	switch docs := m.docs(); {
	case random.IntN(5) == 0:
	case random.IntN(3) == 0 || len(docs) == 0:
		q.Text = randomText(random, 4)
	default: // a part of a text that is there
		d := docs[random.IntN(len(docs))]
		text := []rune(append([]string{d.Key}, d.Texts...)[random.IntN(1+len(d.Texts))])
		from := random.IntN(len(text) + 1)
		q.Text = string(text[from : from+random.IntN(len(text)-from+1)])
	}
	for range max(random.IntN(5)-2, 0) {
		q.Terms = append(q.Terms, randomTerm(random))
	}
	if random.IntN(3) == 0 {
		q.Projects = []int64{}
		for range random.IntN(8) {
			q.Projects = append(q.Projects, random.Int64N(int64(len(m)+3)))
		}
	}
	if random.IntN(3) == 0 {
		q.IDs = map[int64]bool{}
		for _, d := range m.docs() {
			q.IDs[d.ID] = random.IntN(2) == 0
		}
	}
	return q
}

// TestModel compares an Index with a model, through changes and removals.
func TestModel(t *testing.T) {
	t.Parallel()
	rounds := testrig.Size(t, 400, 12)
	for round := range rounds {
		random := rand.New(rand.NewPCG(uint64(round), 8))
		m := model{}
		for project := range int64(random.IntN(200)) {
			m[project] = randomDocs(random, project)
		}
		x := search.New(m.docs())
		for range 6 {
			for range 40 {
				compare(t, round, x, m, randomQuery(random, m))
			}
			changed := map[int64][]search.Doc{}
			for range random.IntN(5) {
				project := random.Int64N(int64(len(m) + 2))
				changed[project] = nil
				if random.IntN(4) > 0 {
					changed[project] = randomDocs(random, project)
				}
			}
			before, copied := x, model{}
			for project, docs := range m {
				copied[project] = docs
			}
			x = x.With(changed)
			for project, docs := range changed {
				m[project] = docs
			}
			compare(t, round, before, copied, randomQuery(random, copied)) // With has left it alone
			if random.IntN(5) == 0 {
				x = search.New(m.docs())
			}
		}
	}
}

func compare(t *testing.T, round int, x *search.Index, m model, q search.Query) {
	t.Helper()
	got, total := x.Find(q)
	want, wantTotal := m.find(q)
	if !slices.Equal(got, want) || total != wantTotal {
		t.Fatalf("round %d, %+v: got %v of %d, want %v of %d", round, q, got, total, want, wantTotal)
	}
}
