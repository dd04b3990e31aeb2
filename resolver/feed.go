package resolver

import (
	"sort"
	"sync"

	"fingerpost/resolver/catalog"
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
	epoch    string // of all revisions below
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

// begin starts an empty feed after a position. A client with a revision of an earlier process may have missed events.
func (f *Feed) begin(at catalog.Position) {
	f.changed = make(chan struct{})
	f.epoch, f.revision, f.floor = at.Epoch, at.Generation, at.Generation+1
}

// Changed returns a channel that is closed when events arrive or the newest revision moves. Get the channel first, then
// read the cursors, then wait.
func (f *Feed) Changed() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changed
}

// Newest returns a cursor whose first event is the next change, and the position before it.
func (f *Feed) Newest() (c Cursor, at catalog.Position) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return Cursor{feed: f, next: f.end()}, f.position()
}

func (f *Feed) position() catalog.Position {
	return catalog.Position{Epoch: f.epoch, Generation: f.revision}
}

// Position returns the position of the newest change that the feed has.
func (f *Feed) Position() catalog.Position {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.position()
}

// After returns a cursor for a client that has all events before a position and at least one of that position, from any
// node of the cluster. The events of the position itself are sent again: some may be missing, and another node may have
// split the change into other events.
//
// If the feed does not reach back that far, or does not know the position, the first event is a Reset, followed by the
// next change. The same applies if there was a Reset in between, or if the keys have changed: the client's key may
// reach other projects now. ahead reports that this node may still reach the position.
func (f *Feed) After(p catalog.Position) (c Cursor, ahead bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c = Cursor{feed: f, next: f.end()}
	if p.Epoch != f.epoch || p.Generation < f.floor || p.Generation > f.revision {
		c.lost = true
		return c, p.Epoch == f.epoch && p.Generation > f.revision
	}
	history := f.events[f.at:]
	from := sort.Search(len(history), func(i int) bool { return history[i].Revision >= p.Generation })
	for _, e := range history[from:] {
		if e.Revision > p.Generation && (e.Kind == Reset || e.Kind == KeysChanged) {
			c.lost = true
			return c, false
		}
	}
	c.next = f.dropped + uint64(f.at+from)
	return c, false
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
		reset := NewReset(f.revision)
		reset.Epoch = f.epoch
		return append(dst, reset)
	}
	from := int(c.next - f.dropped)
	n = min(n, len(f.events)-from)
	c.next += uint64(n)
	return append(dst, f.events[from:from+n]...)
}

// AtEnd returns the feed's position if the cursor has had every event up to it.
func (c *Cursor) AtEnd() (at catalog.Position, ok bool) {
	f := c.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.position(), !c.lost && c.next == f.end()
}

// publish adds the events of a position, possibly none. With another epoch the history ends: revisions are comparable
// within one epoch only. The caller holds Resolver.applying.
func (f *Feed) publish(at catalog.Position, events []*Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if at.Epoch != f.epoch {
		f.dropped, f.events, f.at, f.bytes = f.end(), nil, 0, 0
		f.epoch, f.revision, f.floor = at.Epoch, at.Generation, at.Generation
		events = everything(at.Generation)
	}
	switch {
	case at.Generation == f.revision && len(events) == 0:
		return
	case at.Generation > f.revision+1:
		// An edge has taken several changes at once. What one of them did and a later one undid has no event, and a client
		// that comes from between them on another node has seen it.
		f.floor = at.Generation
	}
	f.revision = max(f.revision, at.Generation)
	f.events = append(f.events, events...)
	for _, e := range events {
		e.Epoch = f.epoch
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
	at, before := catalog.Position{Epoch: r.stores.Reads().Epoch(), Generation: e.Generation}, f.Position().Generation
	if f.unsure {
		f.unsure = false
		f.publish(at, everything(e.Generation))
		return
	}
	events, ok := r.eventsOf(e)
	// An edge that takes several changes at once has all their events at the last one's position. A client that got some
	// of them would miss the rest on a node that had the changes one at a time.
	merged := at.Generation > before+1 && len(events) > 1
	if !ok || merged {
		events = []*Event{NewReset(e.Generation)}
	}
	if e.Keys || e.Logins {
		events = append([]*Event{{Revision: e.Generation, Kind: KeysChanged}}, events...)
	}
	f.publish(at, events)
}
