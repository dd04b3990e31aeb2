package resolver

import "sync/atomic"

// counters are written on the hot path: one atomic add an answer.
type counters struct {
	hits, negativeHits, misses, storeReads, evictions atomic.Uint64
}

// Metrics are counts since the start, and the present state of the caches.
type Metrics struct {
	Hits         uint64 // answers from the cache, but for those of unknown names
	NegativeHits uint64 // unknown names answered from their cache
	Misses       uint64 // answers that had to be built or waited for
	StoreReads   uint64 // reads of the store for such answers
	Evictions    uint64 // entries that made room for others, in both caches

	CacheBytes, CacheLimit     int64 // cost of what is cached, in bytes of memory
	UnknownBytes, UnknownLimit int64
	TrackedProjects            int // projects that some cached answer depends on
}

// Metrics returns the present values. They are read one after the other.
func (r *Resolver) Metrics() Metrics {
	m := Metrics{
		Hits: r.metrics.hits.Load(), NegativeHits: r.metrics.negativeHits.Load(), Misses: r.metrics.misses.Load(),
		StoreReads: r.metrics.storeReads.Load(), Evictions: r.metrics.evictions.Load(),
		CacheLimit: r.known.MaxCost(), UnknownLimit: r.unknown.MaxCost(),
		TrackedProjects: r.stamps.projects.len(),
	}
	m.CacheBytes = m.CacheLimit - r.known.RemainingCost()
	m.UnknownBytes = m.UnknownLimit - r.unknown.RemainingCost()
	return m
}
