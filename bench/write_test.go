package main

import (
	"bytes"
	"context"

	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// writableCorpus is a small corpus whose key may write.
func writableCorpus(t *testing.T, b *bench, projects int) *corpus {
	t.Helper()
	p := corpusParams{Projects: projects, Domains: 3 * projects, Seed: 7, Writes: true}
	c, err := openCorpus(filepath.Join(b.work, "write-"+p.String()), p)
	if err != nil {
		t.Fatal(err)
	}
	if keys, err := c.keysText(); err != nil || !strings.Contains(string(keys), `"write"`) {
		t.Fatalf("the key may not write: %s, %v", keys, err)
	}
	return c
}

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

func TestSmokeWrite(t *testing.T) {
	b := smallBench(t)
	b.writeRate = 200
	c := writableCorpus(t, b, 40)
	ours, restore, err := newServedSide(startStandIn(t, c), c)
	if err != nil {
		t.Fatal(err)
	}
	bare, leave, err := b.bareWrites(b.corpus)
	if err != nil {
		t.Fatal(err)
	}
	rep, err := b.againstBare(t.Context(), ours, bare)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.resolveWhileWriting(t.Context(), ours, rep); err != nil {
		t.Fatal(err)
	}
	if n := len(ours.files.touched); n != c.Projects {
		t.Errorf("%d projects were written, want all %d", n, c.Projects)
	}
	for _, name := range []string{
		"4 at once: durable writes", "1 at once: latency p50", "resolve while 200 writes a second come in",
	} {
		if r := find(t, rep, name); r.Figure.Median <= 0 || r.Baseline.Median <= 0 || r.Ratio.Low > r.Ratio.High || r.Goal == nil {
			t.Errorf("row %+v", r)
		}
	}
	if r := find(t, rep, "writes meanwhile"); r.Figure.Median <= 0 || r.Figure.Median > 2*b.writeRate {
		t.Errorf("row %+v", r)
	}
	for _, end := range []func() error{restore, leave} {
		if err := end(); err != nil {
			t.Error(err)
		}
	}
	pristine(t, c)
	pristine(t, bare.files.corpus)
}

// A server that says 200 and has not taken the new value voids the figures, as does one that refuses.
func TestSmokeWriteLost(t *testing.T) {
	b := smallBench(t)
	c := writableCorpus(t, b, 40)
	f := func(s *server, want string) {
		t.Helper()
		side, _, err := newServedSide(s, c)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.writeRound(t.Context(), &side.writeSide, 4, new(writeFigures)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("writeRound: %v, want an error with %q", err, want)
		}
	}
	f((&standIn{corpus: c, deaf: true}).start(t), "the answer has not")
	other := *c
	other.key = "another"
	f(startStandIn(t, &other), "status 401")
}

func TestBareProgram(t *testing.T) {
	b := smallBench(t)
	c := smallCorpus(t, b)
	p, err := newBareProgram(c)
	if err != nil {
		t.Fatal(err)
	}
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
	if err := w.write(3, 0); err != nil {
		t.Fatal(err)
	}
	if err := p.close(); err != nil {
		t.Error(err)
	}
	pristine(t, c)
}

// Clients share no file, and a side's files lie evenly among its projects.
func TestOwnFiles(t *testing.T) {
	f := func(s *writeSide, clients, each, last int) {
		t.Helper()
		seen, highest := map[int]bool{}, 0
		for _, projects := range s.own(clients) {
			if len(projects) != each {
				t.Errorf("%s: a client of %d has %d files, want %d", s.name, clients, len(projects), each)
			}
			for _, p := range projects {
				if seen[p] {
					t.Errorf("%s: two of %d clients write project %d", s.name, clients, p)
				}
				seen[p] = true
				highest = max(highest, p)
			}
		}
		if highest < last || highest >= s.span {
			t.Errorf("%s: the last project that is written is %d, want at least %d and below %d", s.name, highest, last, s.span)
		}
	}
	small, large := &writeSide{name: "small", span: 1000}, &writeSide{name: "large", span: 100_000}
	f(small, 64, 15, 990)
	f(small, 1, 16, 900)
	f(small, 1000, 1, 999)
	f(large, 64, 16, 99_900)
	if got := muchAsked([]uint32{9, 2, 8, 0, 30}, 3); !slices.Equal(got, []int{3, 0, 2, 10}) {
		t.Errorf("muchAsked = %v", got)
	}
}

// A paced side writes neither sooner nor more often than is due.
func TestPacedWrites(t *testing.T) {
	b := smallBench(t)
	c := smallCorpus(t, b)
	files, err := toWrite(c)
	if err != nil {
		t.Fatal(err)
	}
	const every, stretch = 10 * time.Millisecond, 95 * time.Millisecond
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), stretch)
	defer cancel()
	side := &writeSide{name: "nobody", files: files, writer: func() (writer, error) {
		return writer{write: func(int, int) error { return nil }, close: func() {}}, nil
	}}
	res, err := side.write(ctx, deal([]int{1, 2, 3}, 2), every)
	if err != nil {
		t.Fatal(err)
	}
	if most := int(time.Since(began)/every) + 1; res.count() < 1 || res.count() > most {
		t.Errorf("%d writes in %v, want at most %d", res.count(), time.Since(began), most)
	}
}
