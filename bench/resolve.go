package main

import (
	"context"
	"errors"
	"fmt"

	"fingerpost/bench/wire"
)

// sweep are the numbers of connections that are compared, sweepRounds bounds the rounds of each.
var sweep = []int{1, 16, 256}

const sweepRounds = 3

// runResolve compares fingerpost with the floor, in alternating rounds.
func runResolve(ctx context.Context, b *bench) (*report, error) {
	s, c, err := b.serve(ctx)
	if err != nil {
		return nil, err
	}
	both, size, err := b.withFloor(ctx, s, c)
	if err != nil {
		return nil, err
	}
	ours, floor := b.fullSpeed(both[0]), b.fullSpeed(both[1])
	if err := b.alternate(ctx, ours, floor); err != nil {
		return nil, err
	}
	rep := &report{Parameters: b.parameters(c, nil)}
	rep.add(
		ours.against(floor, perSecond, "resolve", "requests/s").ratioAtLeast(0.92),
		ours.against(floor, cpuEach, "server CPU", "µs/request").ratioAtMost(1.15),
		measured("answered by the cache", "part of all", ours.figures[hits]...),
	)
	if err := compareMemory(both, rep); err != nil {
		return nil, err
	}
	if err := b.latencyAtHalf(ctx, both, ours.median(perSecond)/2, rep); err != nil {
		return nil, err
	}
	if err := b.sweepConnections(ctx, both, rep); err != nil {
		return nil, err
	}
	rep.note("A body has %d bytes.", size)
	rep.note("Every answer was 200 and about the right project. " +
		"µs of CPU per request are seconds per million requests.")
	return rep, nil
}

// withFloor returns fingerpost, with the corpus in its cache, and the floor with answers of the same size.
func (b *bench) withFloor(ctx context.Context, s *server, c *corpus) (both []*side, size int, err error) {
	schedule := c.zipf()
	if size, err = answerSize(s, c, schedule[:200]); err != nil {
		return nil, 0, err
	}
	if err := b.fill(ctx, s, c, c.names()); err != nil {
		return nil, 0, err
	}
	floor, err := b.floor(ctx, c, size)
	if err != nil {
		return nil, 0, err
	}
	return []*side{resolves(s, c, schedule), resolves(floor, c, schedule)}, size, nil
}

func compareMemory(both []*side, rep *report) error {
	ours, err1 := memoryOf(processes(both[0].pid)...)
	floor, err2 := memoryOf(processes(both[1].pid)...)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	rep.add(measured("resident memory", "MiB", ours.now),
		measured("peak memory", "MiB", ours.peak).over(floorCommand, floor.peak))
	return nil
}

// latencyAtHalf asks both at half of the rate that fingerpost reaches.
func (b *bench) latencyAtHalf(ctx context.Context, both []*side, rate float64, rep *report) error {
	var turns []*turn
	for _, one := range both {
		turns = append(turns, b.turn(one.name, load{side: one, workers: b.connections, rate: rate}))
	}
	if err := b.alternate(ctx, turns...); err != nil {
		return err
	}
	rep.add(turns[0].tails(turns[1], "latency at a constant rate,")...)
	rep.note("Latencies at %.0f requests a second at random moments, on %d connections.", rate, b.connections)
	return nil
}

// sweepConnections asks at full speed over few connections and over many.
func (b *bench) sweepConnections(ctx context.Context, both []*side, rep *report) error {
	for _, connections := range sweep {
		at := *b
		at.connections, at.rounds = connections, min(sweepRounds, b.rounds)
		at.round /= 2
		b.say("%d connections", connections)
		ours, floor := at.fullSpeed(both[0]), at.fullSpeed(both[1])
		if err := at.alternate(ctx, ours, floor); err != nil {
			return err
		}
		name := func(what string) string { return fmt.Sprintf("%s on %d connections", what, connections) }
		rep.add(ours.against(floor, perSecond, name("resolve"), "requests/s"),
			ours.against(floor, "p99", name("p99"), "ms"))
	}
	return nil
}

// answerSize returns the mean length of the bodies of names.
func answerSize(s *server, c *corpus, names []uint32) (int, error) {
	cl := wire.NewClient(s.addr, wire.KeyField, c.key)
	defer cl.Close()
	total := 0
	for _, name := range names {
		a, err := cl.Must("GET", wire.ResolvePath+string(c.appendHost(nil, int(name))), nil)
		if err != nil {
			return 0, err
		}
		total += len(a.Body)
	}
	return total / len(names), nil
}
