package resolver

import (
	"sort"
	"sync"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/store"
)

// maxFeedBytes bounds the history, in memory.
const maxFeedBytes = 8 << 20

// A Feed is what has changed of late, in order (api/README.md, Change feed). Apply fills it when no answer from before a change
// is given any more: who asks again because of an event gets the new answer. Nobody who reads it can hold Apply up. Its
// methods may be called from any goroutine.
type Feed struct {
	unsure bool // there was a change that is not told; guarded by Resolver.applying

	mu      sync.Mutex    // guards what follows
	changed chan struct{} // closed when events come
	// events[at:] is the history; the event at index i has the number dropped+i. Those before at are nil.
	events   []*Event
	at       int
	dropped  uint64
	bytes    int
	revision uint64 // the newest that is committed
	floor    uint64 // the lowest from which After can go on
}

// A Cursor is a place in a Feed, for one goroutine at a time.
type Cursor struct {
	feed *Feed
	next uint64 // number of the next event
	lost bool   // the next one is a Reset
}

// Events is the change feed.
func (r *Resolver) Events() *Feed { return &r.feed }

// begin starts an empty feed behind a revision. Whoever comes with it from a process before this one may not have seen
// all of its events.
func (f *Feed) begin(revision uint64) {
	f.changed = make(chan struct{})
	f.revision, f.floor = revision, revision+1
}

// Changed returns a channel that is closed when events come. Cursors are to be asked after it has been taken, and before
// it is waited for.
func (f *Feed) Changed() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changed
}

// Newest returns a cursor whose first event will be that of the next change, and the revision that it stands behind.
func (f *Feed) Newest() (c Cursor, revision uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return Cursor{feed: f, next: f.end()}, f.revision
}

// After returns a cursor for somebody who has got all events up to a revision, and one or more of that one. All events of
// one revision have the same number: where there are several, all of them come again, since the rest may be missing.
//
// Where the feed does not reach back, or does not know the revision, the first event is a Reset, and what comes after it
// begins with the next change. So it is where there was a Reset in between, and where the keys have changed: the key of
// the one who asks may reach other projects than it did.
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

// end is the number of the next event.
func (f *Feed) end() uint64 { return f.dropped + uint64(len(f.events)) }

// Next appends up to n events to dst and moves on. Where the history does not reach back to the cursor any more, that is
// a Reset.
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

// publish adds the events of a revision, none or more. The caller holds Resolver.applying.
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

// everything are the events of a change that may have changed anything.
func everything(revision uint64) []*Event {
	return []*Event{{Revision: revision, Kind: KeysChanged}, NewReset(revision)}
}

// tell publishes a change that is committed and whose epoch has begun (see stamps): a hit from before it is not given any
// more. The caller holds applying.
func (r *Resolver) tell(c *catalog.Change, e *store.Effect) {
	f := &r.feed
	if r.reads.Load() != r.writes.Load() { // nobody is answered from it yet
		f.unsure = true
		return
	}
	if f.unsure {
		f.unsure = false
		f.publish(e.Generation, everything(e.Generation))
		return
	}
	events, ok := eventsOf(c, e, r.slugOf)
	if !ok {
		events = []*Event{NewReset(e.Generation)}
	}
	if e.Keys {
		events = append([]*Event{{Revision: e.Generation, Kind: KeysChanged}}, events...)
	}
	f.publish(e.Generation, events)
}

// slugOf reads the slug of a project that a change has not touched.
func (r *Resolver) slugOf(id int64) (slug string, ok bool) {
	p, err := r.ProjectByID(id)
	if err != nil {
		return "", false
	}
	return p.Slug, true
}
