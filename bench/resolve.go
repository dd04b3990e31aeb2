package main

import (
	"context"
	"fmt"

	"fingerpost/bench/wire"
)

// sweep are the numbers of connections that are compared, sweepRounds bounds the rounds of each.
var sweep = []int{1, 16, 256}

const sweepRounds = 3

// runResolve compares fingerpost with the floor and nginx, in alternating rounds.
func runResolve(ctx context.Context, b *bench) (*report, error) {
	s, c, err := b.serve(ctx)
	if err != nil {
		return nil, err
	}
	all, notes, err := b.contenders(ctx, s, c)
	if err != nil {
		return nil, err
	}
	var turns []*turn
	for _, one := range all {
		turns = append(turns, b.fullSpeed(one))
	}
	if err := b.alternate(ctx, turns...); err != nil {
		return nil, err
	}
	ours, floor := turns[0], turns[1]
	rep := &report{Parameters: b.parameters(c, nil), Notes: notes}
	rep.add(
		ours.against(floor, perSecond, "resolve", "requests/s").ratioAtLeast(0.92),
		ours.against(floor, cpuEach, "server CPU", "µs/request").ratioAtMost(1.15),
		measured("answered by the cache", "part of all", ours.figures[hits]...),
	)
	for _, t := range turns[2:] {
		rep.add(
			ours.against(t, perSecond, "resolve, beside "+t.name, "requests/s").aside(),
			ours.against(t, cpuEach, "server CPU, beside "+t.name, "µs/request").aside(),
		)
	}
	if err := compareMemory(all, rep); err != nil {
		return nil, err
	}
	if err := b.latencyAtHalf(ctx, all, ours.median(perSecond)/2, rep); err != nil {
		return nil, err
	}
	if err := b.sweepConnections(ctx, all, rep); err != nil {
		return nil, err
	}
	rep.note("Every answer was 200 and about the right project. " +
		"µs of CPU per request are seconds per million requests.")
	return rep, nil
}

// contenders returns fingerpost, the floor and nginx, in this order, with answers of the same size. notes names what is
// left out.
func (b *bench) contenders(ctx context.Context, s *server, c *corpus) (all []*side, notes []string, err error) {
	all, size, err := b.withFloor(ctx, s, c)
	if err != nil {
		return nil, nil, err
	}
	if peer, err := b.nginx(ctx, c, size); err == nil {
		all = append(all, resolves(peer, c, c.zipf()))
	} else {
		notes = append(notes, fmt.Sprintf("nginx is left out: %v. To have it here: %s.", err, getNginx))
		b.say("%s", notes[0])
	}
	return all, append(notes, fmt.Sprintf("A body has %d bytes.", size)), nil
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

func compareMemory(all []*side, rep *report) error {
	ours, err := memoryOf(processes(all[0].pid)...)
	if err != nil {
		return err
	}
	rep.add(measured("resident memory", "MiB", ours.now))
	for i, one := range all[1:] {
		theirs, err := memoryOf(processes(one.pid)...)
		if err != nil {
			return err
		}
		r := measured("peak memory", "MiB", ours.peak).over(one.name, theirs.peak)
		if i > 0 {
			r.Name += ", beside " + one.name
			r = r.aside()
		}
		rep.add(r)
	}
	return nil
}

// latencyAtHalf asks all at half of the rate that fingerpost reaches.
func (b *bench) latencyAtHalf(ctx context.Context, all []*side, rate float64, rep *report) error {
	var turns []*turn
	for _, one := range all {
		turns = append(turns, b.turn(one.name, load{side: one, workers: b.connections, rate: rate}))
	}
	if err := b.alternate(ctx, turns...); err != nil {
		return err
	}
	for _, t := range turns[1:] {
		rows := turns[0].tails(t, "latency at a constant rate,")
		for i := range rows {
			if t.name != floorCommand {
				rows[i].Name += ", beside " + t.name
				rows[i] = rows[i].aside()
			}
		}
		rep.add(rows...)
	}
	rep.note("Latencies at %.0f requests a second at random moments, on %d connections.", rate, b.connections)
	return nil
}

// sweepConnections asks at full speed over few connections and over many.
func (b *bench) sweepConnections(ctx context.Context, all []*side, rep *report) error {
	for _, connections := range sweep {
		at := *b
		at.connections, at.rounds = connections, min(sweepRounds, b.rounds)
		at.round /= 2
		b.say("%d connections", connections)
		ours, floor := at.fullSpeed(all[0]), at.fullSpeed(all[1])
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
