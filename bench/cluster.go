package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
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
	nats      string    // where edges follow
	nodes     []*server // the edges
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
	rep := &report{Parameters: b.parameters(c.corpus, map[string]any{
		"edges": b.cluster.edges.String(), "writeRate": writeRate})}
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
	if err := c.firstEdge(ctx, plain, rep); err != nil {
		return nil, err
	}
	if err := c.onAnEdge(ctx, plain, alike, rep); err != nil {
		return nil, err
	}
	if err := c.writePath(ctx, plain, alike, rep); err != nil {
		return nil, err
	}
	if err := c.visible(ctx, rep); err != nil {
		return nil, err
	}
	if err := c.light(ctx, rep); err != nil {
		return nil, err
	}
	if mem, err := memoryOfChildren(c.authority.pid); err != nil {
		return nil, err
	} else if mem > 0 {
		rep.add(measured("resident memory of the NATS server", "MiB", mem))
	}
	rep.note("A write is visible once every edge has answered a resolve with the X-Min-Position of the write's answer; " +
		"the time runs " +
		"from that answer. The bare NATS is in the bench's process, with as many connections, and a message of 1 KiB.")
	return rep, nil
}

// memoryOfChildren returns the resident memory of a process's children in MiB; 0 where the kernel does not show them.
func memoryOfChildren(pid int) (total float64, err error) {
	all, err := processes(pid)
	if err != nil {
		return 0, fmt.Errorf("read memory: %w", err)
	}
	for _, p := range all[1:] {
		status, err := p.NewStatus()
		if err != nil {
			return 0, fmt.Errorf("read memory: %w", err)
		}
		total += mib(status.VmRSS)
	}
	return total, nil
}

