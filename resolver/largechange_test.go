package resolver_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// largeFiles returns a change that is too large for a batch: 1,000 projects in files of 42 kB.
func largeFiles(turn string) (files []catalog.FileChange) {
	for i := range 1000 {
		p := block(fmt.Sprintf("p%d", i), fmt.Sprintf("p%d.example", i), fmt.Sprintf("*.p%d.example", i))
		p.Project.Name = turn
		f := file(fmt.Sprintf("p%d.hcl", i), p)
		f.Bytes = bytes.Repeat([]byte("0123456"), 6000)
		files = append(files, f)
	}
	return files
}

// A large change makes everything stale: each name is read once more, has the new content, and is then a hit again.
func TestLargeChange(t *testing.T) {
	t.Parallel()
	testrig.Thorough(t)
	r := open(t, resolver.Options{DataDir: t.TempDir()})
	apply(t, r, largeFiles("before")...)
	f := func(host, turn string, misses uint64) {
		t.Helper()
		before := r.Metrics().Misses
		a := resolve(t, r, host, resolver.Nested)
		if !strings.Contains(string(a.Data), `"name":"`+turn+`"`) {
			t.Errorf("%s: %s, want %s", host, a.Data, turn)
		}
		if n := r.Metrics().Misses - before; n != misses {
			t.Errorf("%s: %d misses, want %d", host, n, misses)
		}
		r.Settle()
	}
	for _, host := range []string{"p1.example", "a.b.p2.example"} {
		f(host, "before", 1)
		f(host, "before", 0)
		f(host, "before", 0)
	}
	for _, turn := range []string{"after", "later"} {
		apply(t, r, largeFiles(turn)...)
		for _, host := range []string{"p1.example", "a.b.p2.example"} {
			f(host, turn, 1)
			f(host, turn, 0)
		}
	}
	// A small change makes only its own answers stale.
	p := block("p1", "p1.example", "*.p1.example")
	p.Project.Name = "small"
	apply(t, r, file("p1.hcl", p))
	f("p1.example", "small", 1)
	f("a.b.p2.example", "later", 0)
	// A change that removes the names leaves nothing behind.
	files := largeFiles("less")
	files[1], files[2] = gone("p1.hcl"), gone("p2.hcl")
	apply(t, r, files...)
	for _, host := range []string{"p1.example", "a.b.p2.example"} {
		if a := resolve(t, r, host, resolver.Nested); a.Code != catalog.CodeNotFound {
			t.Errorf("%s: %s is still there", host, a.Slug)
		}
	}
}

// Under a large change no reader sees an old answer once it is acknowledged, nor after a new one.
func TestLargeChangeUnderLoad(t *testing.T) {
	t.Parallel()
	testrig.Thorough(t)
	turns := testrig.Size(t, 5, 1)
	r := open(t, resolver.Options{DataDir: t.TempDir()})
	apply(t, r, largeFiles("0")...)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			seen := ""
			for i := w; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				a, err := r.Resolve(fmt.Appendf(nil, "p%d.example", i%40), resolver.Nested)
				if err != nil {
					t.Error(err)
					return
				}
				_, rest, _ := strings.Cut(string(a.Data), `"name":"`)
				if name, _, _ := strings.Cut(rest, `"`); i%40 == 7 {
					if name < seen {
						t.Errorf("%s after %s", name, seen)
					}
					seen = name
				}
			}
		})
	}
	for turn := 1; turn <= turns; turn++ {
		name := fmt.Sprint(turn)
		apply(t, r, largeFiles(name)...)
		for i := range 40 {
			if a := resolve(t, r, fmt.Sprintf("p%d.example", i), resolver.Nested); !strings.Contains(string(a.Data), `"name":"`+name+`"`) {
				t.Errorf("an answer from before: %s", a.Data)
			}
		}
	}
	close(stop)
	wg.Wait()
}
