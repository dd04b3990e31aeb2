package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"fingerpost/bench/wire"
)

// pauseBetween is the time between two writes whose way to the edges is timed.
const pauseBetween = 20 * time.Millisecond

// clusterOptions are the flags of cluster.
type clusterOptions struct {
	edges     intList
	followers int
}

func (o *clusterOptions) register(f *flag.FlagSet) {
	f.Var(&o.edges, "edges", "cluster: numbers of edges that are compared")
	f.IntVar(&o.followers, "followers", o.followers, "cluster: followers in the bench's process, which only keep hashes")
}

// A clusterBench is an authority with the built-in NATS server, and its edges.
type clusterBench struct {
	*bench
	corpus    *corpus
	authority *server
	calls     *wire.Client // of the authority
	nats      string       // where edges follow
	nodes     []*server    // the edges
}

// runCluster measures how soon a write is visible on all edges, and what a cluster costs its authority and an edge.
func runCluster(ctx context.Context, b *bench) (*report, error) {
	alike, err := b.openEdited("write-") // served without a cluster
	if err != nil {
		return nil, err
	}
	c := &clusterBench{bench: b}
	if c.corpus, err = b.openEdited("cluster-"); err != nil {
		return nil, err
	}
	if err := b.clearStore("cluster-alone"); err != nil {
		return nil, err
	}
	plain, err := b.fingerpost(ctx, "cluster-alone", alike.config)
	if err != nil {
		return nil, err
	}
	if err := c.start(ctx); err != nil {
		return nil, err
	}
	defer c.calls.Close()
	rep := &report{Parameters: b.parameters(c.corpus, map[string]any{
		"edges": b.cluster.edges.String(), "writeRate": writeRate})}
	for _, part := range []func() error{
		func() error { return c.firstEdge(ctx, plain, rep) },
		func() error { return c.onAnEdge(ctx, plain, alike, rep) },
		func() error { return c.writePath(ctx, plain, alike, rep) },
		func() error { return c.visible(ctx, rep) },
		func() error { return c.light(ctx, rep) },
	} {
		if err := part(); err != nil {
			return nil, err
		}
	}
	all, err1 := c.authority.memory()
	own, err2 := memoryOf(c.authority.pid)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	rep.add(measured("resident memory of the NATS server", "MiB", all.now-own.now))
	rep.note("A write is visible once every edge has answered a resolve with the X-Min-Position of the write's answer; " +
		"the time runs from that answer. The bare NATS is in the bench's process, with as many connections, and a " +
		"message of 1 KiB.")
	return rep, nil
}

// start declares the edges and starts the authority.
func (c *clusterBench) start(ctx context.Context) (err error) {
	for i := range slices.Max(c.cluster.edges) {
		cmd := exec.CommandContext(ctx, c.binary, "edges", "keygen", edgeName(i), "--config", c.corpus.config)
		seed, err := cmd.Output()
		if err == nil {
			err = os.WriteFile(c.seed(edgeName(i)), seed, 0o600)
		}
		if err != nil {
			return fmt.Errorf("declare edges: %w", err)
		}
	}
	if err := c.declareLight(); err != nil {
		return fmt.Errorf("declare light followers: %w", err)
	}
	if c.nats, err = freeAddress(); err != nil {
		return err
	}
	c.authority, err = c.fingerpost(ctx, "cluster-"+c.corpus.String(), c.corpus.config, "--cluster-listen", c.nats)
	if err == nil {
		c.calls = wire.NewClient(c.authority.addr, wire.KeyField, c.corpus.key)
	}
	return err
}

func edgeName(i int) string { return fmt.Sprintf("edge%02d", i) }

// seed is the file with the key of an edge.
func (c *clusterBench) seed(edge string) string { return filepath.Join(c.work, edge+".nk") }

func (c *clusterBench) startEdge(ctx context.Context, i int) (*server, error) {
	return c.node(ctx, edgeName(i), "an edge", "--follow", "nats://"+c.nats, "--edge-name", edgeName(i), "--edge-key",
		c.seed(edgeName(i)))
}

