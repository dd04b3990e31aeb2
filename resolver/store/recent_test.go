package store

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
)

// TestRecent follows random batches and compares with what the store would hold, and with the memory that was promised.
func TestRecent(t *testing.T) {
	s, err := Open("", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	rng := rand.New(rand.NewPCG(1, 2))
	r, holds := new(recent), map[string][]byte{}
	hits, flips := 0, 0
	for round := range 1000 {
		b := s.db.NewBatch()
		for range rng.IntN(20) {
			key := fmt.Appendf(nil, "%c%d", "fpdtkbm"[rng.IntN(7)], rng.IntN(300))
			switch rng.IntN(8) {
			case 0:
				delete(holds, string(key))
				err = b.Delete(key, nil)
			case 1: // too long to be kept: what was kept of it must go
				holds[string(key)] = bytes.Repeat([]byte{byte(round)}, recentValue+1)
				err = b.Set(key, holds[string(key)], nil)
			default:
				holds[string(key)] = bytes.Repeat([]byte{byte(round)}, rng.IntN(recentValue))
				err = b.Set(key, holds[string(key)], nil)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		before := r.young
		r.follow(b)
		if before != nil && r.young == nil {
			flips++
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		for key, want := range holds {
			if got, ok := r.get([]byte(key)); ok {
				hits++
				if !bytes.Equal(got, want) {
					t.Fatalf("round %d: %s is %d bytes of %.1x…, want %d of %.1x…", round, key, len(got), got, len(want), want)
				}
			}
		}
		needs := map[*map[string]*remembered]int{}
		for _, m := range []*map[string]*remembered{&r.young, &r.old} {
			for key, e := range *m {
				if holds[key] == nil {
					t.Fatalf("round %d: %s is remembered and gone", round, key)
				}
				needs[m] += recentPerItem + len(key) + cap(e.value)
			}
		}
		if needs[&r.young] != r.bytes || r.bytes > recentBytes || needs[&r.old] > recentBytes+2*recentValue {
			t.Fatalf("round %d: %d bytes and %d, %d counted", round, needs[&r.young], needs[&r.old], r.bytes)
		}
	}
	if hits == 0 || flips < 3 {
		t.Errorf("%d hits, %d flips", hits, flips)
	}
	kept := maps.Clone(r.young)
	b := s.db.NewBatch()
	for i := range recentChange/recentValue + 1 {
		if err := b.Set(fmt.Appendf(nil, "p%d", i), make([]byte, recentValue), nil); err != nil {
			t.Fatal(err)
		}
	}
	r.follow(b)
	if len(kept) == 0 || len(r.young)+len(r.old) > 0 {
		t.Errorf("%d of %d are remembered behind a large batch", len(r.young)+len(r.old), len(kept))
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

// ForgetRecent makes the next change read everything anew.
func (s *Store) ForgetRecent() {
	s.write.Lock()
	defer s.write.Unlock()
	s.recent.forget()
}
