package resolver

import (
	"hash/maphash"
	"unsafe"

	"fingerpost/resolver/catalog"
)

// A Question is a domain that will be asked for in a moment, in the nested form. The answer lies in main memory, which
// takes as long to reach as half of all that a request costs Go's side; with Expect when the question has come in and
// Approach once the request has been parsed, it is on its way meanwhile. The zero value is ready for use; it belongs to
// one goroutine at a time.
type Question struct {
	host [catalog.MaxHostLen + 3]byte
	n    int
	idn  bool
	hash uint64
}

// Expect takes note of raw, which is not kept, and reports whether q can be answered: it cannot where raw is no host
// name, for which Resolve has the error, nor where it is very long as it is spelled.
func (r *Resolver) Expect(q *Question, raw []byte) bool {
	host, idn, err := catalog.AppendHost(q.host[:0], raw)
	if err != nil || len(host) > len(q.host) { // a name that is not in ASCII may get shorter yet: Resolve has room for it
		return false
	}
	q.n, q.idn, q.hash = len(host), idn, maphash.Bytes(r.seed, host)
	r.front.prefetchSlots(cacheKey(q.hash, Nested))
	return true
}

// Approach brings the answer nearer. It may be left out.
func (r *Resolver) Approach(q *Question) { r.front.prefetchAnswer(cacheKey(q.hash, Nested)) }

// ResolveExpected is Resolve for a question that Expect has taken note of.
func (r *Resolver) ResolveExpected(q *Question) (*Answer, error) {
	return r.resolve(q.host[:q.n], q.idn, q.hash, Nested)
}

func (f *front) prefetchSlots(key uint64) {
	prefetch(unsafe.Pointer(f.nearSlot(key)), 1)
	prefetch(unsafe.Pointer(f.farSlot(key)), 1)
}

// usualAnswer is how much of an answer is fetched ahead, in bytes; the rest follows as it is copied.
const usualAnswer = 1280

func (f *front) prefetchAnswer(key uint64) {
	a := f.farSlot(key).Load()
	if near := f.nearSlot(key); near.key.Load() == key {
		a = near.answer.Load()
	}
	if a != nil {
		prefetch(unsafe.Pointer(a), usualAnswer)
	}
}
