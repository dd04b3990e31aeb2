package tenant

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	silence   = 45 * time.Second // without a byte, after which a stream is dead; a comment comes every 15 s
	goodAfter = 10 * time.Second // after which a stream has been good
	maxLine   = 16 << 20         // bytes of an event's data
	// pause is the time without a lookup or a comment of the feed, one of which comes every 15 s, that stands for a pause
	// of the process.
	pause = 20 * time.Second
	// noteEvery is how often hits note the time in validity.alive. Each note is a write to memory that all cores read.
	noteEvery = time.Second
)

// A feedState is what is known of the change feed, besides Cache.valid.
type feedState struct {
	lastID  string    // to resume after; "": nothing to resume
	heard   time.Time // when an open stream last had a whole event or comment
	contact time.Time // when the server last answered anything
	err     error     // why it is not connected
}

// follow keeps a stream of the change feed open.
func (c *Cache) follow() {
	for failures := 0; ; {
		good, f := c.stream()
		if c.ctx.Err() != nil {
			c.disconnect(errClosed)
			return
		}
		if good {
			failures = 0
		}
		failures++
		if c.disconnect(f.cause) {
			c.log(c.o.Logger.Warn, "the change feed is not open", "url", c.o.URL, "cause", f.cause)
		}
		c.triedOnce()
		if !c.sleep(backoff(failures, f.retryAfter)) {
			return
		}
	}
}

// sleep waits, and reports whether the cache is still open.
func (c *Cache) sleep(d time.Duration) bool {
	over := make(chan struct{})
	defer c.clock.AfterFunc(d, func() { close(over) })()
	select {
	case <-over:
		return true
	case <-c.ctx.Done():
		return false
	}
}

// stream follows one stream until it ends, which is always a failure. good reports whether it was open for long enough
// to begin with short waits again.
func (c *Cache) stream() (good bool, f *failure) {
	ctx, cancel := context.WithCancelCause(c.ctx)
	defer cancel(nil)
	tooLong := func() { cancel(fmt.Errorf("no byte for %v", silence)) }
	stop := c.clock.AfterFunc(silence, tooLong)
	defer func() { stop() }()

	c.mu.Lock()
	after := c.feed.lastID
	c.mu.Unlock()
	header := http.Header{"Accept": {"text/event-stream"}, "Cache-Control": {"no-store"}}
	if after != "" {
		header.Set("Last-Event-ID", after)
	}
	res, f := c.do(ctx, eventsPath, header, nil) //nolint:bodyclose // closed below, on every way out
	if f != nil {
		return false, f
	}
	defer res.Body.Close()
	if t := res.Header.Get("Content-Type"); res.StatusCode != http.StatusOK || mediaType(t) != "text/event-stream" {
		if res.StatusCode == http.StatusBadRequest {
			c.resumeNothing()
		}
		return false, failed("the change feed answers %d with the content type %q", res.StatusCode, t)
	}
	blocks := newBlocks(readerFunc(func(b []byte) (int, error) {
		n, err := res.Body.Read(b)
		if n > 0 {
			stop()
			stop = c.clock.AfterFunc(silence, tooLong)
		}
		return n, err
	}))
	var opened time.Time
	for {
		b, err := blocks.next()
		if err == nil {
			err = c.take(b)
		}
		if err != nil {
			good = !opened.IsZero() && c.clock.Now().Sub(opened) >= goodAfter
			return good, failed("the change feed has ended: %w", cause(ctx, err))
		}
		if opened.IsZero() && b.id != "" {
			opened = c.clock.Now()
			c.connect(after != "")
		}
		c.hear(!opened.IsZero())
	}
}

// hear notes that a block has come. One of an open stream confirms what is in memory, and ends the wait after failed
// questions, unless the server has asked for it.
func (c *Cache) hear(open bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Now()
	c.feed.contact = now
	if !open {
		return
	}
	c.feed.heard = now
	c.revalidate(func(v *validity) { v.alive, v.paused = now, false })
	if !now.Before(c.away.asked) {
		c.away = away{}
	}
}

// connect follows the first block of a stream that has an id: before it, the server may not know yet what the stream has
// missed. What a stream that resumes nothing may have missed is marked.
func (c *Cache) connect(resumed bool) {
	c.mu.Lock()
	c.feed.err = nil
	c.succeeded()
	if !resumed {
		c.changed(c.mark()) // before the feed counts as open: no hit may see it open with an era that is over
		c.mu.Lock()
	}
	c.revalidate(func(v *validity) { v.connected, v.paused, v.alive = true, false, c.clock.Now() })
	c.mu.Unlock()
	c.log(c.o.Logger.Info, "the change feed is open", "url", c.o.URL)
	c.triedOnce()
	c.checkReady()
}

