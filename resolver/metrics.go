package resolver

import "sync/atomic"

// counters are written on the hot path: one atomic add per answer.
type counters struct {
	hits spread

	negativeHits, misses, storeReads, evictions atomic.Uint64
}

// A spread is a counter that all cores increment with every answer. To avoid contention on one cache line, it is spread
// over several, by the name's hash.
type spread [16]struct {
	n atomic.Uint64
	_ [56]byte
}

func (s *spread) add(hash uint64) { s[hash>>32%uint64(len(s))].n.Add(1) }

func (s *spread) load() (sum uint64) {
	for i := range s {
		sum += s[i].n.Load()
	}
	return sum
}

// Metrics are counts since the start, and the present state of the caches.
type Metrics struct {
	Hits         uint64 // answers from the cache, without those of unknown names
	NegativeHits uint64 // unknown names answered from their cache
	Misses       uint64 // answers that were built or waited for
	StoreReads   uint64 // reads of the store for such answers
	Evictions    uint64 // entries evicted from both caches

	CacheBytes, CacheLimit     int64 // memory of the cached entries, in bytes
	UnknownBytes, UnknownLimit int64
	TrackedProjects            int // projects that some cached answer depends on
}

// Metrics returns the present values. They are not read atomically together.
func (r *Resolver) Metrics() Metrics {
	m := Metrics{
		Hits: r.metrics.hits.load(), NegativeHits: r.metrics.negativeHits.Load(), Misses: r.metrics.misses.Load(),
		StoreReads: r.metrics.storeReads.Load(), Evictions: r.metrics.evictions.Load(),
		CacheLimit: r.known.MaxCost(), UnknownLimit: r.unknown.MaxCost(),
		TrackedProjects: r.stamps.projects.len(),
	}
	m.CacheBytes = m.CacheLimit - r.known.RemainingCost()
	m.UnknownBytes = m.UnknownLimit - r.unknown.RemainingCost()
	return m
}
