package inbound

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"fingerpost/resolver/catalog"
)

// markPrefix begins the names of marks: each says that an outcome was applied. A mark's value is when the outcome
// happened, in Unix seconds: an older outcome is not applied any more, so that its mark can go, whatever our clock does.
const markPrefix = "mail/inbound/"

// maxMarks bounds the marks of a block. A block that has more takes nothing new: without its mark, an outcome could be
// applied again.
const maxMarks = 500_000

// pruneEvery is how often marks are forgotten.
const pruneEvery = time.Hour

// marks counts the marks of each block.
type marks struct {
	mu sync.Mutex // guards of
	of map[string]int
}

var errFull = &catalog.Error{Code: catalog.CodeRateLimited,
	Message: "the block has had more outcomes within 30 days than are kept apart"}

// full reports whether a block has as many marks as it may.
func (m *marks) full(block string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.of[block] >= maxMarks
}

func (m *marks) add(block string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of == nil {
		m.of = map[string]int{}
	}
	m.of[block]++
}

// Run forgets marks that are too old, and counts the others, until ctx ends.
func (d *Desk) Run(ctx context.Context) {
	tick := time.NewTicker(pruneEvery)
	defer tick.Stop()
	for {
		if err := d.prune(ctx); err != nil && ctx.Err() == nil {
			d.o.Logger.Warn("marks of outcomes stay for now", "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// pruneBatch is how many marks are removed in one batch.
const pruneBatch = 1000

func (d *Desk) prune(ctx context.Context) error {
	oldest := d.o.Now().Add(-keptFor - ahead).Unix()
	counts, gone, last := map[string]int{}, []string(nil), ""
	err := d.o.Ledger.EachNamed(markPrefix, func(name string, value []byte) error {
		if name <= last { // another ledger, from its beginning
			counts, gone = map[string]int{}, nil
		}
		last = name
		block, _, _ := strings.Cut(strings.TrimPrefix(name, markPrefix), "/")
		if at, err := strconv.ParseInt(string(value), 10, 64); err != nil || at < oldest {
			gone = append(gone, name)
		} else {
			counts[block]++
		}
		return ctx.Err()
	})
	for len(gone) > 0 && err == nil {
		n := min(len(gone), pruneBatch)
		batch := map[string][]byte{}
		for _, name := range gone[:n] {
			batch[name] = nil
		}
		gone, err = gone[n:], d.o.Ledger.SetNamed(batch)
	}
	if err == nil {
		d.marks.mu.Lock()
		d.marks.of = counts
		d.marks.mu.Unlock()
	}
	return err
}
