package resolver

import (
	"sort"
	"sync"

	"fingerpost/resolver/store"
)

// maxFeedBytes bounds the history, in memory.
const maxFeedBytes = 8 << 20

// A Feed is the recent changes, in order (api/README.md, Change feed). Apply fills it once no answer from before a
// change is given any more: a client that asks again because of an event gets the new answer. Readers cannot block
// Apply. Its methods may be called from any goroutine.
type Feed struct {
	unsure bool // a change was not published; guarded by Resolver.applying

	mu      sync.Mutex    // guards the fields below
	changed chan struct{} // closed when events come
	// events[at:] is the history; the event at index i has the number dropped+i. The entries before at are nil.
	events   []*Event
	at       int
	dropped  uint64
	bytes    int
	revision uint64 // newest committed revision
	floor    uint64 // lowest revision from which After can continue
}

// A Cursor is a place in a Feed, for one goroutine at a time.
type Cursor struct {
	feed *Feed
	next uint64 // number of the next event
	lost bool   // the next one is a Reset
}

// Events returns the change feed.
func (r *Resolver) Events() *Feed { return &r.feed }

// begin starts an empty feed after a revision. A client with a revision of an earlier process may have missed events.
func (f *Feed) begin(revision uint64) {
	f.changed = make(chan struct{})
	f.revision, f.floor = revision, revision+1
}

// Changed returns a channel that is closed when events arrive. Get the channel first, then read the cursors, then wait.
func (f *Feed) Changed() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changed
}

// Newest returns a cursor whose first event is the next change, and the revision before it.
func (f *Feed) Newest() (c Cursor, revision uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return Cursor{feed: f, next: f.end()}, f.revision
}

// After returns a cursor for a client that has all events before a revision and at least one of that revision. All
// events of one revision have the same number: if there are several, all of them are sent again, because the rest may
// be missing.
//
// If the feed does not reach back that far, or does not know the revision, the first event is a Reset, followed by the
// next change. The same applies if there was a Reset in between, or if the keys have changed: the client's key may
// reach other projects now.
func (f *Feed) After(revision uint64) Cursor {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := Cursor{feed: f, next: f.end()}
	if revision < f.floor || revision > f.revision {
		c.lost = true
		return c
	}
	history := f.events[f.at:]
	from := sort.Search(len(history), func(i int) bool { return history[i].Revision >= revision })
	to := from
	for to < len(history) && history[to].Revision == revision {
		to++
	}
	for _, e := range history[to:] {
		if e.Kind == Reset || e.Kind == KeysChanged {
			c.lost = true
			return c
		}
	}
	if to-from == 1 {
		from = to
	}
	c.next = f.dropped + uint64(f.at+from)
	return c
}

// end returns the number of the next event.
func (f *Feed) end() uint64 { return f.dropped + uint64(len(f.events)) }

// Next appends up to n events to dst and advances. If the history no longer reaches back to the cursor, it appends a
// Reset.
func (c *Cursor) Next(dst []*Event, n int) []*Event {
	f := c.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	if c.lost || c.next < f.dropped+uint64(f.at) {
		c.lost, c.next = false, f.end()
		return append(dst, NewReset(f.revision))
	}
	from := int(c.next - f.dropped)
	n = min(n, len(f.events)-from)
	c.next += uint64(n)
	return append(dst, f.events[from:from+n]...)
}

// publish adds the events of a revision, possibly none. The caller holds Resolver.applying.
func (f *Feed) publish(revision uint64, events []*Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.revision = max(f.revision, revision)
	if len(events) == 0 {
		return
	}
	f.events = append(f.events, events...)
	for _, e := range events {
		f.bytes += e.size()
	}
	for f.bytes > maxFeedBytes {
		e := f.events[f.at]
		f.events[f.at] = nil
		f.at++
		f.bytes -= e.size()
		f.floor = max(f.floor, e.Revision+1)
	}
	if f.at > len(f.events)/2 {
		kept := copy(f.events, f.events[f.at:])
		clear(f.events[kept:])
		f.events, f.dropped, f.at = f.events[:kept], f.dropped+uint64(f.at), 0
	}
	close(f.changed)
	f.changed = make(chan struct{})
}

// everything returns the events of a change that may have changed anything.
func everything(revision uint64) []*Event {
	return []*Event{{Revision: revision, Kind: KeysChanged}, NewReset(revision)}
}

// tell publishes a committed change whose epoch has begun (see stamps): no hit returns an answer from before it. The
// caller holds applying.
func (r *Resolver) tell(e *store.Effect) {
	f := &r.feed
	if r.stores.Reads() != r.stores.Writes() { // no answers come from it yet
		f.unsure = true
		return
	}
	if f.unsure {
		f.unsure = false
		f.publish(e.Generation, everything(e.Generation))
		return
	}
	events, ok := r.eventsOf(e)
	if !ok {
		events = []*Event{NewReset(e.Generation)}
	}
	if e.Keys {
		events = append([]*Event{{Revision: e.Generation, Kind: KeysChanged}}, events...)
	}
	f.publish(e.Generation, events)
}
