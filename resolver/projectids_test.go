package resolver_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// A page of the list has each acknowledged change, whatever others change and ask for at the same time.
func TestListDuringChanges(t *testing.T) {
	t.Parallel()
	r := open(t, resolver.Options{})
	const writers, changes = 4, 60
	all := func(desc bool) (slugs []string) {
		for page := 1; ; page++ {
			rows, total, err := r.Projects(resolver.Query{Page: page, Limit: 7, Desc: desc})
			if err != nil {
				t.Error(err)
			}
			for _, p := range rows {
				slugs = append(slugs, p.Slug)
			}
			if page*7 >= total {
				return slugs
			}
		}
	}
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(w)))
			path := fmt.Sprint(w, ".hcl")
			for range changes {
				own := []catalog.ProjectConfig{}
				want := []string{}
				for i := range 5 {
					if random.IntN(2) == 0 {
						slug := fmt.Sprintf("w%d-%d", w, i)
						own, want = append(own, block(slug)), append(want, slug)
					}
				}
				if len(own) == 0 {
					change(t, r, gone(path))
				} else {
					change(t, r, file(path, own...))
				}
				rows, _, err := r.Projects(resolver.Query{Page: 1, Limit: 100, Desc: w%2 == 0})
				if err != nil {
					t.Error(err)
				}
				got := []string{}
				for _, p := range rows {
					if strings.HasPrefix(p.Slug, fmt.Sprintf("w%d-", w)) {
						got = append(got, p.Slug)
					}
				}
				if slices.Sort(got); !slices.Equal(got, want) {
					t.Errorf("the list has %q, want %q", got, want)
				}
			}
		})
	}
	group.Wait()
	var want []string
	if err := r.EachProject(func(p *catalog.Project) bool { want = append(want, p.Slug); return true }); err != nil {
		t.Fatal(err)
	}
	if got := all(false); !slices.Equal(got, want) {
		t.Errorf("in the end the list has %q, want %q", got, want)
	}
	slices.Reverse(want)
	if got := all(true); !slices.Equal(got, want) {
		t.Errorf("in the end the list has %q, backwards, want %q", got, want)
	}
}
