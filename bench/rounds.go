package main

import (
	"context"
	"fmt"
	"time"
)

// A side is one of the servers that take turns in a measurement.
type side struct {
	server *server
	corpus *corpus
	asker  asker
	rates  []float64 // requests a second, a round each
	cpu    []float64 // server CPU per request in µs, a round each
}

// known is a side that is asked names of a corpus and must know them.
func known(s *server, c *corpus, schedule []uint32) *side {
	return &side{server: s, corpus: c, asker: &scheduled{corpus: c, schedule: schedule}}
}

// closed is a load that asks the side as fast as it answers.
func (b *bench) closed(s *side) load {
	return load{addr: s.server.addr, key: s.corpus.key, connections: b.load.connections, asker: s.asker, seed: b.corpus.Seed}
}

// warm asks n questions that are not measured.
func (b *bench) warm(ctx context.Context, s *side, n int) error {
	l := b.closed(s)
	l.count = n
	_, err := b.exact(ctx, s, l)
	return err
}

// exact runs a load in which a single wrong answer voids the figures.
func (b *bench) exact(ctx context.Context, s *side, l load) (*loadResult, error) {
	res, err := l.run(ctx)
	if err == nil {
		err = res.require()
	}
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", s.server.name, err)
	}
	return res, nil
}

// measureRound adds one round to a side's figures.
func (b *bench) measureRound(ctx context.Context, s *side) error {
	before, err := processCPU(s.server.pid)
	if err != nil {
		return err
	}
	l := b.closed(s)
	l.duration = b.load.round
	res, err := b.exact(ctx, s, l)
	if err != nil {
		return err
	}
	after, err := processCPU(s.server.pid)
	if err != nil {
		return err
	}
	s.rates = append(s.rates, res.perSecond())
	s.cpu = append(s.cpu, float64((after-before)/time.Nanosecond)/1e3/float64(res.requests))
	return nil
}

// interleave lets the sides take turns, and the one that begins change from round to round.
func (b *bench) interleave(ctx context.Context, sides ...*side) error {
	for i := range b.load.rounds {
		for j := range sides {
			if err := b.measureRound(ctx, sides[(i+j)%len(sides)]); err != nil {
				return err
			}
		}
		line := fmt.Sprintf("round %d of %d:", i+1, b.load.rounds)
		for _, s := range sides {
			line += fmt.Sprintf("  %s %.0f/s, %.2f µs", s.server.name, s.rates[i], s.cpu[i])
		}
		b.say("%s", line)
	}
	return nil
}

// halfRate is what the open loop runs at: -rate, or half of what the side reaches in one round.
func (b *bench) halfRate(ctx context.Context, s *side) (float64, error) {
	if b.load.rate > 0 {
		return b.load.rate, nil
	}
	l := b.closed(s)
	l.duration = b.load.round
	res, err := b.exact(ctx, s, l)
	if err != nil {
		return 0, err
	}
	b.say("the machine reaches %.0f requests a second; half of that from here on", res.perSecond())
	return res.perSecond() / 2, nil
}

// answerSize is the mean length of the bodies of the first n names of a schedule.
func answerSize(s *server, c *corpus, schedule []uint32, n int) (int, error) {
	cl, err := dial(s.addr, c.key)
	if err != nil {
		return 0, err
	}
	defer cl.close()
	total := 0
	for _, name := range schedule[:n] {
		host := c.appendHost(nil, int(name))
		a, err := cl.resolve(host)
		if err != nil {
			return 0, err
		}
		if a.status != 200 {
			return 0, fmt.Errorf("resolve %s: status %d: %s", host, a.status, a.body)
		}
		total += len(a.body)
	}
	return total / n, nil
}
