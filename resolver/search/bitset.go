package search

import (
	"iter"
	"math/bits"
)

// A bitset is a set of document numbers. A nil one is empty.
type bitset []uint64

func newBitset(size int) bitset { return make(bitset, (size+63)/64) }

func (b bitset) set(n uint32) { b[n/64] |= 1 << (n % 64) }

func (b bitset) has(n uint32) bool { return b != nil && b[n/64]&(1<<(n%64)) != 0 }

func (b bitset) count() (sum int) {
	for _, word := range b {
		sum += bits.OnesCount64(word)
	}
	return sum
}

// and keeps what is in both sets, which must have the same size.
func (b bitset) and(other bitset) {
	for i := range b {
		b[i] &= other[i]
	}
}

// all yields the numbers in ascending order.
func (b bitset) all() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for i, word := range b {
			for ; word != 0; word &= word - 1 {
				if !yield(uint32(i*64 + bits.TrailingZeros64(word))) {
					return
				}
			}
		}
	}
}
