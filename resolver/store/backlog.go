package store

import (
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

const (
	// From hurryTables flushed tables on, merges run at full speed. A merge of 100,000 projects takes 2.5 s of CPU and
	// several times that when it is paced on a busy machine. In two or three flush intervals a flood of writes would then
	// reach Pebble's default bound of 12 tables, where every write waits for the merge.
	hurryTables = 12
	// At stopTables tables writes stall. A read asks the filter of each table.
	stopTables = 48
)

// A backlog tracks the flushes and merges that Pebble has not done. While it is large they are not paced, because
// writes stall or soon will. It is fed by events: Pebble must not be asked while it closes.
type backlog struct {
	flushed atomic.Int64 // tables not merged yet; those of bulk loads are not counted
	stalled atomic.Bool  // writes are stalled
}

// grown reports whether writes are ahead of merges.
func (b *backlog) grown() bool { return b.stalled.Load() || b.flushed.Load() >= hurryTables }

// atEase reports whether flushes and merges are paced.
func (s *Store) atEase() bool { return s.paced != nil && s.paced.Load() && !s.backlog.grown() }

// listen feeds the backlog from Pebble's events.
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
		if b.flushed.Add(-int64(merged)) < 0 { // it included tables of bulk loads
			b.flushed.Store(0)
		}
	}
}
