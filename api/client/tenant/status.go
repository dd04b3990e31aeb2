package tenant

import (
	"context"
	"time"
)

// A Kind says how a lookup was answered.
type Kind string

// The kinds of answers.
const (
	Hit      Kind = "hit"      // from memory
	Stale    Kind = "stale"    // from memory, with Tenant.Stale
	Miss     Kind = "miss"     // by the server
	Negative Kind = "negative" // the name has no tenant: from memory or by the server
	Error    Kind = "error"    // the lookup failed without an answer, or the context has ended
)

// An Event is the end of a lookup, for metrics and traces.
type Event struct {
	Kind     Kind
	Host     string // as it was given to Lookup
	Duration time.Duration
}

// Status is the state of a Cache, for a health page.
type Status struct {
	Connected   bool      // the change feed is open
	Position    string    // of the newest change that was seen, perhaps not yet all its events; "": none
	Entries     int       // names with a tenant in memory, without those that events have dropped
	Negatives   int       // names without one in memory
	OldestAsOf  time.Time // the earliest Tenant.AsOf in memory; zero if there is none
	LastError   error     // why the feed is not open or the last question failed; nil if neither is so
	LastContact time.Time // when the server last answered or sent anything; zero: never
}

// Status returns the present state. It looks at every entry.
func (c *Cache) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := Status{Connected: c.valid.Load().connected, Negatives: c.entries.negative.len,
		LastError: c.away.cause, LastContact: c.feed.contact}
	if s.LastError == nil {
		s.LastError = c.feed.err
	}
	if c.seen.at.Epoch != "" {
		s.Position = c.seen.at.String()
	}
	c.each(func(e *entry) {
		if e.tenant == nil || e.aside {
			return
		}
		s.Entries++
		if asOf := c.asOf(e); s.OldestAsOf.IsZero() || asOf.Before(s.OldestAsOf) {
			s.OldestAsOf = asOf
		}
	})
	return s
}

// Ready waits until the change feed is open and the names of Options.Warm are answered, or returns at once if answers
// were read from Options.File. Its error is that of ctx. A service may begin without it: it then waits in Lookup.
func (c *Cache) Ready(ctx context.Context) error {
	select {
	case <-c.ready:
		return nil
	default:
	}
	select {
	case <-c.ready:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// checkReady ends the waits of Ready if it is time.
func (c *Cache) checkReady() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.valid.Load().connected && c.is.warm && !c.is.ready {
		c.is.ready = true
		close(c.ready)
	}
}
