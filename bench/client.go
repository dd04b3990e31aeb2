package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"fingerpost/api/client/tenant"
	"fingerpost/bench/wire"
)

// clientOptions are the flags of client.
type clientOptions struct {
	entries intList
	clients int
	writes  int
}

func (o *clientOptions) register(f *flag.FlagSet) {
	f.Var(&o.entries, "entries", "client: numbers of names in memory whose memory is measured; hits are of the first")
	f.IntVar(&o.clients, "clients", o.clients, "client: clients that wait for a write")
	f.IntVar(&o.writes, "client-writes", o.writes, "client: writes whose way to the clients is timed")
}

// A clientBench is one run of the command. Its clients ask for names below the wildcard of the first project.
type clientBench struct {
	*bench
	server *server
	corpus *corpus
}

// runClient measures lookups that a client answers from its memory, next to resolve over HTTP.
func runClient(ctx context.Context, b *bench) (*report, error) {
	c := &clientBench{bench: b}
	var err error
	if c.corpus, err = b.openEdited("write-"); err != nil {
		return nil, err
	}
	if c.server, err = b.fingerpost(ctx, c.corpus.String(), c.corpus.config); err != nil {
		return nil, err
	}
	rep := &report{Parameters: b.parameters(c.corpus,
		map[string]any{"clients": b.client.clients, "writes": b.client.writes})}
	if err := c.hits(ctx, rep); err != nil {
		return nil, err
	}
	for _, entries := range b.client.entries {
		if err := c.memory(ctx, rep, entries); err != nil {
			return nil, err
		}
	}
	return rep, c.wayOfWrites(ctx, rep)
}

func (c *clientBench) slug() string   { return c.corpus.slugs[0] }
func (c *clientBench) suffix() string { return "." + c.slug() + hostSuffix }

// options are those of a client in Go with so many names in memory.
func (c *clientBench) options(entries int) tenant.Options {
	o := tenant.Options{URL: "http://" + c.server.addr, Key: c.corpus.key, MaxEntries: entries,
		Logger: slog.New(slog.DiscardHandler)}
	for n := range entries {
		o.Warm = append(o.Warm, fmt.Sprintf("n%07d%s", n, c.suffix()))
	}
	return o
}

// open opens a client in Go and waits until its names are in memory.
func (c *clientBench) open(ctx context.Context, o tenant.Options) (*tenant.Cache, error) {
	cache, err := tenant.Open(o)
	if err != nil {
		return nil, err
	}
	err = cache.Ready(ctx)
	if n := cache.Status().Entries; err == nil && n != len(o.Warm) {
		err = fmt.Errorf("it has %d entries, want %d", n, len(o.Warm))
	}
	if err != nil {
		return nil, fmt.Errorf("fill a client: %w", errors.Join(err, cache.Close()))
	}
	return cache, nil
}

const eachHit = "ns" // the figure of a turn that looks names up in memory, one after the other

// lookups is the turn of a client in Go that looks names up in so many goroutines.
func (c *clientBench) lookups(name string, cache *tenant.Cache, hosts []string, goroutines int) *turn {
	const batch = 1000 // reading the clock takes as long as a lookup
	l := load{workers: goroutines, duration: c.round, side: &side{name: name, worker: func(i int) worker {
		next := i * len(hosts) / goroutines
		return worker{close: func() {}, do: func() error {
			n := next // on the stack: the workers' own ones share a cache line
			defer func() { next = n }()
			for range batch {
				n = (n + 1) % len(hosts)
				t, err := cache.Lookup(context.Background(), hosts[n])
				if err == nil && (t.Slug != c.slug() || t.Stale) {
					err = fmt.Errorf("%s is %q, stale: %v", hosts[n], t.Slug, t.Stale)
				}
				if err != nil {
					return err
				}
			}
			return nil
		}}
	}}}
	return newTurn(name, func(ctx context.Context, t *turn) error {
		out, err := l.run(ctx)
		if err == nil {
			t.add(perSecond, batch*out.perSecond())
			t.add(eachHit, 1e9*float64(goroutines)/batch/out.perSecond())
		}
		return err
	})
}

// coresScale is the share of each core's lookups that is left at least when all cores look up.
const coresScale = 0.9

// hits compares hits in memory with resolve over HTTP.
func (c *clientBench) hits(ctx context.Context, rep *report) error {
	o := c.options(c.client.entries[0])
	cache, err := c.open(ctx, o)
	if err != nil {
		return err
	}
	defer cache.Close()
	over := c.fullSpeed(resolves(c.server, c.corpus, c.corpus.zipf()))
	over.name = "resolve over HTTP"
	one := c.lookups("Go, one goroutine", cache, o.Warm, 1)
	all := c.lookups("Go, a goroutine a core", cache, o.Warm, runtime.GOMAXPROCS(0))
	node := newTurn("Node", func(ctx context.Context, t *turn) error {
		r, err := c.inNode(ctx, len(o.Warm))
		t.add(perSecond, r.LookupsPerSecond)
		t.add(eachHit, r.HitNs)
		return err
	})
	turns := []*turn{over, one, all}
	if hasNode() {
		turns = append(turns, node)
	} else {
		rep.note("Not measured in Node: it needs node, and the folder of the built package api/client-ts in %s.", clientTS)
	}
	if err := c.alternate(ctx, turns...); err != nil {
		return err
	}
	rep.add(
		one.against(over, perSecond, "lookups in Go, one goroutine", "lookups/s"),
		all.against(over, perSecond, "lookups in Go, a goroutine a core", "lookups/s"),
		all.against(one, perSecond, "lookups in Go, all cores over one", "lookups/s").
			ratioAtLeast(coresScale*float64(runtime.GOMAXPROCS(0))),
		measured("a hit in Go", "ns", one.figures[eachHit]...).atMost(1000),
	)
	if hasNode() {
		rep.add(node.against(over, perSecond, "lookups in Node", "lookups/s"),
			measured("a hit in Node", "ns", node.figures[eachHit]...).atMost(1000))
	}
	return nil
}

