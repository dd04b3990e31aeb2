package search

import (
	"encoding/binary"
	"iter"
	"slices"
	"sort"
)

// A posting is a list of ascending document numbers: differences as varints, the first one to -1.
type posting struct {
	bytes []byte
	count int
	next  uint32 // the last number + 1, while the list is made
}

// add appends n, unless it is the last number already.
func (p *posting) add(n uint32) {
	if p.next == n+1 {
		return
	}
	p.bytes = binary.AppendUvarint(p.bytes, uint64(n+1-p.next))
	p.next = n + 1
	p.count++
}

func (p *posting) all() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		next := uint64(0)
		for rest := p.bytes; len(rest) > 0; {
			difference, size := binary.Uvarint(rest)
			next, rest = next+difference, rest[size:]
			if !yield(uint32(next - 1)) {
				return
			}
		}
	}
}

func (p *posting) addTo(set bitset) {
	for n := range p.all() {
		set.set(n)
	}
}

// clip copies the list into slab, without the room that it grew into, and returns the rest of slab.
func (p *posting) clip(slab []byte) []byte {
	size := copy(slab, p.bytes)
	p.bytes = slab[:size:size]
	return slab[size:]
}

const gramLen = 3

// A gram is three bytes of a text, the first one highest.
type gram uint32

func gramOf(text []byte) gram { return gram(text[0])<<16 | gram(text[1])<<8 | gram(text[2]) }

// grams are the posting lists of all trigrams, by ascending trigram.
type grams struct {
	keys  []gram
	lists []posting
}

// find returns the posting list of a trigram, nil if no document has it.
func (g *grams) find(key gram) *posting {
	if at, found := slices.BinarySearch(g.keys, key); found {
		return &g.lists[at]
	}
	return nil
}

// starting returns the lists of the trigrams that begin with text, which has one or two bytes.
func (g *grams) starting(text []byte) []posting {
	low, width := gram(text[0])<<16, gram(1<<16)
	if len(text) == 2 {
		low, width = low|gram(text[1])<<8, 1<<8
	}
	from := sort.Search(len(g.keys), func(i int) bool { return g.keys[i] >= low })
	to := sort.Search(len(g.keys), func(i int) bool { return g.keys[i] >= low+width })
	return g.lists[from:to]
}

// A gramTable makes grams. A table in two steps takes half the time of a map.
type gramTable [1 << 16]*[1 << 8]posting

// add adds document n, whose text is at most as long as a text can be.
func (t *gramTable) add(n uint32, text []byte) {
	for ; len(text) >= gramLen; text = text[1:] {
		slot := &t[int(text[0])<<8|int(text[1])]
		if *slot == nil {
			*slot = new([1 << 8]posting)
		}
		(*slot)[text[2]].add(n)
	}
}

func (t *gramTable) finish() (g grams) {
	size := 0
	for high, slot := range t {
		if slot == nil {
			continue
		}
		for low := range slot {
			if slot[low].count > 0 {
				g.keys = append(g.keys, gram(high)<<8|gram(low))
				g.lists = append(g.lists, slot[low])
				size += len(slot[low].bytes)
			}
		}
	}
	slab := make([]byte, size)
	for i := range g.lists {
		slab = g.lists[i].clip(slab)
	}
	g.keys, g.lists = slices.Clip(g.keys), slices.Clip(g.lists)
	return g
}
