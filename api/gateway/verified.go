package gateway

import (
	"crypto/sha256"
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"
)

const (
	verifiedSets = 4096
	verifiedWays = 8 // places of a set
	quarter      = verifiedWays / 4
	// maxVerifiedData bounds what a token keeps in memory: 32,768 of them have at most about 50 MiB, usually a third.
	maxVerifiedData = 1 << 10
)

// verifiedTokens remembers tokens that were verified: verifying one costs as much as ten resolve hits. A token counts
// only for the project and the rules and keys that it was verified with, and while its times allow it, so no reload has to drop
// anything. Refused tokens are not remembered. The zero value is ready. Safe for concurrent use; find takes no lock.
//
// Each token belongs to one of the sets. A project may fill three quarters of a set, and the rest is left to the others;
// where a set is full, a project with less than a quarter of it takes the place of the project that has most.
type verifiedTokens struct{ sets [verifiedSets]tokenSet }

type tokenSet struct {
	mu   sync.Mutex // held to store
	ways [verifiedWays]atomic.Pointer[verified]
}

// A verified is a token that was verified. Only used changes.
type verified struct {
	*Identity
	sum  [sha256.Size]byte // of the token
	by   keysIdentity
	used atomic.Bool // since a search for a place has passed it
}

func (t *verifiedTokens) set(sum *[sha256.Size]byte) *tokenSet {
	return &t.sets[binary.LittleEndian.Uint64(sum[:])%verifiedSets]
}

// find returns the user of a token, nil if the token has to be verified.
func (t *verifiedTokens) find(sum *[sha256.Size]byte, projectID int64, by *keysIdentity, now time.Time) *Identity {
	set := t.set(sum)
	for i := range set.ways {
		v := set.ways[i].Load()
		if v != nil && v.sum == *sum && v.ProjectID == projectID && v.by == *by && v.validAt(now) {
			if !v.used.Load() { // a store by each request would make cores wait for each other
				v.used.Store(true)
			}
			return v.Identity
		}
	}
	return nil
}

// store remembers a token that was verified at a time.
func (t *verifiedTokens) store(v *verified, now time.Time) {
	if len(v.data) > maxVerifiedData {
		return
	}
	set := t.set(&v.sum)
	set.mu.Lock()
	defer set.mu.Unlock()
	set.place(v, now).Store(v)
}

// place returns the place of the set for a token. The caller holds mu.
func (s *tokenSet) place(v *verified, now time.Time) *atomic.Pointer[verified] {
	var free *atomic.Pointer[verified]
	places := 0 // that are free
	held := map[int64]int{}
	most := v.ProjectID
	for i := range s.ways {
		w := s.ways[i].Load()
		switch {
		case w == nil || !w.validAt(now):
			free = &s.ways[i]
			places++
			continue
		case w.ProjectID == v.ProjectID && (w.sum == v.sum || w.by != v.by):
			return &s.ways[i]
		}
		held[w.ProjectID]++
		if held[w.ProjectID] > held[most] {
			most = w.ProjectID
		}
	}
	switch mine := held[v.ProjectID]; {
	case places > quarter || mine < quarter && places > 0:
		return free
	case mine < quarter:
		return s.victim(most)
	}
	return s.victim(v.ProjectID)
}

// victim returns the place of a token of a project to forget: one that was not used since the last search passed it, or
// the last one. The caller holds mu, and the project has a place.
func (s *tokenSet) victim(projectID int64) (place *atomic.Pointer[verified]) {
	for i := range s.ways {
		if w := s.ways[i].Load(); w != nil && w.ProjectID == projectID {
			place = &s.ways[i]
			if !w.used.Swap(false) {
				break
			}
		}
	}
	return place
}