// memory measures what names in memory take of the heap.
func (c *clientBench) memory(ctx context.Context, rep *report, entries int) error {
	c.say("filling clients with %d names", entries)
	o := c.options(entries)
	before := heap()
	cache, err := c.open(ctx, o)
	if err != nil {
		return err
	}
	rep.add(measured(fmt.Sprintf("memory of %d names in Go", entries), "MiB", mib(heap()-before)))
	if err := cache.Close(); err != nil || !hasNode() {
		return err
	}
	r, err := c.inNode(ctx, entries)
	rep.add(measured(fmt.Sprintf("memory of %d names in Node", entries), "MiB", mib(r.EntryBytes*int64(entries))))
	return err
}

func heap() int64 {
	runtime.GC()
	runtime.GC() // the first one may have begun before the last allocation
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// clientTS is the variable that names the folder of the built TypeScript client.
const clientTS = "FINGERPOST_CLIENT_TS"

func hasNode() bool {
	_, err := exec.LookPath("node")
	return err == nil && os.Getenv(clientTS) != ""
}

// A nodeResult is what the benchmark of the TypeScript client prints.
type nodeResult struct {
	HitNs, LookupsPerSecond float64
	EntryBytes              int64
}

// inNode runs the benchmark of the TypeScript client with so many names of the server in memory.
func (c *clientBench) inNode(ctx context.Context, entries int) (r nodeResult, err error) {
	cmd := exec.CommandContext(ctx, "node", "--expose-gc", "--max-old-space-size=8192",
		filepath.Join(filepath.Dir(benchFolder()), "api", "client-ts", "test", "bench.mjs"))
	cmd.Env = append(os.Environ(), "FINGERPOST_URL=http://"+c.server.addr, "FINGERPOST_KEY="+c.corpus.key,
		"SLUG="+c.slug(), "SUFFIX="+c.suffix(), fmt.Sprint("ENTRIES=", entries))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &r)
	}
	if err != nil {
		err = fmt.Errorf("run the benchmark of the TypeScript client: %w", err)
	}
	return r, err
}

// A waiting client has one name in memory, and learns from the change feed that its answer is out of date.
type waiting struct {
	cache   *tenant.Cache
	host    string
	dropped chan struct{}
}

// until waits until the client answers with a name of the project.
func (w *waiting) until(ctx context.Context, name string) error {
	for {
		t, err := w.cache.Lookup(ctx, w.host)
		if err != nil || t.Name == name {
			return err
		}
		select {
		case <-w.dropped:
		case <-ctx.Done():
			return fmt.Errorf("a client still has the name %q, want %q", t.Name, name)
		}
	}
}

// wayOfWrites times the way from the beginning of a write to the new answer in many clients.
func (c *clientBench) wayOfWrites(ctx context.Context, rep *report) error {
	clients := make([]waiting, c.client.clients)
	for i := range clients {
		o, dropped := c.options(1), make(chan struct{}, 1)
		o.OnChange = func([]string) {
			select {
			case dropped <- struct{}{}:
			default:
			}
		}
		cache, err := c.open(ctx, o)
		if err != nil {
			return err
		}
		defer cache.Close()
		clients[i] = waiting{cache, o.Warm[0], dropped}
	}
	calls := wire.NewClient(c.server.addr, wire.KeyField, c.corpus.key)
	defer calls.Close()
	ctx, cancel := context.WithTimeout(ctx, time.Duration(c.client.writes)*time.Minute)
	defer cancel()
	var all latencies
	for i := range c.client.writes {
		name := fmt.Sprintf("written %d", i)
		took, errs := make(latencies, len(clients)), make([]error, len(clients)+1)
		var running sync.WaitGroup
		began := time.Now()
		for i := range clients {
			running.Go(func() {
				errs[i] = clients[i].until(ctx, name)
				took[i] = time.Since(began)
			})
		}
		_, err := calls.Must("PUT", projectURL(c.slug()), fmt.Appendf(nil, `{"name":%q}`, name))
		if err != nil {
			cancel()
		}
		running.Wait()
		errs[len(clients)] = err
		if err := errors.Join(errs...); err != nil {
			return err
		}
		all = append(all, took...)
	}
	ranks := all.percentiles(0.5, 0.99)
	what := fmt.Sprintf("from a write to the new answer in %d clients", len(clients))
	rep.add(measured(what+" p50", "ms", ms(ranks[0])), measured(what+" p99", "ms", ms(ranks[1])))
	rep.note("Every hit was the right project and not stale. The clients of the last rows are in the process of bench, " +
		"and share the machine with the server; a write is a PUT that renames the project, its file and fsync included.")
	return nil
}
