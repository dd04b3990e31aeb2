package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// A side is one of the servers that a measurement alternates between.
type side struct {
	server   *server
	corpus   *corpus
	asker    asker
	protocol protocol  // nil: that of fingerpost
	rates    []float64 // requests a second, one per round
	cpu      []float64 // server CPU per request in µs, one per round
	p99      []float64 // of the closed loop in ms, one per round
	paced    paced
}

// paced are the latencies of a side at a constant rate.
type paced struct {
	all   latencies
	tails [tails][]float64 // ms, one per round
}

// known is a side that is asked for names of a corpus and must know them.
func known(s *server, c *corpus, schedule []uint32) *side {
	return &side{server: s, corpus: c, asker: &scheduled{corpus: c, schedule: schedule}}
}

// closed returns a closed-loop load for the side.
func (b *bench) closed(s *side) load {
	return load{addr: s.server.addr, key: s.corpus.key, protocol: s.protocol, connections: b.load.connections, asker: s.asker, seed: b.corpus.Seed}
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
	l := b.closed(s)
	l.duration = b.load.round
	if err := b.lead(ctx, s, l); err != nil {
		return err
	}
	before, err := s.server.cpu()
	if err != nil {
		return err
	}
	res, err := b.exact(ctx, s, l)
	if err != nil {
		return err
	}
	after, err := s.server.cpu()
	if err != nil {
		return err
	}
	s.rates = append(s.rates, res.perSecond())
	s.cpu = append(s.cpu, float64((after-before)/time.Nanosecond)/1e3/float64(res.requests))
	s.p99 = append(s.p99, ms(res.latencies.percentiles(0.99)[0]))
	return nil
}

// order returns the order of n sides in a round. It is random, so that no side always follows the same one, which may
// still be busy after its own turn.
func (b *bench) order(round, n int) []int {
	return rand.New(rand.NewPCG(b.corpus.Seed, uint64(round))).Perm(n)
}

// leadIn: one in so many parts of a round is asked before measuring, because the other sides have used the processor's
// caches.
const leadIn = 4

// lead asks a side for a short time, as l does, before measuring.
func (b *bench) lead(ctx context.Context, s *side, l load) error {
	l.duration /= leadIn
	_, err := b.exact(ctx, s, l)
	return err
}

// interleave measures the sides in alternating rounds.
func (b *bench) interleave(ctx context.Context, sides ...*side) error {
	for i := range b.load.rounds {
		for _, j := range b.order(i, len(sides)) {
			if err := b.measureRound(ctx, sides[j]); err != nil {
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

// interleaveAt is interleave at a constant rate: it measures latencies.
func (b *bench) interleaveAt(ctx context.Context, rate float64, sides ...*side) error {
	for i := range b.load.rounds {
		line := fmt.Sprintf("%.0f requests a second, round %d of %d:", rate, i+1, b.load.rounds)
		for _, j := range b.order(i, len(sides)) {
			s := sides[j]
			l := b.closed(s)
			l.rate, l.duration = rate, b.load.round
			if err := b.lead(ctx, s, l); err != nil {
				return err
			}
			res, err := b.exact(ctx, s, l)
			if err != nil {
				return err
			}
			s.paced.add(res.latencies)
			line += fmt.Sprintf("  %s p99 %.3f ms", s.server.name, s.paced.tails[tailP99][i])
		}
		b.say("%s", line)
	}
	return nil
}

// add adds the latencies of a round.
func (p *paced) add(l latencies) {
	p.all.merge(l)
	for k, d := range l.percentiles(tailParts...) {
		p.tails[k] = append(p.tails[k], ms(d))
	}
}

// comparedWith compares the percentiles of both, round by round.
func (p *paced) comparedWith(name string, base *paced, against string) (rows []row) {
	for k, tail := range tailNames {
		rows = append(rows, compared(name+" "+tail, "ms", p.tails[k], base.tails[k], against))
	}
	return rows
}

// halfRate returns the rate of the open loop: -rate, or half of what the side reaches in one round.
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

// answerSize returns the mean length of the bodies of the first n names of a schedule.
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
