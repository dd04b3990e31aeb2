package gateway

import (
	"crypto/sha256"
	"encoding/binary"
	"testing"
	"time"
)

// inSet makes a token's sum that belongs to a set.
func inSet(set, n uint64) (sum [sha256.Size]byte) {
	binary.LittleEndian.PutUint64(sum[:], n*verifiedSets+set)
	return sum
}

// tokens are verified tokens at a time, under test.
type tokens struct {
	*testing.T
	verifiedTokens
	now time.Time
}

func newTokens(t *testing.T) *tokens { return &tokens{T: t, now: time.Unix(1_800_000_000, 0)} }

// byOf identifies the keys of a project with this secret.
func byOf(secret string) keysIdentity { return keysIdentity{own: sha256.Sum256([]byte(secret))} }

func (t *tokens) add(project int64, secret string, sum [sha256.Size]byte) {
	t.store(&verified{Identity: &Identity{ProjectID: project, from: t.now.Add(-time.Hour), until: t.now.Add(time.Hour)},
		sum: sum, by: byOf(secret)}, t.now)
}

func (t *tokens) want(project int64, secret string, sum [sha256.Size]byte, found bool) {
	t.Helper()
	by := byOf(secret)
	if user := t.find(&sum, project, &by, t.now); (user != nil) != found || user != nil && user.ProjectID != project {
		t.Errorf("project %d, secret %s: %v, want found: %t", project, secret, user, found)
	}
}

// A token counts for its project, its secret and its times only, wherever the clock goes.
func TestVerifiedTokens(test *testing.T) {
	t := newTokens(test)
	sum := inSet(5, 1)
	t.add(1, "old", sum)
	t.want(1, "old", sum, true)
	t.want(1, "new", sum, false)
	t.want(2, "old", sum, false)
	t.want(1, "old", inSet(5, 2), false)
	t.add(2, "old", sum) // the same bytes, good for both
	t.want(1, "old", sum, true)
	t.want(2, "old", sum, true)
	t.add(1, "new", inSet(5, 2)) // in the place of the one with the old secret
	t.want(1, "old", sum, false)
	t.want(1, "new", inSet(5, 2), true)
	begun := t.now
	for by, found := range map[time.Duration]bool{
		-time.Hour - 1: false, -time.Hour: true, time.Hour - 1: true, time.Hour: false, 100 * 365 * 24 * time.Hour: false,
	} {
		t.now = begun.Add(by)
		t.want(2, "old", sum, found)
	}
	t.now = begun
	t.store(&verified{Identity: &Identity{ProjectID: 1, until: t.now.Add(1), data: make([]byte, maxVerifiedData+1)}, sum: inSet(6, 1), by: byOf("")}, t.now)
	t.want(1, "", inSet(6, 1), false)
}

// Whatever one project stores, the others find their tokens, and newcomers find a place.
func TestVerifiedShare(test *testing.T) {
	t := newTokens(test)
	t.add(2, "b", inSet(5, 1))
	t.add(2, "b", inSet(5, 2))
	flood := func(n uint64) {
		for i := range n {
			t.add(1, "a", inSet(5, 1000+i))
		}
	}
	count := func(project int64) (n int) {
		for i := range t.sets[5].ways {
			if w := t.sets[5].ways[i].Load(); w != nil && w.ProjectID == project {
				n++
			}
		}
		return n
	}
	flood(1000)
	t.want(2, "b", inSet(5, 1), true)
	t.want(2, "b", inSet(5, 2), true)
	if n := count(1); n != verifiedWays-2*quarter {
		t.Errorf("the flood has %d places", n)
	}
	for project := int64(3); project <= 6; project++ { // each takes a place, at last those of the flood
		t.add(project, "c", inSet(5, 1))
		flood(1000)
		t.want(project, "c", inSet(5, 1), true)
	}
	t.want(2, "b", inSet(5, 1), true)
	// Those of one project that are used stay longest.
	t.add(7, "d", inSet(9, 1))
	for i := range uint64(100) {
		t.want(7, "d", inSet(9, 1), true)
		t.add(7, "d", inSet(9, 2+i))
	}
	t.want(7, "d", inSet(9, 1), true)
	// The places of tokens that are over are free for all.
	t.now = t.now.Add(2 * time.Hour)
	for i := range uint64(verifiedWays - quarter) {
		t.add(8, "e", inSet(5, i))
	}
	if n := count(8); n != verifiedWays-quarter {
		t.Errorf("a project alone has %d places", n)
	}
}
