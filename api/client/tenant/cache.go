package tenant

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	lookupLimit = 2 * time.Second // of a lookup whose context has no deadline
	askLimit    = 5 * time.Second // of a question; the server waits up to 2 s for a position
	// maxQuestions bounds the questions on the wire: a crawl of unknown names must not take the connections of known ones.
	maxQuestions = 64
)

// A Cache answers which tenant a host name belongs to. It follows the server's change feed in the background until it
// is closed. All methods are safe for concurrent use.
type Cache struct {
	o     Options
	clock clock
	http  *http.Client
	file  *file         // nil without Options.File
	ready chan struct{} // closed when Ready returns
	tried chan struct{} // closed by triedOnce, when the change feed is first open or has first failed

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	ended  chan struct{} // closed at the end of Close

	triedOnce func()
	tasks     sync.WaitGroup // goroutines; Add needs mu, and closed must be false

	calls calls // of the user's functions

	entries *entries
	valid   atomic.Pointer[validity] // read without mu, replaced with mu by revalidate

	mu     sync.Mutex           // guards what follows, and entries except for their method of
	asking map[string]*question // on the wire, by host
	feed   feedState
	seen   seenPosition
	away   away
	// rounds counts the failures of questions, without those that were on the wire when another one was counted.
	rounds    uint64
	questions int // on the wire, without batches
	is        struct{ warm, ready, closed bool }
}

// Open begins to follow the server's change feed and returns at once. It fails for wrong options only: while the server
// is away, names are answered from Options.File. Close ends the Cache.
func Open(o Options) (*Cache, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	c := &Cache{o: o, clock: clockOf(o.Transport), ready: make(chan struct{}), tried: make(chan struct{}),
		ended:   make(chan struct{}),
		entries: newEntries(o.MaxEntries, o.MaxNegative), asking: map[string]*question{}}
	c.valid.Store(&validity{era: 1})
	transport := o.Transport
	if transport == nil {
		transport = &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: askLimit}).DialContext,
			TLSHandshakeTimeout: askLimit,
			MaxIdleConnsPerHost: 16,
			IdleConnTimeout:     90 * time.Second,
			DisableCompression:  true,
		}
	}
	c.http = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // no redirect takes the key to another address
	}}
	c.triedOnce = sync.OnceFunc(func() { close(c.tried) })
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.calls = calls{observe: o.Observe, failed: c.panicked, wake: make(chan struct{}, 1)}
	go c.calls.run(c.ended)
	if o.File != "" {
		c.openFile()
	}
	c.is.warm = len(o.Warm) == 0
	c.begin(c.follow)
	if len(o.Warm) > 0 {
		c.begin(c.warm)
	}
	return c, nil
}

// Close ends the change feed and the questions, writes the file and waits for the goroutines, but not for calls of
// Options.OnChange and Options.Observe that are left. Afterwards names are answered from memory, as while the server is
// away. It may be called again. The error is that of the last write.
func (c *Cache) Close() error {
	c.mu.Lock()
	closed := c.is.closed
	c.is.closed = true
	c.mu.Unlock()
	c.cancel()
	c.tasks.Wait()
	if closed {
		return nil
	}
	defer close(c.ended)
	if c.o.Transport == nil {
		c.http.CloseIdleConnections()
	}
	if c.file == nil {
		return nil
	}
	err := c.save()
	c.file.unlock()
	return err
}

// begin runs f in a goroutine that Close waits for.
func (c *Cache) begin(f func()) {
	c.tasks.Add(1)
	go func() {
		defer c.tasks.Done()
		f()
	}()
}

// Lookup returns the tenant of a host as a client sends it: case, a port, a final dot and IDNA do not matter. A name in
// memory is answered without a request and, in canonical spelling, without allocation; see the package comment for
// what is then known of its age. Any other name is one request, which all lookups of the name share.
//
// An error is one of the Err… values, for errors.Is, or that of ctx; without a deadline in ctx it is
// context.DeadlineExceeded after 2 s. A name that is in memory has an answer also when ctx ends.
func (c *Cache) Lookup(ctx context.Context, host string) (*Tenant, error) {
	if c.o.Observe == nil {
		t, _, err := c.lookup(ctx, host)
		return t, err
	}
	begun := c.clock.Now()
	t, kind, err := c.lookup(ctx, host)
	c.calls.add(call{event: Event{Kind: kind, Host: host, Duration: c.clock.Now().Sub(begun)}})
	return t, err
}