// grow starts edges with empty stores until there are n.
func (c *clusterBench) grow(ctx context.Context, n int) error {
	for i := len(c.nodes); i < n; i++ {
		if err := c.clearStore(edgeName(i)); err != nil {
			return err
		}
		s, err := c.startEdge(ctx, i)
		if err != nil {
			return err
		}
		c.nodes = append(c.nodes, s)
	}
	return nil
}

// firstEdge compares the first start of an edge with one from a folder, and times its second start.
func (c *clusterBench) firstEdge(ctx context.Context, plain *server, rep *report) error {
	if err := c.grow(ctx, 1); err != nil {
		return err
	}
	first := c.nodes[0]
	first.stop()
	again, err := c.startEdge(ctx, 0)
	if err != nil {
		return err
	}
	c.nodes[0] = again
	rep.add(
		measured("first start of an edge", "s", first.ready.Seconds()).
			over("a cold start from a folder", plain.ready.Seconds()).ratioAtMost(1.5),
		measured("second start of an edge", "s", again.ready.Seconds()).atMost(3))
	return nil
}

// onAnEdge compares resolve on an edge with resolve without a cluster, also while writes come in at the authority.
func (c *clusterBench) onAnEdge(ctx context.Context, plain *server, alike *corpus, rep *report) error {
	edge := c.nodes[0]
	for server, of := range map[*server]*corpus{plain: alike, edge: c.corpus} {
		if err := c.fill(ctx, server, of, of.names()); err != nil {
			return err
		}
	}
	base := c.fullSpeed(resolves(plain, alike, alike.zipf()))
	quiet := c.fullSpeed(resolves(edge, c.corpus, c.corpus.zipf()))
	base.name = "without a cluster"
	busy := newTurn("an edge, with writes", func(ctx context.Context, t *turn) error {
		_, err := pacedWrites(c.authority, c.corpus).while(ctx, func() error { return quiet.measure(ctx, t) })
		return err
	})
	if err := c.alternate(ctx, base, quiet, busy); err != nil {
		return err
	}
	rep.add(
		quiet.against(base, perSecond, "resolve on an edge", "requests/s").ratioAtLeast(0.97),
		quiet.against(base, cpuEach, "server CPU of resolve on an edge", "µs/request"),
		busy.against(base, perSecond, fmt.Sprintf("resolve on an edge while %v writes a second come in", writeRate),
			"requests/s").ratioAtLeast(0.97))
	return nil
}

// writePath compares durable writes at the authority with those without a cluster.
func (c *clusterBench) writePath(ctx context.Context, plain *server, alike *corpus, rep *report) error {
	own := ownFiles(c.corpus.Projects, min(c.connections, c.corpus.Projects))
	ours := c.writing(served(c.authority, c.corpus, own), len(own))
	base := c.writing(served(plain, alike, own), len(own))
	base.name = "without a cluster"
	if err := c.alternate(ctx, ours, base); err != nil {
		return err
	}
	rep.add(
		ours.against(base, perSecond, "durable writes at the authority", "writes/s").ratioAtLeast(0.9),
		ours.against(base, cpuEach, "CPU of a write at the authority", "µs/write"))
	return nil
}

// visible times the way of writes to all edges, for each number of edges.
func (c *clusterBench) visible(ctx context.Context, rep *report) error {
	question := wire.ResolvePath + string(c.corpus.appendHost(nil, 0))
	for _, n := range c.cluster.edges {
		if err := c.grow(ctx, n); err != nil {
			return err
		}
		var edges []*wire.Client
		for _, edge := range c.nodes[:n] {
			cl := wire.NewClient(edge.addr, wire.KeyField, c.corpus.key)
			defer cl.Close()
			edges = append(edges, cl)
		}
		p50, p99, err := c.wayOfWrites(ctx, fmt.Sprintf("%d edges: write → visible on all", n), n,
			func(position string) error {
				var all sync.WaitGroup
				errs := make([]error, n)
				for i, cl := range edges {
					all.Go(func() {
						cl.Req.Header.Set("X-Min-Position", position)
						_, errs[i] = cl.Must("GET", question, nil)
					})
				}
				all.Wait()
				return errors.Join(errs...)
			})
		if err != nil {
			return err
		}
		if n == slices.Max(c.cluster.edges) {
			p99 = p99.ratioAtMost(5)
			rep.add(measured(fmt.Sprintf("%d edges: write → visible on all, p99 alone", n), "ms", p99.Rounds.Figure...).
				atMost(10).aside())
		}
		rep.add(p50, p99)
	}
	return nil
}

