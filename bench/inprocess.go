package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"runtime"
	"time"

	"fingerpost/bench/clients"
	"fingerpost/bench/wire"
	"fingerpost/resolver/catalog"
)

// clientOptions are the flags of client.
type clientOptions struct {
	entries intList
	crowd   int
	writes  int
}

func (o *clientOptions) register(f *flag.FlagSet) {
	f.Var(&o.entries, "entries", "client: numbers of names in memory whose memory is measured; hits are of the first")
	f.IntVar(&o.crowd, "clients", o.crowd, "client: clients that wait for a write")
	f.IntVar(&o.writes, "client-writes", o.writes, "client: writes whose way to the clients is timed")
}

const eachHit = "ns" // the figure of a turn that looks up in memory, one after the other

// runClient measures lookups that a client answers from its memory, next to resolve over HTTP.
func runClient(ctx context.Context, b *bench) (*report, error) {
	c, err := b.openEdited("write-")
	if err != nil {
		return nil, err
	}
	s, err := b.fingerpost(ctx, c.String(), c.config)
	if err != nil {
		return nil, err
	}
	to := &clients.Server{URL: "http://" + s.addr, Key: c.key, Slug: c.slugs[0], Suffix: "." + c.slugs[0] + hostSuffix}
	rep := &report{Parameters: b.parameters(c, map[string]any{"clients": b.client.crowd, "writes": b.client.writes})}
	if err := b.clientHits(ctx, rep, s, c, to); err != nil {
		return nil, err
	}
	for _, entries := range b.client.entries {
		if err := b.clientMemory(ctx, rep, to, entries); err != nil {
			return nil, err
		}
	}
	return rep, b.clientWrites(ctx, rep, s, c, to)
}

// clientHits compares hits in memory with resolve over HTTP.
func (b *bench) clientHits(ctx context.Context, rep *report, s *server, c *corpus, to *clients.Server) error {
	entries := b.client.entries[0]
	here, err := clients.OpenGo(ctx, to, entries)
	if err != nil {
		return err
	}
	defer here.Close()
	looking := func(name string, hits func() (int64, time.Duration, error)) *turn {
		return newTurn(name, func(_ context.Context, t *turn) error {
			n, took, err := hits()
			if err == nil {
				t.add(perSecond, float64(n)/took.Seconds())
				t.add(eachHit, float64(took.Nanoseconds())/float64(n))
			}
			return err
		})
	}
	over := b.fullSpeed(resolves(s, c, c.zipf()))
	over.name = "resolve over HTTP"
	one := looking("Go, one goroutine", func() (int64, time.Duration, error) { return here.Hits(ctx, b.round, 1) })
	all := looking("Go, a goroutine a core", func() (int64, time.Duration, error) {
		return here.Hits(ctx, b.round, runtime.GOMAXPROCS(0))
	})
	turns := []*turn{over, one, all}
	node, err := clients.OpenNode(ctx, to, entries)
	switch {
	case errors.Is(err, clients.ErrNoNode):
		rep.note("Not measured in Node: it %v.", err)
	case err != nil:
		return err
	default:
		defer node.Close()
		turns = append(turns, looking("Node", func() (int64, time.Duration, error) { return node.Hits(b.round) }))
	}
	if err := b.alternate(ctx, turns...); err != nil {
		return err
	}
	rep.add(
		one.against(over, perSecond, "lookups in Go, one goroutine", "lookups/s"),
		all.against(over, perSecond, "lookups in Go, a goroutine a core", "lookups/s"),
		measured("a hit in Go", "ns", one.figures[eachHit]...).atMost(1000),
	)
	if node != nil {
		rep.add(turns[3].against(over, perSecond, "lookups in Node", "lookups/s"),
			measured("a hit in Node", "ns", turns[3].figures[eachHit]...).atMost(1000))
	}
	return nil
}

func (b *bench) clientMemory(ctx context.Context, rep *report, to *clients.Server, entries int) error {
	b.say("filling clients with %d names", entries)
	here, err := clients.OpenGo(ctx, to, entries)
	if err != nil {
		return err
	}
	rep.add(measured(fmt.Sprintf("memory of %d names in Go", entries), "MiB", mib(here.Bytes)))
	if err := here.Close(); err != nil {
		return err
	}
	node, err := clients.OpenNode(ctx, to, entries)
	if errors.Is(err, clients.ErrNoNode) {
		return nil
	} else if err != nil {
		return err
	}
	rep.add(measured(fmt.Sprintf("memory of %d names in Node", entries), "MiB", mib(node.Bytes)))
	return node.Close()
}

// clientWrites times the way from the beginning of a write to the new answer in many clients.
func (b *bench) clientWrites(ctx context.Context, rep *report, s *server, c *corpus, to *clients.Server) error {
	crowd, err := clients.OpenCrowd(ctx, to, b.client.crowd)
	if err != nil {
		return err
	}
	defer crowd.Close()
	calls := wire.NewClient(s.addr, wire.KeyField, c.key)
	defer calls.Close()
	id := catalog.DeriveID(catalog.KindProject, catalog.DeriveProjectUUID(c.slugs[0]))
	path := fmt.Sprintf("/api/platform/projects/%d", id)
	var all latencies
	for i := range b.client.writes {
		name := fmt.Sprintf("written %d", i)
		took, err := crowd.Write(ctx, name, func() error {
			_, err := calls.Must("PUT", path, fmt.Appendf(nil, `{"name":%q}`, name))
			return err
		})
		if err != nil {
			return err
		}
		all = append(all, took...)
	}
	ranks := all.percentiles(0.5, 0.99)
	what := fmt.Sprintf("from a write to the new answer in %d clients", b.client.crowd)
	rep.add(measured(what+" p50", "ms", ms(ranks[0])), measured(what+" p99", "ms", ms(ranks[1])))
	rep.note("Every hit was the right project and not stale. The clients of the last rows are in the process of bench, " +
		"and share the machine with the server; a write is a PUT that renames the project, its file and fsync included.")
	return nil
}
