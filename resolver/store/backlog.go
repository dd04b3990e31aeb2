package store

import (
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

const (
	// hurryTables is at how many flushed tables merging them stops taking its time. A merge of all that 100,000 projects
	// are takes 2.5 s of CPU, and several times that when it rests on a busy machine: far more than the two or three
	// flushes' time in which a flood of writes would reach Pebble's own bound of 12, where every write waits for the merge.
	hurryTables = 12
	// stopTables is at how many writes have to wait all the same. A read asks the filter of each.
	stopTables = 48
)

// A backlog is what Pebble has not got round to. While it is large, flushes and merges do not rest, because writes would
// soon wait for them, or do already. It hears of it by events: Pebble may not be asked while it closes.
type backlog struct {
	flushed atomic.Int64 // tables, and not merged yet; those of bulk loads are not counted
	stalled atomic.Bool  // writes wait
}

// grown reports whether writes are ahead of Pebble.
func (b *backlog) grown() bool { return b.stalled.Load() || b.flushed.Load() >= hurryTables }

// atEase reports whether flushes and merges take their time.
func (s *Store) atEase() bool { return s.paced != nil && s.paced.Load() && !s.backlog.grown() }

// listen has Pebble tell the backlog.
func (b *backlog) listen(l *pebble.EventListener) {
	l.WriteStallBegin = func(pebble.WriteStallBeginInfo) { b.stalled.Store(true) }
	l.WriteStallEnd = func() { b.stalled.Store(false) }
	l.FlushEnd = func(info pebble.FlushInfo) {
		if info.Err == nil && !info.Ingest {
			b.flushed.Add(int64(len(info.Output)))
		}
	}
	l.CompactionEnd = func(info pebble.CompactionInfo) {
		if info.Err != nil {
			return
		}
		merged := 0
		for _, in := range info.Input {
			if in.Level == 0 {
				merged += len(in.Tables)
			}
		}
		if info.Output.Level == 0 {
			merged -= len(info.Output.Tables)
		}
		if b.flushed.Add(-int64(merged)) < 0 { // tables of bulk loads were among them
			b.flushed.Store(0)
		}
	}
}
