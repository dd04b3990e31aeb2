package main

import (
	"context"
	"fmt"
	"strings"
)

// A field is fingerpost and the servers that it is compared with: the floor and nginx. Each list is in this order.
type field struct {
	targets []target
	turns   []*turn // at full speed
}

// runResolve compares fingerpost with the floor and nginx, in alternating rounds.
func runResolve(ctx context.Context, b *bench) (*report, error) {
	s, c, err := b.serve(ctx)
	if err != nil {
		return nil, err
	}
	schedule := zipfSchedule(c.Domains)
	size, err := answerSize(s, c, schedule[:200])
	if err != nil {
		return nil, err
	}
	f, notes, err := b.newField(ctx, s, c, schedule, size)
	if err != nil {
		return nil, err
	}
	before, err := s.cache()
	if err != nil {
		return nil, err
	}
	if err := b.alternate(ctx, f.turns...); err != nil {
		return nil, err
	}
	after, err := s.cache()
	if err != nil {
		return nil, err
	}
	ours, floor := f.turns[0], f.turns[1]
	rep := &report{Parameters: b.parameters(c, map[string]any{"bodyBytes": size})}
	rep.add(
		ours.against(floor, perSecond, "resolve", "requests/s").ratioAtLeast(0.92),
		ours.against(floor, cpuEach, "server CPU", "µs/request").ratioAtMost(1.15),
		alone("answered by the cache", "part of all", after.since(before).hitShare()),
	)
	for _, t := range f.turns[2:] {
		rep.add(
			ours.against(t, perSecond, "resolve, beside "+t.name, "requests/s").aside(),
			ours.against(t, cpuEach, "server CPU, beside "+t.name, "µs/request").aside(),
		)
	}
	if err := f.compareMemory(rep); err != nil {
		return nil, err
	}
	if err := b.latencyAtHalf(ctx, f, rep); err != nil {
		return nil, err
	}
	if err := b.sweepConnections(ctx, f, rep); err != nil {
		return nil, err
	}
	rep.note("Cache results: %v. Every answer was 200 and about the right project. "+
		"µs of CPU per request are seconds per million requests.", after.since(before))
	rep.Notes = append(rep.Notes, notes...)
	return rep, nil
}

// newField starts everything that s is compared with, with answers of a size. notes names what is left out.
func (b *bench) newField(ctx context.Context, s *server, c *corpus, schedule []uint32, size int) (
	f *field, notes []string, err error) {
	f = &field{targets: []target{known(s, c, schedule)}}
	floor, err := b.floor(ctx, c, size)
	if err != nil {
		return nil, nil, err
	}
	f.targets = append(f.targets, known(floor, c, schedule))
	b.say("warming up; a body has %d bytes", size)
	for _, t := range f.targets {
		if err := b.warm(ctx, t); err != nil {
			return nil, nil, err
		}
	}
	if t, err := b.nginx(ctx, c, size, schedule); err == nil {
		f.targets = append(f.targets, t)
	} else {
		notes = append(notes, fmt.Sprintf("nginx is left out: %v. To have it here: %s.", err, getNginx))
		b.say("%s", notes[0])
	}
	for _, t := range f.targets {
		f.turns = append(f.turns, b.fullSpeed(t.server.name, t))
	}
	return f, notes, nil
}

func (f *field) compareMemory(rep *report) error {
	ours, err := f.targets[0].server.memory()
	if err != nil {
		return err
	}
	rep.add(alone("resident memory", "MiB", ours.now))
	for i, t := range f.targets[1:] {
		theirs, err := t.server.memory()
		if err != nil {
			return err
		}
		if i == 0 {
			rep.add(comparedOnce("peak memory", "MiB", ours.peak, theirs.peak, t.server.name))
			continue
		}
		rep.add(comparedOnce("peak memory, beside "+t.server.name, "MiB", ours.peak, theirs.peak, t.server.name).aside())
	}
	return nil
}

// latencyAtHalf asks all at half of the rate that fingerpost reaches. A server that does not reach well over that rate
// is left out.
func (b *bench) latencyAtHalf(ctx context.Context, f *field, rep *report) error {
	rate := f.turns[0].median(perSecond) / 2
	var turns []*turn
	var slow []string
	for i, t := range f.targets {
		if i > 0 && f.turns[i].median(perSecond) < 1.3*rate {
			slow = append(slow, t.server.name)
			continue
		}
		turns = append(turns, b.constantRate(t.server.name, t, rate))
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
	rep.note("Latencies at %.0f requests a second at random intervals, on %d connections.", rate, b.connections)
	if len(slow) > 0 {
		rep.note("Left out of these, since they do not reach 1.3 times that rate: %s.", strings.Join(slow, ", "))
	}
	return nil
}

// sweep are the numbers of connections that are compared, sweepRounds bounds the rounds of each.
var sweep = []int{1, 16, 256}

const sweepRounds = 3

// sweepConnections asks at full speed over few connections and over many.
func (b *bench) sweepConnections(ctx context.Context, f *field, rep *report) error {
	for _, connections := range sweep {
		at := *b
		at.connections, at.rounds = connections, min(sweepRounds, b.rounds)
		at.round /= 2 // nothing here needs long rounds for CPU ticks
		var turns []*turn
		for _, t := range f.targets {
			turns = append(turns, at.fullSpeed(t.server.name, t))
		}
		b.say("%d connections", connections)
		if err := at.alternate(ctx, turns...); err != nil {
			return err
		}
		name := func(what string) string { return fmt.Sprintf("%s on %d connections", what, connections) }
		rep.add(turns[0].against(turns[1], perSecond, name("resolve"), "requests/s"),
			turns[0].against(turns[1], p99AtFullSpeed, name("p99"), "ms"))
	}
	return nil
}

// answerSize returns the mean length of the bodies of names.
func answerSize(s *server, c *corpus, names []uint32) (int, error) {
	cl := newClient(s.addr, c.key)
	defer cl.close()
	total := 0
	for _, name := range names {
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
	return total / len(names), nil
}
