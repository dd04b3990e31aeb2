package gitrepo

import (
	"context"
	"slices"
	"sync"
)

// descriptions are the open proposals as they were described last. Each is made once for a pair of HEAD and last
// commit: who asks while it is being made waits for it. It is safe for concurrent use.
type descriptions struct {
	mu  sync.Mutex // guards what follows
	all map[string]*description
}

// A description is one that is made, or being made.
type description struct {
	head, tip string
	done      chan struct{} // closed with what follows
	p         *Proposal     // nil: it could not be made
}

// get returns a description, which describe makes unless it is known. last is the one before, nil if there is none.
func (d *descriptions) get(ctx context.Context, name, head, tip string,
	describe func(last *Proposal) (*Proposal, error)) (*Proposal, error) {
	for {
		d.mu.Lock()
		known := d.all[name]
		if known == nil || known.head != head || known.tip != tip {
			return d.begin(name, head, tip, known, describe)
		}
		d.mu.Unlock()
		select {
		case <-known.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if known.p != nil {
			return known.p, nil
		}
	}
}

// begin makes a description. The caller holds mu, which begin gives back.
func (d *descriptions) begin(name, head, tip string, known *description,
	describe func(last *Proposal) (*Proposal, error)) (*Proposal, error) {
	var last *Proposal
	if known != nil {
		select {
		case <-known.done:
			last = known.p
		default: // for another commit
		}
	}
	if d.all == nil {
		d.all = map[string]*description{}
	}
	own := &description{head: head, tip: tip, done: make(chan struct{})}
	d.all[name] = own
	d.mu.Unlock()
	p, err := describe(last)
	if err != nil {
		d.mu.Lock()
		if d.all[name] == own {
			delete(d.all, name)
		}
		d.mu.Unlock()
	}
	own.p = p
	close(own.done)
	return p, err
}

// keepOnly forgets the descriptions of all other names.
func (d *descriptions) keepOnly(names []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for name := range d.all {
		if !slices.Contains(names, name) {
			delete(d.all, name)
		}
	}
}
