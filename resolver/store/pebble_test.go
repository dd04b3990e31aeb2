package store

import (
	"fingerpost/cmd/testrig"
	"testing"
	"time"
)

// TestOpenMergesNothing: a start must not wait for merges, however many tables were flushed before it.
func TestOpenMergesNothing(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
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
	for late := time.After(testrig.Patience); s.db.Metrics().Levels[0].TablesCount >= before; {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("nothing is merged\n%s", s.db.Metrics())
		}
	}
}
