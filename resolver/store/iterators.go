package store

import (
	"errors"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// iterators keeps what readers have left, for the next ones. An iterator shows the state of the moment at which it was
// made and holds on to that state's tables, so all go when something is committed, and one is used for a while only:
// compactions replace tables without a commit.
type iterators struct {
	mu      sync.Mutex // guards what follows
	version uint64     // counts the commits
	idle    []*keptIterator
	closed  bool
}

type keptIterator struct {
	*pebble.Iterator
	version uint64
	made    time.Time
}

// maxAge is how long an iterator is used.
const maxAge = 10 * time.Second

// maxIdle is how many iterators wait for readers: as many as are busy at a time on the cores of a large machine.
const maxIdle = 64

// take returns an iterator over the newest state.
func (p *iterators) take(db *pebble.DB) (*keptIterator, error) {
	p.mu.Lock()
	version := p.version // before the iterator is made: it may show more than that, never less
	var it *keptIterator
	if n := len(p.idle); n > 0 {
		it = p.idle[n-1]
		p.idle = p.idle[:n-1]
	}
	p.mu.Unlock()
	if it != nil {
		if time.Since(it.made) < maxAge {
			return it, nil
		}
		if err := it.Close(); err != nil {
			return nil, err
		}
	}
	made, err := db.NewIter(nil)
	return &keptIterator{made, version, time.Now()}, err
}

// leave gives an iterator back. One that has met an error is not used again.
func (p *iterators) leave(it *keptIterator) error {
	if it.Error() == nil {
		p.mu.Lock()
		if it.version == p.version && !p.closed && len(p.idle) < maxIdle {
			p.idle = append(p.idle, it)
			p.mu.Unlock()
			return nil
		}
		p.mu.Unlock()
	}
	return it.Close()
}

// outdate is called after each commit, before anybody hears of it.
func (p *iterators) outdate() error {
	p.mu.Lock()
	p.version++
	old := p.idle
	p.idle = nil
	p.mu.Unlock()
	return closeAll(old)
}

// close is called once no reader is left or will come.
func (p *iterators) close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	return p.outdate()
}

func closeAll(its []*keptIterator) error {
	var errs []error
	for _, it := range its {
		errs = append(errs, it.Close())
	}
	return errors.Join(errs...)
}
