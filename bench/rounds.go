package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// A turn is one of the sides that a measurement alternates between: a server under a load, or a baseline.
type turn struct {
	name    string
	measure func(ctx context.Context, t *turn) error // one round: adds a value to each figure
	figures map[string][]float64                     // one value per round
	all     latencies                                // of all rounds
}

// The names of figures that most turns have. Latencies have those of tailNames.
const (
	perSecond      = "rate"
	p99AtFullSpeed = "p99 at full speed"
	cpuEach        = "cpu" // of the server: µs per request, ms per write or mail
)

func newTurn(name string, measure func(ctx context.Context, t *turn) error) *turn {
	return &turn{name: name, measure: measure, figures: map[string][]float64{}}
}

// add adds the value of one round to a figure.
func (t *turn) add(figure string, v float64) { t.figures[figure] = append(t.figures[figure], v) }

// addTails adds the latencies of a round.
func (t *turn) addTails(l latencies) {
	t.all.merge(l)
	for i, d := range l.percentiles(tailParts...) {
		t.add(tailNames[i], ms(d))
	}
}

// median returns the median of a figure over the rounds.
func (t *turn) median(figure string) float64 { return spreadOf(t.figures[figure]).Median }

// sum returns the sum of a figure over the rounds.
func (t *turn) sum(figure string) (total float64) {
	for _, v := range t.figures[figure] {
		total += v
	}
	return total
}

// against returns a row that compares a figure with the same figure of a baseline.
func (t *turn) against(base *turn, figure, name, unit string) row {
	return compared(name, unit, t.figures[figure], base.figures[figure], base.name)
}

// alternate measures all turns in each round. The order is random, so that no turn always follows the same one, which
// may still be busy after its own part.
func (b *bench) alternate(ctx context.Context, turns ...*turn) error {
	for i := range b.rounds {
		for _, j := range rand.New(rand.NewPCG(corpusSeed, uint64(i))).Perm(len(turns)) {
			if err := turns[j].measure(ctx, turns[j]); err != nil {
				return err
			}
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		var line strings.Builder
		for _, t := range turns {
			fmt.Fprintf(&line, "  %s:", t.name)
			for _, figure := range []string{perSecond, cpuEach, "p50", "p99"} {
				if v := t.figures[figure]; len(v) > i {
					fmt.Fprintf(&line, " %s %s", figure, number(v[i]))
				}
			}
		}
		b.say("round %d of %d:%s", i+1, b.rounds, line.String())
	}
	return nil
}

// lead lets each turn do its work once before the measurement.
func (b *bench) lead(ctx context.Context, turns ...*turn) error {
	for _, t := range turns {
		if err := t.measure(ctx, newTurn(t.name, nil)); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// closed returns a load that asks a target as fast as answers come.
func (b *bench) closed(t target) load {
	return load{target: t, connections: b.connections}
}

// warm asks for warmRounds rounds without measuring.
func (b *bench) warm(ctx context.Context, t target) error {
	l := b.closed(t)
	l.duration = warmRounds * b.round
	_, err := l.exact(ctx)
	return err
}

const warmRounds = 2

// exact runs a load in which a single wrong answer voids the figures.
func (l load) exact(ctx context.Context) (*loadResult, error) {
	res, err := l.run(ctx)
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = res.require()
	}
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", l.server.name, err)
	}
	return res, nil
}

// leadIn: one in so many parts of a round is asked before measuring, because the other turns have used the processor's
// caches.
const leadIn = 4

// lead asks for a short time before measuring.
func (l load) lead(ctx context.Context) error {
	l.duration /= leadIn
	_, err := l.exact(ctx)
	return err
}

// fullSpeed is a turn that asks a target as fast as answers come: rate, CPU and p99.
func (b *bench) fullSpeed(name string, of target) *turn {
	return newTurn(name, func(ctx context.Context, t *turn) error {
		l := b.closed(of)
		l.duration = b.round
		if err := l.lead(ctx); err != nil {
			return err
		}
		before, err := processCPU(of.server.pid)
		if err != nil {
			return err
		}
		res, err := l.exact(ctx)
		if err != nil {
			return err
		}
		after, err := processCPU(of.server.pid)
		t.add(perSecond, res.perSecond())
		t.add(cpuEach, float64(after-before)/1e3/float64(res.requests))
		t.add(p99AtFullSpeed, ms(res.latencies.percentiles(0.99)[0]))
		return err
	})
}

// constantRate is a turn that asks a target at a constant rate: all tails.
func (b *bench) constantRate(name string, of target, rate float64) *turn {
	return newTurn(name, func(ctx context.Context, t *turn) error {
		l := b.closed(of)
		l.rate, l.duration = rate, b.round
		if err := l.lead(ctx); err != nil {
			return err
		}
		res, err := l.exact(ctx)
		if err == nil {
			t.addTails(res.latencies)
		}
		return err
	})
}

// tails compares all percentiles of two turns.
func (t *turn) tails(base *turn, name string) (rows []row) {
	for _, tail := range tailNames {
		rows = append(rows, t.against(base, tail, name+" "+tail, "ms"))
	}
	return rows
}

// halfRate returns the rate of the open loop: half of what the target reaches in one round.
func (b *bench) halfRate(ctx context.Context, of target) (float64, error) {
	l := b.closed(of)
	l.duration = b.round
	res, err := l.exact(ctx)
	if err != nil {
		return 0, err
	}
	b.say("the machine reaches %.0f requests a second; half of that from here on", res.perSecond())
	return res.perSecond() / 2, nil
}

// withCache runs the load and returns the cache's counters for that time.
func (l load) withCache(ctx context.Context) (*loadResult, cacheCounts, error) {
	before, err := l.server.cache()
	if err != nil {
		return nil, nil, err
	}
	res, err := l.run(ctx)
	if err != nil {
		return nil, nil, err
	}
	after, err := l.server.cache()
	if err != nil {
		return nil, nil, err
	}
	return res, after.since(before), nil
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// parameters returns what a reader needs in order to repeat the run.
func (b *bench) parameters(c *corpus, more map[string]any) map[string]any {
	p := map[string]any{
		"projects": c.Projects, "domains": c.Domains, "seed": corpusSeed, "connections": b.connections, "rounds": b.rounds,
		"round": b.round.String(), "zipf": zipfExponent,
	}
	for k, v := range more {
		p[k] = v
	}
	return p
}