func (c *Cache) lookup(ctx context.Context, host string) (*Tenant, Kind, error) {
	if t, kind, err := c.hit(host); kind != "" {
		return t, kind, err
	}
	name, err := canonical(host)
	if err != nil {
		return nil, Negative, err
	}
	if name != host {
		if t, kind, err := c.hit(name); kind != "" {
			return t, kind, err
		}
	}
	return c.answer(ctx, name)
}

// hit answers a name to which nothing has happened while the change feed is open; without a kind it has no answer. It
// takes no lock, so that lookups scale with the cores; answer does the rest, and notes the time after each noteEvery.
func (c *Cache) hit(name string) (*Tenant, Kind, error) {
	e := c.entries.of(name)
	if e == nil {
		return nil, "", nil
	}
	if v := c.valid.Load(); !v.follows() || e.era.Load() != v.era || elapsed(v.alive, c.clock.Now()) > noteEvery {
		return nil, "", nil
	}
	return e.hit()
}

// hit answers by an entry that is good.
func (e *entry) hit() (*Tenant, Kind, error) {
	e.use()
	if e.tenant == nil {
		return nil, Negative, e.err
	}
	return e.tenant, Hit, nil
}

// answer answers a canonical name by memory, by the server, or by memory if the server is away.
func (c *Cache) answer(ctx context.Context, name string) (*Tenant, Kind, error) {
	var limit <-chan struct{}
	for {
		c.mu.Lock()
		now := c.clock.Now()
		e := c.entries.of(name)
		v := c.judge(e, now)
		if v == good || v == goodForNow {
			t, kind, err := c.give(e, v)
			if v == goodForNow && c.asking[name] == nil && c.mayAsk(now) {
				c.ask(name, e)
			}
			c.mu.Unlock()
			return t, kind, err
		}
		q := c.asking[name]
		joins := q == nil || !q.void && q.era == c.valid.Load().era // otherwise its answer may be older than an event
		if q == nil {
			if !c.mayAsk(now) {
				err := c.noQuestion()
				c.mu.Unlock()
				return c.instead(e, v, err)
			}
			q = c.ask(name, e)
		}
		c.mu.Unlock()

		if limit == nil {
			ends, stop := c.limit(ctx)
			defer stop()
			limit = ends
		}
		select {
		case <-q.done:
			if !joins {
				continue
			}
		case <-limit:
			return c.instead(e, v, context.DeadlineExceeded)
		case <-ctx.Done():
			return c.instead(e, v, ctx.Err())
		}
		switch {
		case q.tenant != nil:
			return q.tenant, Miss, nil
		case isAnswer(q.err):
			return nil, Negative, q.err
		}
		return c.instead(e, v, q.err)
	}
}

// limit returns a channel that closes at the end of a lookup whose context has no deadline.
func (c *Cache) limit(ctx context.Context) (ends <-chan struct{}, stop func()) {
	over := make(chan struct{})
	if _, has := ctx.Deadline(); has {
		return over, func() {}
	}
	return over, c.clock.AfterFunc(lookupLimit, func() { close(over) })
}

