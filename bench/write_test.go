package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// pristine fails unless the corpus is as it was generated, and nothing else lies around.
func pristine(t *testing.T, c *corpus) {
	t.Helper()
	for i := range c.Projects {
		if got, err := os.ReadFile(c.path(i)); err != nil || !bytes.Equal(got, c.file(i, c.Revision)) {
			t.Errorf("project %d was not restored: %v", i, err)
		}
	}
	root, files := filepath.Dir(c.config), 0
	err := filepath.WalkDir(root, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files++
		}
		return err
	})
	if want := c.Projects + len([]string{keysFile, metaFile}); err != nil || files != want {
		t.Errorf("%d files in %s, want %d; %v", files, root, want, err)
	}
}

// A server that says 200 and has not taken the new value voids the figures, as does one that refuses.
func TestWriteLost(t *testing.T) {
	b := smallBench(t)
	b.round = time.Minute // the first wrong answer ends it
	c := smallCorpus(t, b)
	f := func(status int, want string) {
		t.Helper()
		s := standIn(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"data":{"slug":"%s","description":"the old one"}}`, c.slugs[0])
		})
		side := &writeSide{name: s.name, pid: s.pid, last: new(atomic.Int64),
			writer: func() (writer, error) { return servedWriter(s, c) }}
		err := b.lead(t.Context(), b.writing(side, [][]int{{0}, {0}}, 0))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
	f(200, "the answer has not")
	f(401, "status 401")
}

func TestBareProgram(t *testing.T) {
	b := smallBench(t)
	p, e, err := b.newBareProgram()
	if err != nil {
		t.Fatal(err)
	}
	c := e.corpus
	e.touch([][]int{{3}})
	w, err := p.writer()
	if err != nil {
		t.Fatal(err)
	}
	for _, revision := range []int{2, 4} { // even ones differ in their digits only
		if err := w.write(3, revision); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(c.path(3)); err != nil || !bytes.Equal(got, c.file(3, revision)) {
			t.Errorf("after the write of revision %d: %v\n%s", revision, err, got)
		}
	}
	if info, err := os.Stat(c.path(3)); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("the file has mode %v, %v", info.Mode(), err)
	}
	if m := p.store.Metrics(); m.WAL.BytesIn < 2*recordBytes || m.WAL.BytesIn > 3*recordBytes {
		t.Errorf("the store was given %d bytes by two writes", m.WAL.BytesIn)
	}
	end(t, b)
	pristine(t, c)
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
	if got := muchAsked([]uint32{9, 2, 8, 0, 30}, 3); !slices.Equal(got, []int{3, 0, 2, 10}) {
		t.Errorf("muchAsked = %v", got)
	}
}

// A paced side writes neither sooner nor more often than is due.
func TestPacedWrites(t *testing.T) {
	const every, stretch = 10 * time.Millisecond, 95 * time.Millisecond
	began := time.Now()
	side := &writeSide{name: "nobody", last: new(atomic.Int64), writer: func() (writer, error) {
		return writer{write: func(int, int) error { return nil }, close: func() {}}, nil
	}}
	res, err := side.write(t.Context(), deal([]int{1, 2, 3}, 2), every, stretch)
	if err != nil {
		t.Fatal(err)
	}
	if most := int(time.Since(began)/every) + 1; res.count() < 1 || res.count() > most {
		t.Errorf("%d writes in %v, want at most %d", res.count(), time.Since(began), most)
	}
}
