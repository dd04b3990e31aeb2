package resolver

import (
	"math/rand/v2"
	"sync/atomic"
)

// A front is a small table of answers before ristretto: the few names that make up most requests are had with one load,
// without ristretto's locks and books. A slot holds the answer that ristretto gave last for any of the names that share
// it. It is no second cache to keep in step: an answer from here is compared and proved fresh like every other.
type front struct {
	slots []atomic.Pointer[Answer]
}

// frontShare is the part of the budget that the front may take.
const frontShare = 16

// newFront makes a table for a budget. A power of two.
func newFront(bytes int64) front {
	n := 64
	for int64(n)*2*expectedAnswerBytes*frontShare <= bytes {
		n *= 2
	}
	return front{make([]atomic.Pointer[Answer], n)}
}

func (f *front) slot(key uint64) *atomic.Pointer[Answer] { return &f.slots[key&uint64(len(f.slots)-1)] }

// letThrough is true one time in sixteen: ristretto decides what to keep by how often it is asked, and would forget the
// names that the front answers all the time.
func letThrough() bool { return rand.Uint32()%16 == 0 }