// instead gives what is remembered of a name, or err if that is nothing.
func (c *Cache) instead(e *entry, v verdict, err error) (*Tenant, Kind, error) {
	if v != toConfirm {
		return nil, Error, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.give(e, goodForNow)
}

// A verdict is what an entry is worth at a moment.
type verdict int

const (
	useless    verdict = iota // no answer, or one that is too old
	good                      // nothing has changed since
	goodForNow                // the answer to give, while the server is asked
	toConfirm                 // to be confirmed by the server, unless that is away
)

// judge needs mu.
func (c *Cache) judge(e *entry, now time.Time) verdict {
	if e == nil {
		return useless
	}
	current := c.isCurrent(e)
	if current && c.follows(now) {
		return good
	}
	switch age := elapsed(c.asOf(e), now); {
	case current && age < c.o.Fresh:
		return good
	case e.tenant == nil && age >= c.o.Fresh, c.o.MaxStale > 0 && age > c.o.MaxStale:
		return useless
	case current || c.away.failures > 0 && !e.aside || c.is.closed:
		return goodForNow
	}
	return toConfirm
}

// isCurrent reports whether nothing has happened to an entry since it was asked. It needs mu.
func (c *Cache) isCurrent(e *entry) bool { return e.era.Load() == c.valid.Load().era }

// asOf is when the server last gave or confirmed an answer. An open change feed confirms what it does not name.
func (c *Cache) asOf(e *entry) time.Time {
	if c.isCurrent(e) && c.feed.heard.After(e.asOf) {
		return c.feed.heard
	}
	return e.asOf
}

// give needs mu.
func (c *Cache) give(e *entry, v verdict) (*Tenant, Kind, error) {
	if v == good || e.tenant == nil {
		return e.hit()
	}
	e.use()
	asOf := c.asOf(e)
	if e.stale == nil || !e.stale.AsOf.Equal(asOf) {
		stale := *e.tenant
		stale.Stale, stale.AsOf = true, asOf
		e.stale = &stale
	}
	return e.stale, Stale, nil
}

// away is what is known of a server that does not answer questions.
type away struct {
	failures int       // in a row; those of questions that were on the wire at the same time count once
	until    time.Time // when the next question may be asked
	asked    time.Time // until at least, by the server's Retry-After
	probing  bool      // it is on the wire
	cause    error     // of the last failure
}

// noQuestion is the answer to a name of which nothing is known and that is not asked. It needs mu.
func (c *Cache) noQuestion() error {
	switch {
	case c.away.cause != nil:
		return asError(c.away.cause)
	case c.is.closed:
		return fmt.Errorf("%w: %w", ErrUnavailable, errClosed)
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, errBusy)
}

var (
	errClosed = errors.New("the cache is closed")
	errBusy   = fmt.Errorf("%d questions wait for the server", maxQuestions)
)

// asError makes the error of a lookup from that of a question.
func asError(cause error) error {
	if errors.Is(cause, ErrUnauthorized) {
		return cause
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, cause)
}

// mayAsk reports whether a question may go to the server. While the server is away, one may after each wait. It needs
// mu, and the question has to follow.
func (c *Cache) mayAsk(now time.Time) bool {
	switch {
	case c.is.closed, c.questions >= maxQuestions:
		return false
	case c.away.failures == 0:
		return true
	case c.away.probing || now.Before(c.away.until):
		return false
	}
	c.away.probing = true
	return true
}

// failed notes the failure of a question that was sent after a number of rounds. It needs mu.
func (c *Cache) failed(f *failure, rounds uint64) {
	a, now := &c.away, c.clock.Now()
	if f.retryAfter > 0 {
		a.asked = now.Add(min(f.retryAfter, maxRetryAfter))
		a.until = later(a.until, a.asked)
	}
	if rounds != c.rounds { // the failure of another question that was on the wire with it has been counted
		return
	}
	c.rounds++
	a.failures++
	a.probing, a.cause = false, f.cause
	a.until = later(a.asked, now.Add(backoff(a.failures, f.retryAfter)))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// A validity decides, with the era of an entry, whether the entry is good. It is never changed, but replaced, so that
// hits need no lock.
type validity struct {
	// era counts the times at which everything was marked. An entry of an earlier era is confirmed before its next use.
	era       uint64
	connected bool      // the change feed is open
	paused    bool      // the process was stopped, and has not heard the stream since
	alive     time.Time // when the process last noted the time or heard the stream
}

// follows reports whether the change feed is open and could be heard.
func (v *validity) follows() bool { return v.connected && !v.paused }

// revalidate replaces the validity by a changed copy. It needs mu.
func (c *Cache) revalidate(change func(*validity)) {
	v := *c.valid.Load()
	change(&v)
	c.valid.Store(&v)
}

// follows is that of the validity at a time. After a pause of the process, as in a suspend or by SIGSTOP, the cache does
// not know what the server has sent meanwhile until something of it is read. It needs mu.
func (c *Cache) follows(now time.Time) bool {
	c.revalidate(func(v *validity) {
		v.paused = v.paused || elapsed(v.alive, now) > pause
		v.alive = now
	})
	return c.valid.Load().follows()
}

// elapsed is the time between two times. The monotonic clock of most systems stands still while the machine sleeps.
func elapsed(from, to time.Time) time.Duration {
	return max(to.Sub(from), to.Round(0).Sub(from.Round(0)))
}