// start declares the edges and starts the authority.
func (c *clusterBench) start(ctx context.Context) (err error) {
	for i := range slices.Max(c.cluster.edges) {
		cmd := exec.CommandContext(ctx, c.binary, "edges", "keygen", edgeName(i), "--config", c.corpus.config)
		seed, err := cmd.Output()
		if err == nil {
			err = os.WriteFile(c.seed(i), seed, 0o600)
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
	return err
}

func edgeName(i int) string { return fmt.Sprintf("edge%02d", i) }

func (c *clusterBench) seed(i int) string { return filepath.Join(c.work, edgeName(i)+".nk") }

// edge starts the next edge, with an empty store.
func (c *clusterBench) edge(ctx context.Context) (*server, error) {
	i := len(c.nodes)
	if err := c.clearStore(edgeName(i)); err != nil {
		return nil, err
	}
	s, err := c.startEdge(ctx, i)
	if err == nil {
		c.nodes = append(c.nodes, s)
	}
	return s, err
}

func (c *clusterBench) startEdge(ctx context.Context, i int) (*server, error) {
	return c.node(ctx, edgeName(i), "an edge", "--follow", "nats://"+c.nats, "--edge-name", edgeName(i), "--edge-key",
		c.seed(i))
}

// firstEdge compares the first start of an edge with one from a folder, and times its second start.
func (c *clusterBench) firstEdge(ctx context.Context, plain *server, rep *report) error {
	first, err := c.edge(ctx)
	if err != nil {
		return err
	}
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
	for _, n := range c.cluster.edges {
		for len(c.nodes) < n {
			if _, err := c.edge(ctx); err != nil {
				return err
			}
		}
		c.say("%d edges", n)
		ours := newTurn("fingerpost", func(ctx context.Context, t *turn) error { return c.timeWrites(ctx, t, c.nodes[:n]) })
		bare := newTurn("bare NATS", func(ctx context.Context, t *turn) error { return c.timeBare(ctx, t, n) })
		if err := c.alternate(ctx, ours, bare); err != nil {
			return err
		}
		name := func(part string) string { return fmt.Sprintf("%d edges: write → visible on all, %s", n, part) }
		p99 := ours.against(bare, "p99", name("p99"), "ms")
		if n == slices.Max(c.cluster.edges) {
			p99 = p99.ratioAtMost(5)
			rep.add(measured(name("p99 alone"), "ms", ours.figures["p99"]...).atMost(10).aside())
		}
		rep.add(ours.against(bare, "p50", name("p50"), "ms"), p99)
	}
	return nil
}

// timeWrites makes writes for a round, and times each from its answer until all edges have answered from it.
func (c *clusterBench) timeWrites(ctx context.Context, t *turn, edges []*server) error {
	question := resolvePath + string(c.corpus.appendHost(nil, 0))
	client := &http.Client{Timeout: clientTimeout, Transport: &http.Transport{MaxIdleConnsPerHost: 1}}
	defer client.CloseIdleConnections()
	return c.timeEach(ctx, t, func(position string) error {
		var all sync.WaitGroup
		errs := make([]error, len(edges))
		for i, e := range edges {
			all.Go(func() { _, errs[i] = c.askNode(ctx, client, e, http.MethodGet, question, "", position) })
		}
		all.Wait()
		return errors.Join(errs...)
	})
}

// askNode asks one node, and returns the position of its answer.
func (c *clusterBench) askNode(ctx context.Context, client *http.Client, s *server, method, path, body,
	position string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+s.addr+path, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("X-PLATFORM-KEY", c.corpus.key)
	req.Header.Set("Content-Type", "application/json")
	if position != "" {
		req.Header.Set("X-Min-Position", position)
	}
	res, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %d %s", method, path, res.StatusCode, answer)
	}
	return res.Header.Get("X-Config-Position"), err
}

// timeEach makes writes for a round, and times each from its answer until everywhere returns.
func (c *clusterBench) timeEach(ctx context.Context, t *turn, everywhere func(position string) error) error {
	client := &http.Client{Timeout: clientTimeout}
	defer client.CloseIdleConnections()
	slug := c.corpus.slugs[0]
	var took latencies
	for until := time.Now().Add(c.round); time.Now().Before(until); {
		body := fmt.Sprintf(`{"description":%q}`, description(slug, int(c.corpus.last.Add(1))))
		position, err := c.askNode(ctx, client, c.authority, http.MethodPut, projectURL(slug), body, "")
		if err != nil {
			return err
		}
		answered := time.Now()
		if err := everywhere(position); err != nil {
			return err
		}
		took = append(took, time.Since(answered))
		time.Sleep(pauseBetween)
	}
	t.addTails(took)
	return nil
}

// timeBare publishes as many messages to a number of subscribers of a NATS server in this process.
func (c *clusterBench) timeBare(ctx context.Context, t *turn, subscribers int) error {
	ns, err := natsserver.NewServer(&natsserver.Options{Host: "127.0.0.1", Port: natsserver.RANDOM_PORT, NoLog: true,
		NoSigs: true})
	if err != nil {
		return fmt.Errorf("bare NATS: %w", err)
	}
	go ns.Start()
	defer ns.Shutdown()
	if !ns.ReadyForConnections(startTimeout) {
		return errors.New("bare NATS: the server does not become ready")
	}
	var arrived sync.WaitGroup
	connect := func() (*nats.Conn, error) { return nats.Connect(ns.ClientURL()) }
	for range subscribers {
		nc, err := connect()
		if err != nil {
			return fmt.Errorf("bare NATS: %w", err)
		}
		defer nc.Close()
		if _, err := nc.Subscribe("bench", func(*nats.Msg) { arrived.Done() }); err != nil {
			return fmt.Errorf("bare NATS: %w", err)
		}
		if err := nc.Flush(); err != nil {
			return fmt.Errorf("bare NATS: %w", err)
		}
	}
	from, err := connect()
	if err != nil {
		return fmt.Errorf("bare NATS: %w", err)
	}
	defer from.Close()
	var took latencies
	for until := time.Now().Add(c.round); time.Now().Before(until); {
		began := time.Now()
		arrived.Add(subscribers)
		if err := from.Publish("bench", make([]byte, 1<<10)); err != nil {
			return fmt.Errorf("bare NATS: %w", err)
		}
		arrived.Wait()
		took = append(took, time.Since(began))
		time.Sleep(pauseBetween)
	}
	t.addTails(took)
	return nil
}
