// Package clients runs the clients that answer "whose host is this?" from the memory of their process, so that bench can
// measure them: the Go client in this process, that of TypeScript in Node.
package clients

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"fingerpost/api/client/tenant"
)

// A Server is where clients ask, and the names that it knows: all below a wildcard of one project.
type Server struct {
	URL, Key string
	Slug     string
	Suffix   string // of the names, with its dot
}

// Name returns the n-th name below the wildcard.
func (s *Server) Name(n int) string { return fmt.Sprintf("n%07d%s", n, s.Suffix) }

func (s *Server) options(entries int, onChange func([]string)) tenant.Options {
	o := tenant.Options{URL: s.URL, Key: s.Key, MaxEntries: entries, OnChange: onChange,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
	for n := range entries {
		o.Warm = append(o.Warm, s.Name(n))
	}
	return o
}

// A Go is a Go client with its answers in memory.
type Go struct {
	cache *tenant.Cache
	slug  string
	hosts []string
	// Bytes is the memory of the answers in this process's heap.
	Bytes int64
}

// OpenGo opens a client and waits until so many names are in its memory.
func OpenGo(ctx context.Context, s *Server, entries int) (*Go, error) {
	o := s.options(entries, nil)
	g := &Go{slug: s.Slug, hosts: o.Warm}
	before := heap()
	var err error
	if g.cache, err = tenant.Open(o); err != nil {
		return nil, err
	}
	if err := g.cache.Ready(ctx); err != nil {
		return nil, fmt.Errorf("fill a client: %w", err)
	}
	g.Bytes = heap() - before
	if n := g.cache.Status().Entries; n != entries {
		return nil, fmt.Errorf("a client has %d entries, want %d", n, entries)
	}
	return g, nil
}

// Close ends the client.
func (g *Go) Close() error { return g.cache.Close() }

func heap() int64 {
	runtime.GC()
	runtime.GC() // the first one may have begun before the last allocation
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Hits looks names up for a time, in so many goroutines, and returns the hits and how long they took.
func (g *Go) Hits(ctx context.Context, d time.Duration, goroutines int) (hits int64, took time.Duration, err error) {
	const batch = 1000
	var count atomic.Int64
	var wrong atomic.Pointer[error]
	var running sync.WaitGroup
	began := time.Now()
	for i := range goroutines {
		running.Go(func() {
			n := i * len(g.hosts) / goroutines
			for time.Since(began) < d {
				for range batch {
					n = (n + 1) % len(g.hosts)
					t, err := g.cache.Lookup(ctx, g.hosts[n])
					if err == nil && (t.Slug != g.slug || t.Stale) {
						err = fmt.Errorf("%s is %q, stale: %v", g.hosts[n], t.Slug, t.Stale)
					}
					if err != nil {
						wrong.Store(&err)
						return
					}
				}
				count.Add(batch)
			}
		})
	}
	running.Wait()
	if e := wrong.Load(); e != nil {
		return 0, 0, *e
	}
	return count.Load(), time.Since(began), nil
}

// A Crowd is many Go clients that have one name in memory, as in a fleet of services.
type Crowd struct {
	caches []*tenant.Cache
	events []chan struct{} // for each client: the name was dropped
	host   string
}

// OpenCrowd opens clients and waits until they follow the change feed.
func OpenCrowd(ctx context.Context, s *Server, clients int) (*Crowd, error) {
	c := &Crowd{host: s.Name(0)}
	for range clients {
		event := make(chan struct{}, 1)
		cache, err := tenant.Open(s.options(1, func([]string) {
			select {
			case event <- struct{}{}:
			default:
			}
		}))
		if err != nil {
			c.Close()
			return nil, err
		}
		c.caches, c.events = append(c.caches, cache), append(c.events, event)
	}
	for _, cache := range c.caches {
		if err := cache.Ready(ctx); err != nil {
			c.Close()
			return nil, fmt.Errorf("a client is not ready: %w", err)
		}
	}
	return c, nil
}

// Close ends the clients.
func (c *Crowd) Close() {
	for _, cache := range c.caches {
		_ = cache.Close() // it has no file
	}
}

// Write calls write, which gives the project a name, and returns how long after the call's beginning each client gave an
// answer with that name.
func (c *Crowd) Write(ctx context.Context, name string, write func() error) ([]time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	took, errs := make([]time.Duration, len(c.caches)), make([]error, len(c.caches))
	var running sync.WaitGroup
	began := time.Now()
	for i, cache := range c.caches {
		running.Go(func() {
			for {
				t, err := cache.Lookup(ctx, c.host)
				switch {
				case err != nil:
					errs[i] = err
					return
				case t.Name == name:
					took[i] = time.Since(began)
					return
				}
				select {
				case <-c.events[i]:
				case <-ctx.Done():
					errs[i] = fmt.Errorf("a client still has the name %q, want %q", t.Name, name)
					return
				}
			}
		})
	}
	err := write()
	if err != nil {
		cancel()
	}
	running.Wait()
	for _, e := range errs {
		if err == nil {
			err = e
		}
	}
	return took, err
}