// write writes a project at the authority, and returns the position of the answer.
func (c *clusterBench) write() (position string, err error) {
	slug := c.corpus.slugs[0]
	body := fmt.Appendf(nil, `{"description":%q}`, description(slug, int(c.corpus.last.Add(1))))
	a, err := c.calls.Must("PUT", projectURL(slug), body)
	if err != nil {
		return "", err
	}
	return string(a.Head.Peek("X-Config-Position")), nil
}

// wayOfWrites alternates writes at the authority, each timed from its answer until everywhere returns, with messages of
// a bare NATS to as many subscribers.
func (c *clusterBench) wayOfWrites(ctx context.Context, name string, n int, everywhere func(position string) error) (
	p50, p99 row, err error) {
	bare, err := c.newBareNATS(n)
	if err != nil {
		return p50, p99, fmt.Errorf("bare NATS: %w", err)
	}
	defer bare.close()
	c.say("%s", name)
	timed := func(name string, prepare func() (string, error), do func(string) error) *turn {
		return newTurn(name, func(_ context.Context, t *turn) error {
			var took latencies
			for until := time.Now().Add(c.round); time.Now().Before(until); time.Sleep(pauseBetween) {
				position, err := prepare()
				if err != nil {
					return err
				}
				began := time.Now()
				if err := do(position); err != nil {
					return err
				}
				took = append(took, time.Since(began))
			}
			t.addTails(took)
			return nil
		})
	}
	ours := timed("fingerpost", c.write, everywhere)
	base := timed("bare NATS", func() (string, error) { return "", nil }, bare.publish)
	if err := c.alternate(ctx, ours, base); err != nil {
		return p50, p99, err
	}
	return ours.against(base, "p50", name+", p50", "ms"), ours.against(base, "p99", name+", p99", "ms"), nil
}

// A bareNATS is a NATS server in this process with subscribers.
type bareNATS struct {
	server      *natsserver.Server
	connections []*nats.Conn // the first publishes
	arrived     sync.WaitGroup
}

func (c *clusterBench) newBareNATS(subscribers int) (b *bareNATS, err error) {
	b = &bareNATS{}
	b.server, err = natsserver.NewServer(&natsserver.Options{Host: "127.0.0.1", Port: natsserver.RANDOM_PORT,
		NoLog: true, NoSigs: true})
	if err != nil {
		return nil, err
	}
	go b.server.Start()
	if !b.server.ReadyForConnections(startTimeout) {
		err = errors.New("the server does not become ready")
	}
	for i := 0; i <= subscribers && err == nil; i++ {
		var nc *nats.Conn
		if nc, err = nats.Connect(b.server.ClientURL()); err != nil {
			break
		}
		b.connections = append(b.connections, nc)
		if i > 0 {
			_, err = nc.Subscribe("bench", func(*nats.Msg) { b.arrived.Done() })
			err = errors.Join(err, nc.Flush())
		}
	}
	if err != nil {
		b.close()
	}
	return b, err
}

// publish sends a message and waits until all subscribers have it.
func (b *bareNATS) publish(string) error {
	b.arrived.Add(len(b.connections) - 1)
	if err := b.connections[0].Publish("bench", make([]byte, 1<<10)); err != nil {
		return fmt.Errorf("bare NATS: %w", err)
	}
	b.arrived.Wait()
	return nil
}

func (b *bareNATS) close() {
	for _, nc := range b.connections {
		nc.Close()
	}
	b.server.Shutdown()
}
