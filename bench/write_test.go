package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A server that says 200 and has not taken the new value voids the figures, as does one that refuses.
func TestWriteLost(t *testing.T) {
	b := smallBench(t)
	c := smallCorpus(t, b)
	f := func(status int, want string) {
		t.Helper()
		s := standIn(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"data":{"slug":"%s","description":"the old one"}}`, c.slugs[0])
		})
		_, err := load{side: served(s, c, [][]int{{0}, {0}}), workers: 2}.run(t.Context()) // the first wrong answer ends it
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
	f(200, "status 200")
	f(401, "status 401")
}

func TestBareProgram(t *testing.T) {
	b := smallBench(t)
	p, err := b.newBareProgram()
	if err != nil {
		t.Fatal(err)
	}
	c := p.corpus
	w := p.side([][]int{{3}}).worker(0)
	for _, revision := range []int{2, 4} { // even ones differ in their digits only
		c.last.Store(int64(revision - 1))
		if err := w.do(); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(c.path(3)); err != nil || !bytes.Equal(got, c.file(3, revision)) {
			t.Errorf("after the write of revision %d: %v\n%s", revision, err, got)
		}
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(c.path(3)), ".bare-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if info, err := os.Stat(c.path(3)); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("the file has mode %v, %v", info.Mode(), err)
	}
	if m := p.store.Metrics(); m.WAL.BytesIn < 2*recordBytes || m.WAL.BytesIn > 3*recordBytes {
		t.Errorf("the store was given %d bytes by two writes", m.WAL.BytesIn)
	}
}

// Clients share no file, and the files lie evenly among the projects.
func TestOwnFiles(t *testing.T) {
	f := func(span, clients, each, last int) {
		t.Helper()
		seen, highest := map[int]bool{}, 0
		for _, projects := range ownFiles(span, clients) {
			if len(projects) != each {
				t.Errorf("a client of %d has %d files of %d, want %d", clients, len(projects), span, each)
			}
			for _, p := range projects {
				if seen[p] {
					t.Errorf("two of %d clients write project %d", clients, p)
				}
				seen[p] = true
				highest = max(highest, p)
			}
		}
		if highest < last || highest >= span {
			t.Errorf("the last project that is written is %d, want at least %d and below %d", highest, last, span)
		}
	}
	f(1000, 64, 15, 990)
	f(1000, 1, 16, 900)
	f(1000, 1000, 1, 999)
	f(100_000, 64, 16, 99_900)
	if got := muchAsked([]uint32{9, 2, 8, 0, 30}, 3, 4); !slices.Equal(got, []int{3, 0, 2, 10}) {
		t.Errorf("muchAsked = %v", got)
	}
}
