package resolver_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// rebuildFiles declares projects of every kind that resolve knows: with an exact domain and a wildcard, with an inactive
// domain, and suspended. name is the name of all of them.
func rebuildFiles(projects int, name string) (files []catalog.FileChange) {
	for i := range projects {
		slug := fmt.Sprintf("p%d", i)
		p := block(slug, slug+".example", "*."+slug+".example", "off."+slug+".example")
		p.Project.Name, p.Domains[2].Active = name, false
		if i%10 == 0 {
			p.Project.Status = catalog.StatusSuspended
		}
		files = append(files, file(slug+".hcl", p))
	}
	return files
}

// A question is a name in a form, and the code of its answer.
type question struct {
	host string
	form resolver.Form
	code catalog.Code
}

// questions returns those about project i, and one about a name that nobody has.
func questions(i int) []question {
	var code catalog.Code
	if i%10 == 0 {
		code = catalog.CodeProjectSuspended
	}
	slug := fmt.Sprintf("p%d", i)
	return []question{
		{slug + ".example", resolver.Nested, code}, {slug + ".example", resolver.Flat, code},
		{"a.b." + slug + ".example", resolver.Nested, code}, {"off." + slug + ".example", resolver.Flat, catalog.CodeDomainNotVerified},
		{slug + ".unknown.test", resolver.Nested, catalog.CodeNotFound},
	}
}

// ask reports whether q was answered, and returns what is wrong with the answer.
func ask(r *resolver.Resolver, q question, name string) (answered bool, wrong string) {
	a, err := r.Resolve([]byte(q.host), q.form)
	switch {
	case err != nil && code(err) == catalog.CodeUnavailable:
		return false, ""
	case err != nil:
		return false, err.Error()
	case a.Code != q.code, q.code == "" && !strings.Contains(string(a.Data), `"`+name+`"`):
		return false, fmt.Sprintf("%s is answered by %q %s, want %q of %s", q.host, a.Code, a.Data, q.code, name)
	}
	return true, ""
}

// TestReadsGoOnDuringRebuild damages a store in use and fills the new one with other content, in parts as a first load
// does. Until the last part, every question that the damaged store could answer gets its old answer, whether it comes
// from the cache or from a readable block. Then all answers come from the new store. The race detector makes the full
// size ten times slower, so CI runs that without it.
func TestReadsGoOnDuringRebuild(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	projects := testrig.Size(t, 100_000, 2_000)
	if testrig.Race {
		projects = min(projects, 10_000)
	}
	dir := filepath.Join(t.TempDir(), "data")
	r, err := resolver.Open(resolver.Options{DataDir: dir, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	apply(t, r, rebuildFiles(projects, "before")...)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	files := rebuildFiles(projects, "after")
	rebuilding, goOn := make(chan struct{}), make(chan struct{})
	r = open(t, resolver.Options{DataDir: dir, Disk: fast, Rebuild: func(context.Context) error {
		close(rebuilding)
		<-goOn
		const parts = 8
		for part := range parts {
			from, to := part*projects/parts, (part+1)*projects/parts
			change := &catalog.Change{Files: files[from:to]}
			if part < parts-1 {
				if err := r.Fill(change); err != nil {
					return err
				}
				continue
			}
			_, err := r.Apply(change)
			return err
		}
		return nil
	}})
	var cached []question
	for i := 0; i < projects; i += max(1, projects/500) {
		cached = append(cached, questions(i)...)
	}
	for _, q := range cached {
		if answered, wrong := ask(r, q, "before"); !answered {
			t.Fatal(q.host, wrong)
		}
	}
	r.Settle()
	testrig.Eventually(t, "a damaged block is read", func() bool {
		corruptTables(t, dir) // again, because a compaction has written new ones
		for i := range projects {
			if answered, wrong := ask(r, questions(i)[0], "before"); wrong != "" {
				t.Fatal(wrong)
			} else if !answered {
				return true
			}
		}
		return false
	})
	<-rebuilding
	var answerable []question
	for i := 1; i < projects; i += projects / 100 { // few: Pebble looks for a flipped bit in a bad block in quadratic time
		for _, q := range questions(i) {
			answered, wrong := ask(r, q, "before")
			if wrong != "" {
				t.Fatal(wrong)
			}
			if answered {
				answerable = append(answerable, q)
			}
		}
	}
	for _, q := range cached {
		if answered, wrong := ask(r, q, "before"); !answered {
			t.Fatalf("%s was cached and is not answered any more. %s", q.host, wrong)
		}
	}
	if len(answerable) == 0 {
		t.Error("no question that is not cached can be answered")
	}
	answerable = append(answerable, cached...)
	cursor, _ := r.Events().Newest()

	stop := make(chan struct{})
	var readers sync.WaitGroup
	for reader := range uint64(2) {
		readers.Go(func() {
			random := rand.New(rand.NewPCG(reader, 1))
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				q := answerable[random.IntN(len(answerable))]
				if answered, wrong := ask(r, q, "before"); !answered {
					if fresh, _ := ask(r, q, "after"); fresh {
						t.Logf("reader %d: %d old answers", reader, n)
						return // the new store has taken over
					}
					t.Errorf("after %d answers %s is not answered any more. %s", n, q.host, wrong)
					return
				}
			}
		})
	}
	close(goOn)
	testrig.Eventually(t, "the store on disk is back", healthy(r))
	close(stop)
	readers.Wait()
	if got := next(&cursor); got != "\"\"\n\"reset\"" {
		t.Errorf("the new store tells %s", got)
	}
	for i := 0; i < projects; i += max(1, projects/5000) {
		for _, q := range questions(i) {
			if answered, wrong := ask(r, q, "after"); !answered {
				t.Fatalf("%s is not answered by the new store. %s", q.host, wrong)
			}
		}
	}
	testrig.Figure(t, "%d questions, %d of them cached before the damage", len(answerable), len(cached))
}
