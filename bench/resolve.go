package main

import (
	"context"
	"fmt"
	"strings"
)

// A contender is a server that resolve compares: fingerpost, the floor, nginx, in this order in every list.
type contender struct {
	*side
	server *server
}

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
		turns = append(turns, b.fullSpeed(one.side))
	}
	before, err := s.metrics()
	if err != nil {
		return nil, err
	}
	if err := b.alternate(ctx, turns...); err != nil {
		return nil, err
	}
	after, err := s.metrics()
	if err != nil {
		return nil, err
	}
	ours, floor := turns[0], turns[1]
	rep := &report{Parameters: b.parameters(c, nil), Notes: notes}
	rep.add(
		ours.against(floor, perSecond, "resolve", "requests/s").ratioAtLeast(0.92),
		ours.against(floor, cpuEach, "server CPU", "µs/request").ratioAtMost(1.15),
		measured("answered by the cache", "part of all", hitShare(before, after)),
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
	if err := b.latencyAtHalf(ctx, all, turns, rep); err != nil {
		return nil, err
	}
	if err := b.sweepConnections(ctx, all, rep); err != nil {
		return nil, err
	}
	rep.note("Every answer was 200 and about the right project. " +
		"µs of CPU per request are seconds per million requests.")
	return rep, nil
}

// contenders starts everything that s is compared with, with answers of the same size. notes names what is left out.
func (b *bench) contenders(ctx context.Context, s *server, c *corpus) (all []contender, notes []string, err error) {
	schedule := c.zipf()
	size, err := answerSize(s, c, schedule[:200])
	if err != nil {
		return nil, nil, err
	}
	if err := b.fill(ctx, s, c, c.names()); err != nil {
		return nil, nil, err
	}
	floor, err := b.floor(ctx, c, size)
	if err != nil {
		return nil, nil, err
	}
	servers := []*server{s, floor}
	if peer, err := b.nginx(ctx, c, size); err == nil {
		servers = append(servers, peer)
	} else {
		notes = append(notes, fmt.Sprintf("nginx is left out: %v. To have it here: %s.", err, getNginx))
		b.say("%s", notes[0])
	}
	for _, one := range servers {
		all = append(all, contender{resolves(one, c, schedule), one})
	}
	return all, append(notes, fmt.Sprintf("A body has %d bytes.", size)), nil
}

func compareMemory(all []contender, rep *report) error {
	ours, err := all[0].server.memory()
	if err != nil {
		return err
	}
	rep.add(measured("resident memory", "MiB", ours.now))
	for i, one := range all[1:] {
		theirs, err := one.server.memory()
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

// latencyAtHalf asks all at half of the rate that fingerpost reaches. A server that does not reach well over that rate
// is left out.
func (b *bench) latencyAtHalf(ctx context.Context, all []contender, full []*turn, rep *report) error {
	rate := full[0].median(perSecond) / 2
	var turns []*turn
	var slow []string
	for i, one := range all {
		if i > 0 && full[i].median(perSecond) < 1.3*rate {
			slow = append(slow, one.name)
			continue
		}
		turns = append(turns, b.turn(one.name, load{side: one.side, workers: b.connections, rate: rate}))
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
	if len(slow) > 0 {
		rep.note("Left out of these, since they do not reach 1.3 times that rate: %s.", strings.Join(slow, ", "))
	}
	return nil
}

// sweepConnections asks at full speed over few connections and over many.
func (b *bench) sweepConnections(ctx context.Context, all []contender, rep *report) error {
	for _, connections := range sweep {
		at := *b
		at.connections, at.rounds = connections, min(sweepRounds, b.rounds)
		at.round /= 2
		b.say("%d connections", connections)
		ours, floor := at.fullSpeed(all[0].side), at.fullSpeed(all[1].side)
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
