package ledger

import (
	"errors"
	"math"

	"github.com/cockroachdb/pebble/v2"
)

// A span is a range of keys, from lower to before upper, and the direction of a walk through it.
type span struct {
	lower, upper []byte
	descending   bool
}

// under is the span of all keys with a prefix.
func under(prefix ...byte) span { return span{lower: prefix, upper: after(prefix)} }

// errStop ends a walk, which then returns no error.
var errStop = errors.New("stop")

// walk calls f with the records of a span, until f returns an error. It sets the iterator's bounds; f must not move it.
// Key and record are valid within the call.
func walk(it *pebble.Iterator, s span, f func(key, rec []byte) error) error {
	it.SetBounds(s.lower, s.upper)
	first, next := it.First, it.Next
	if s.descending {
		first, next = it.Last, it.Prev
	}
	for ok := first(); ok; ok = next() {
		rec, err := it.ValueAndErr()
		if err == nil {
			err = f(it.Key(), rec)
		}
		switch {
		case err == nil:
		case errors.Is(err, errStop):
			return nil
		default:
			return err
		}
	}
	return it.Error()
}

// walk is the function walk as of this moment. Its caller keeps the ledger open.
func (l *Ledger) walk(s span, f func(key, rec []byte) error) error {
	it, err := l.db.NewIter(&pebble.IterOptions{LowerBound: s.lower, UpperBound: s.upper})
	if err != nil {
		return err
	}
	return errors.Join(walk(it, s, f), it.Close())
}

// scan is walk for callers that do not keep the ledger open.
func (l *Ledger) scan(s span, f func(key, rec []byte) error) error {
	return l.read(func() error { return l.walk(s, f) })
}

// A page collects the rows of one page of a list. A walk adds the rows of the list in their order.
type page[T any] struct {
	skip, size int  // rows before the page, and in it
	counted    bool // the length of the list is known: the walk ends with the page
	total      int  // rows of the list: counted, or added so far
	added      int
	rows       []T
}

// pageOf returns the page with a number, from 1, of a list whose rows are counted by the walk.
func pageOf[T any](number, limit int) page[T] {
	skip, size := window(number, limit, math.MaxInt)
	return page[T]{skip: skip, size: size}
}

// countedPage returns the page with a number, from 1, of a list of total rows. If its size is 0 it needs no walk.
func countedPage[T any](number, limit, total int) page[T] {
	skip, size := window(number, limit, total)
	return page[T]{skip: skip, size: size, counted: true, total: total}
}

// window returns how many of total rows come before a page, and how many are in it.
func window(number, limit, total int) (skip, size int) {
	before := max(number, 1) - 1
	if limit <= 0 || before > total/limit {
		return total, 0
	}
	skip = before * limit
	return skip, max(0, min(limit, total-skip))
}

// add adds the next row of the list, which is decoded only if it is in the page.
func (p *page[T]) add(decode func(row *T) error) error {
	p.added++
	if !p.counted {
		p.total = p.added
	}
	if p.added <= p.skip || len(p.rows) == p.size {
		return nil
	}
	var row T
	if err := decode(&row); err != nil {
		return err
	}
	if p.rows = append(p.rows, row); p.counted && len(p.rows) == p.size {
		return errStop
	}
	return nil
}
