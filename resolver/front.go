package resolver

import (
	"math/rand/v2"
	"sync/atomic"
	"unsafe"
)

// A front is two tables of answers before ristretto: a name is had with a load or two, without ristretto's locks and
// books. It is no second cache to keep in step: an answer from here is compared and proved fresh like every other, and
// goes when it leaves ristretto, so that the budget in bytes holds for all.
//
// far has a slot for each answer that fits into the budget, which makes it larger than the processor's caches; near is
// small enough to stay in them, and holds most of what is asked most.
type front struct {
	near []nearSlot
	far  []atomic.Pointer[Answer]
}

// A nearSlot names its answer's key, so that another name's answer, which may be far from the processor, is not looked
// at. The two are not written as one: the key is a hint, the answer is compared.
type nearSlot struct {
	key    atomic.Uint64
	answer atomic.Pointer[Answer]
}

const maxNear = 8192

// newFront makes the tables for a budget in bytes. Powers of two.
func newFront(bytes int64) front {
	n := 64
	for int64(n)*2*expectedAnswerBytes <= bytes {
		n *= 2
	}
	return front{near: make([]nearSlot, min(n, maxNear)), far: make([]atomic.Pointer[Answer], n)}
}

// bytes is the memory of the tables themselves.
func (f *front) bytes() int64 {
	return int64(len(f.near))*int64(unsafe.Sizeof(f.near[0])) + int64(len(f.far))*int64(unsafe.Sizeof(f.far[0]))
}

func (f *front) nearSlot(key uint64) *nearSlot { return &f.near[key&uint64(len(f.near)-1)] }

func (f *front) farSlot(key uint64) *atomic.Pointer[Answer] {
	return &f.far[key&uint64(len(f.far)-1)]
}

// get returns the answer to host, if it is here and fresh.
func (f *front) get(key uint64, host []byte, form Form, s *stamps) *Answer {
	near := f.nearSlot(key)
	if near.key.Load() == key {
		if a := near.answer.Load(); a != nil && a.is(host, form) && s.fresh(a) {
			return a
		}
	}
	a := f.farSlot(key).Load()
	if a == nil || !a.is(host, form) || !s.fresh(a) {
		return nil
	}
	if seldom() {
		near.answer.Store(a)
		near.key.Store(key)
	}
	return a
}

func (f *front) put(key uint64, a *Answer) { f.farSlot(key).Store(a) }

// drop forgets an answer that ristretto no longer has. One that is being put back at this moment stays until another
// name takes its slot.
func (f *front) drop(a *Answer) {
	key := cacheKey(a.hash, a.form)
	f.nearSlot(key).answer.CompareAndSwap(a, nil)
	f.farSlot(key).CompareAndSwap(a, nil)
}

// seldom is true one time in thirty-two. So often does a name that the front answers go to ristretto all the same, which
// decides what to keep by how often it is asked; and so often does a name move from far to near, which gives the place
// to those that are asked most and leaves the other cores' copies of near alone.
func seldom() bool { return rand.Uint32()%32 == 0 }
