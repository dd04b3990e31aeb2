package resolver

import (
	"sync/atomic"
	"unsafe"

	"fingerpost/resolver/catalog"
)

// A Form is a shape of the resolve answer (contract http.md 3.3).
type Form uint8

const (
	// Nested is the specification's form: project, authSettings, serviceSettings, matchedDomain.
	Nested Form = iota
	// Flat is the variant form, with jwtSecret null.
	Flat
	// FlatSecrets is Flat with the jwtSecret in clear. Such answers are never cached.
	FlatSecrets
)

// An Answer is what resolve says about a domain. It is shared and must not be changed.
type Answer struct {
	// First what every hit looks at, so that it lies on one cache line.
	host      string
	confirmed atomic.Uint64 // the epoch at which the stamps were last known to be current
	form      Form
	byName    bool // the exact record decided, so the set of wildcards does not matter

	Data      []byte       // the JSON of the response's data; nil where Code is not ""
	Code      catalog.Code // "" where the domain was found; NOT_FOUND, DOMAIN_NOT_VERIFIED or PROJECT_SUSPENDED
	ETag      string       // strong and quoted; "" where Code is not ""
	ProjectID int64        // of the project that the domain belongs to, 0 if none
	Slug      string       // its slug, "" if none

	hash uint64
	seen seen
}

// answerOverhead is what an entry costs besides its own bytes: the struct and its places in ristretto's two maps.
const answerOverhead = int64(unsafe.Sizeof(Answer{})) + 176

// cost is the memory that the entry takes, in bytes, allocator's rounding included.
func (a *Answer) cost() int64 {
	return answerOverhead + int64(len(a.Data))*9/8 + int64(len(a.host)+len(a.ETag)+len(a.Slug))
}

// fresh reports whether a reflects all that has been acknowledged. See stamps for the proof.
func (s *stamps) fresh(a *Answer) bool {
	epoch := s.epoch.Load()
	return a.confirmed.Load() == epoch || s.confirm(a, epoch)
}

// confirm compares the stamps that a depends on. epoch was read before.
func (s *stamps) confirm(a *Answer, epoch uint64) bool {
	if s.names[a.hash%nameShards].Load() != a.seen.name {
		return false
	}
	if !a.byName && s.wildcards.Load() != a.seen.wildcards {
		return false
	}
	if a.seen.project != nil && (a.seen.project.n.Load() != a.seen.projectAt || s.defaults.Load() != a.seen.defaults) {
		return false
	}
	// Two at once may leave the lower epoch: that costs one more comparison.
	a.confirmed.Store(epoch)
	return true
}
