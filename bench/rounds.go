package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// A turn is one of the sides that a measurement alternates between.
type turn struct {
	name    string
	measure func(ctx context.Context, t *turn) error // one round: adds a value to each figure
	figures map[string][]float64                     // one value per round
}

// The names of figures that most turns have. Latencies have those of tailNames.
const (
	perSecond = "rate"
	cpuEach   = "cpu"  // µs of CPU time of the side for each operation
	hits      = "hits" // the part of lookups that the cache answered
)

func newTurn(name string, measure func(ctx context.Context, t *turn) error) *turn {
	return &turn{name: name, measure: measure, figures: map[string][]float64{}}
}

// add adds the value of one round to a figure.
func (t *turn) add(figure string, v float64) { t.figures[figure] = append(t.figures[figure], v) }

// addTails adds the latencies of a round.
func (t *turn) addTails(l latencies) {
	for i, d := range l.percentiles(tailParts...) {
		t.add(tailNames[i], ms(d))
	}
}

// median returns the median of a figure over the rounds.
func (t *turn) median(figure string) float64 { return spreadOf(t.figures[figure]).Median }

// against returns a row that compares a figure with the same figure of a baseline.
func (t *turn) against(base *turn, figure, name, unit string) row {
	return measured(name, unit, t.figures[figure]...).over(base.name, base.figures[figure]...)
}

// tails compares all percentiles of two turns.
func (t *turn) tails(base *turn, name string) (rows []row) {
	for _, tail := range tailNames {
		rows = append(rows, t.against(base, tail, name+" "+tail, "ms"))
	}
	return rows
}

// alternate measures all turns in each round, after one round that does not count, in which caches fill. The order is
// random, because a turn may still be busy after its own part, which the next one pays for.
func (b *bench) alternate(ctx context.Context, turns ...*turn) error {
	for i := range b.rounds + 1 {
		var line strings.Builder
		for _, j := range rand.New(rand.NewPCG(corpusSeed, uint64(i))).Perm(len(turns)) {
			t := turns[j]
			if i == 0 {
				t = newTurn(t.name, nil)
			}
			if err := turns[j].measure(ctx, t); err != nil {
				return err
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			fmt.Fprintf(&line, "  %s:", t.name)
			for _, figure := range []string{perSecond, cpuEach, "p50", "p99"} {
				if v := t.figures[figure]; len(v) > 0 {
					fmt.Fprintf(&line, " %s %s", figure, number(v[len(v)-1]))
				}
			}
		}
		b.say("round %d of %d:%s", i, b.rounds, line.String())
	}
	return nil
}

// leadIn: one in so many parts of a round is worked before measuring, because the other turns have used the processor's
// caches.
const leadIn = 4

// turn measures a load, for a round each time: rate, CPU time, tails.
func (b *bench) turn(name string, l load) *turn {
	return newTurn(name, func(ctx context.Context, t *turn) error {
		l.duration = b.round / leadIn
		if _, err := l.run(ctx); err != nil {
			return err
		}
		counters, err := metrics(l.ops)
		if err != nil {
			return err
		}
		before, err := processCPU(l.pid)
		if err != nil {
			return err
		}
		l.duration = b.round
		out, err := l.run(ctx)
		if err != nil {
			return err
		}
		after, err1 := processCPU(l.pid)
		grown, err2 := metrics(l.ops)
		if len(out.latencies) == 0 {
			return fmt.Errorf("%s has done nothing within %v", name, out.elapsed)
		}
		t.add(perSecond, out.perSecond())
		t.add(cpuEach, float64(after-before)/1e3/float64(len(out.latencies)))
		t.add(hits, hitShare(counters, grown))
		t.addTails(out.latencies)
		return errors.Join(err1, err2)
	})
}

// fullSpeed is the turn of a side on all connections, as fast as answers come.
func (b *bench) fullSpeed(s *side) *turn {
	return b.turn(s.name, load{side: s, workers: b.connections})
}

// fill asks a server about each of the names once, so that they are in its cache.
func (b *bench) fill(ctx context.Context, s *server, c *corpus, names []uint32) error {
	b.say("asking %s for %d names", s.name, len(names))
	_, err := load{side: resolves(s, c, names), workers: b.connections, count: len(names)}.run(ctx)
	return err
}

// halfRate returns half of what a side reaches in one round.
func (b *bench) halfRate(ctx context.Context, s *side) (float64, error) {
	out, err := load{side: s, workers: b.connections, duration: b.round}.run(ctx)
	if err != nil {
		return 0, err
	}
	b.say("the machine reaches %.0f requests a second; half of that from here on", out.perSecond())
	return out.perSecond() / 2, nil
}

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

// latencies are times of operations.
type latencies []time.Duration

// percentiles returns the latencies at the given ranks (0.5, 0.99 …; 1 is the longest), by the nearest-rank method. All
// are 0 if there are no latencies. It sorts them.
func (l latencies) percentiles(parts ...float64) []time.Duration {
	out := make([]time.Duration, len(parts))
	if len(l) == 0 {
		return out
	}
	slices.Sort(l)
	for i, part := range parts {
		rank := int(math.Ceil(part * float64(len(l))))
		out[i] = l[max(1, min(rank, len(l)))-1]
	}
	return out
}

// tailParts are the percentiles in a table of latencies, and tailNames their names.
var (
	tailParts = []float64{0.5, 0.9, 0.99, 0.999, 1}
	tailNames = []string{"p50", "p90", "p99", "p99.9", "max"}
)

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
