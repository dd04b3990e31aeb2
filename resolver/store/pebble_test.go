package store

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// TestOpenMergesNothing: a start must not wait for merges, however many tables were flushed before it.
func TestOpenMergesNothing(t *testing.T) {
	dir := t.TempDir()
	for n := range int64(flushedTables) {
		s, err := Open(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		m := s.db.Metrics()
		if m.Compact.Count > 0 || m.Compact.NumInProgress > 0 {
			t.Fatalf("start %d: opening the store began a merge\n%s", n, m)
		}
		if err := s.NoteRemovals([]byte{byte(n)}); err != nil { // for the next start to flush
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTidy: Tidy runs the merges that are due.
func TestTidy(t *testing.T) {
	dir := t.TempDir()
	for n := range int64(flushedTables) {
		s, err := Open(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.NoteRemovals([]byte{byte(n)}); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	before := s.db.Metrics().Levels[0].TablesCount
	if before < flushedTables/2 {
		t.Fatalf("%d flushed tables wait, which is not enough for a merge", before)
	}
	s.Tidy()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for late := time.After(30 * time.Second); s.db.Metrics().Levels[0].TablesCount >= before; {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("nothing is merged\n%s", s.db.Metrics())
		}
	}
}

// TestWarm: after Warm, domain records are not read from the disk.
func TestWarm(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	const domains = 10_000
	key := func(i int) []byte { return appendDomainKey(nil, fmt.Appendf(nil, "d%d.example", i)) }
	for i := range domains {
		if err := s.db.Set(key(i), bytes.Repeat([]byte{byte(i)}, 400), pebble.NoSync); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(dir, Options{}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	rests := 0
	if err := s.Warm(func() { rests++ }); err != nil {
		t.Fatal(err)
	}
	if rests < domains/100 {
		t.Errorf("only %d rests", rests)
	}
	before := s.db.Metrics().BlockCache.Misses
	for i := range domains {
		if _, closer, err := s.db.Get(key(i)); err != nil {
			t.Fatal(err)
		} else {
			closer.Close()
		}
	}
	if missed := s.db.Metrics().BlockCache.Misses - before; missed > domains/1000 { // allows for a filter and an index
		t.Errorf("%d blocks had to be read", missed)
	}
}