// disconnect reports whether the cause is worth a line in the log.
func (c *Cache) disconnect(why error) (news bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	news = c.feed.err == nil || c.feed.err.Error() != why.Error()
	c.feed.err = why
	c.revalidate(func(v *validity) { v.connected = false })
	return news
}

func (c *Cache) resumeNothing() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.feed.lastID = ""
}

// take does what a block of the stream says.
func (c *Cache) take(b block) error {
	var event struct{ Domains []string }
	if b.data != nil && b.event != "reset" {
		if err := json.Unmarshal(b.data, &event); err != nil {
			return errors.New("an event of the change feed is not JSON")
		}
	}
	c.mu.Lock()
	if b.id != "" {
		c.feed.lastID = b.id
		c.see(b.id)
	}
	if b.event == "reset" {
		c.changed(c.mark())
	} else {
		c.changed(c.forget(event.Domains)) // with the position, which Status shows
	}
	return nil
}

// forget drops what is known of the names of an event, and voids the questions about them. A tenant is set aside: it is
// the answer, as stale, while the server is away. It returns the names for changed, needs mu and gives it up.
func (c *Cache) forget(names []string) (dropped []string) {
	defer c.mu.Unlock()
	exact, below := map[string]bool{}, map[string]bool{}
	for _, name := range names {
		if base, wildcard := strings.CutPrefix(name, "*."); wildcard {
			below[base] = true
		} else {
			exact[name] = true
		}
	}
	drop := func(e *entry) {
		switch {
		case e.aside:
			return
		case e.tenant == nil:
			c.entries.drop(e)
		default:
			e.asOf = c.asOf(e)
			e.aside = true
			e.era.Store(0)
		}
		dropped = append(dropped, e.host)
	}
	for host, q := range c.asking {
		q.void = q.void || exact[host] || isBelow(host, below)
	}
	for name := range exact {
		if e := c.entries.of(name); e != nil {
			drop(e)
		}
	}
	if len(below) > 0 {
		c.each(func(e *entry) {
			if isBelow(e.host, below) {
				drop(e)
			}
		})
	}
	if len(dropped) > 0 {
		c.dirty()
	}
	return dropped
}

// isBelow reports whether a host is below one of the names, at any depth.
func isBelow(host string, names map[string]bool) bool {
	if len(names) == 0 {
		return false
	}
	for {
		_, rest, ok := strings.Cut(host, ".")
		if !ok {
			return false
		}
		if names[rest] {
			return true
		}
		host = rest
	}
}

// mark has every entry confirmed before its next use, and returns their names for changed. It needs mu and gives it up.
func (c *Cache) mark() (hosts []string) {
	defer c.mu.Unlock()
	was, heard := c.valid.Load().era, c.feed.heard
	c.revalidate(func(v *validity) { v.era++ })
	c.each(func(e *entry) {
		if e.era.Load() == was {
			e.asOf = later(e.asOf, heard)
		}
		if c.o.OnChange != nil && !e.aside {
			hosts = append(hosts, e.host)
		}
	})
	return hosts
}

// each calls f with all entries. It needs mu, which it gives to others between a thousand entries: what they store
// meanwhile was asked after the caller's change.
func (c *Cache) each(f func(*entry)) {
	n := 0
	for _, e := range c.entries.byHost.Range {
		f(e.(*entry))
		if n++; n%1000 == 0 {
			c.mu.Unlock()
			c.mu.Lock()
		}
	}
}

func (c *Cache) changed(hosts []string) {
	if len(hosts) == 0 || c.o.OnChange == nil {
		return
	}
	c.calls.add(call{f: func() { c.o.OnChange(hosts) }})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// A block is what stands between two empty lines of a stream: an event, an id, or comments.
type block struct {
	id, event string
	data      []byte // nil: it is no event
}

// blocks reads Server-Sent Events.
type blocks struct{ lines *bufio.Reader }

func newBlocks(r io.Reader) blocks { return blocks{bufio.NewReaderSize(r, 4<<10)} }

// next returns the next whole block.
func (s blocks) next() (b block, err error) {
	for {
		line, err := s.line()
		if err != nil {
			return b, err
		}
		if len(line) == 0 {
			return b, nil
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "id":
			b.id = string(value)
		case "event":
			b.event = string(value)
		case "data":
			if b.data != nil {
				b.data = append(b.data, '\n')
			}
			b.data = append(b.data, value...)
			if b.data == nil {
				b.data = []byte{}
			}
		}
	}
}

func (s blocks) line() ([]byte, error) {
	var line []byte
	for {
		part, err := s.lines.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxLine:
			return nil, errors.New("an event is too large")
		case errors.Is(err, bufio.ErrBufferFull):
		case err != nil:
			return nil, err
		default:
			return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r")), nil
		}
	}
}
