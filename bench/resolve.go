package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"fingerpost/bench/chart"
)

// runResolve compares fingerpost with the baselines and the installed peers, in alternating rounds.
func runResolve(ctx context.Context, b *bench) (*report, error) {
	c, err := b.openCorpus(b.corpus)
	if err != nil {
		return nil, err
	}
	s, err := b.fingerpost(ctx, c.String(), c.config, b.cacheFlags()...)
	if err != nil {
		return nil, err
	}
	defer s.stop()
	return b.againstFloor(ctx, s, c)
}

// A field is fingerpost and the servers that it is compared with.
type field struct {
	ours, floor *side
	bare        []*side // the other baselines
	peers       []*side
	notes       []string
	stop        func()
}

// all returns every side, fingerpost first.
func (f *field) all() []*side {
	return slices.Concat([]*side{f.ours, f.floor}, f.bare, f.peers)
}

// newField starts everything that s is compared with.
func (b *bench) newField(ctx context.Context, s *server, c *corpus, size int) (f *field, err error) {
	schedule := zipfSchedule(c.Domains, b.load.zipf, c.Seed)
	var started []*server
	f = &field{ours: known(s, c, schedule)}
	f.stop = func() {
		for _, s := range started {
			s.stop()
		}
	}
	defer func() {
		if err != nil {
			f.stop()
		}
	}()
	for _, kind := range []string{kindFloor, kindConstant, kindNetHTTP} {
		base, err := b.baseline(ctx, kind, c, size)
		if err != nil {
			return nil, err
		}
		started = append(started, base)
		side := known(base, c, schedule)
		switch kind {
		case kindFloor:
			f.floor = side
			continue
		case kindConstant:
			side.asker = &always{scheduled: scheduled{corpus: c, schedule: schedule}, slug: c.slugs[0]}
		}
		f.bare = append(f.bare, side)
	}
	b.say("warming up; a body has %d bytes", size)
	for _, side := range f.all() {
		if err := b.warm(ctx, side, b.load.warmUp); err != nil {
			return nil, err
		}
	}
	if b.peers {
		var stopPeers func()
		f.peers, f.notes, stopPeers = b.peerSides(ctx, c, size, schedule)
		stopBare := f.stop
		f.stop = func() {
			stopPeers()
			stopBare()
		}
	}
	return f, nil
}

func (b *bench) againstFloor(ctx context.Context, s *server, c *corpus) (*report, error) {
	size, err := answerSize(s, c, zipfSchedule(c.Domains, b.load.zipf, c.Seed), 200)
	if err != nil {
		return nil, err
	}
	f, err := b.newField(ctx, s, c, size)
	if err != nil {
		return nil, err
	}
	defer f.stop()
	before, err := s.cache()
	if err != nil {
		return nil, err
	}
	again, err := b.conditionalSide(ctx, f.ours, zipfSchedule(c.Domains, b.load.zipf, c.Seed))
	if err != nil {
		return nil, err
	}
	if err := b.interleave(ctx, append(f.all(), again)...); err != nil {
		return nil, err
	}
	after, err := s.cache()
	if err != nil {
		return nil, err
	}
	ours, floor := f.ours, f.floor
	rep := &report{Parameters: b.parameters(c, map[string]any{"bodyBytes": size, "sweep": b.sweep.String()})}
	rep.add(
		compared("resolve", "requests/s", ours.rates, floor.rates, floor.server.name).ratioAtLeast(0.92),
		compared("server CPU", "µs/request", ours.cpu, floor.cpu, floor.server.name).ratioAtMost(1.15),
		alone("answered by the cache", "part of all", after.since(before).hitShare()),
		compared("resolve of what has not changed (304)", "requests/s", again.rates, ours.rates, "answers in full").ratioAtLeast(1),
		compared("server CPU of a 304", "µs/request", again.cpu, ours.cpu, "answers in full"),
	)
	if err := rep.addField(f); err != nil {
		return nil, err
	}
	if err := b.latencyAtHalf(ctx, f, rep); err != nil {
		return nil, err
	}
	if err := b.sweepConnections(ctx, f, rep); err != nil {
		return nil, err
	}
	rep.note("Cache results: %v. Every answer was 200 and about the right project. µs of CPU per request are seconds per million requests.", after.since(before))
	rep.Notes = append(rep.Notes, f.notes...)
	return rep, nil
}

// addField adds the rows against all other servers, and those of memory.
func (r *report) addField(f *field) error {
	for _, s := range slices.Concat(f.bare, f.peers) {
		r.add(
			compared("resolve, beside "+s.server.name, "requests/s", f.ours.rates, s.rates, s.server.name).aside(),
			compared("server CPU, beside "+s.server.name, "µs/request", f.ours.cpu, s.cpu, s.server.name).aside(),
		)
	}
	ours, err := f.ours.server.memory()
	if err != nil {
		return err
	}
	r.add(alone("resident memory", "MiB", mib(ours.now)))
	for _, s := range f.all()[1:] {
		theirs, err := s.server.memory()
		if err != nil {
			return err
		}
		w := comparedOnce("peak memory, beside "+s.server.name, "MiB", mib(ours.peak), mib(theirs.peak), s.server.name).aside()
		if s == f.floor {
			w.Name, w.Aside = "peak memory", false
		}
		r.add(w)
	}
	return nil
}

// latencyAtHalf asks all at half of the rate that fingerpost reaches. A server that does not reach well over that rate
// is left out.
func (b *bench) latencyAtHalf(ctx context.Context, f *field, rep *report) error {
	rate := b.load.rate
	if rate == 0 {
		rate = spreadOf(f.ours.rates).Median / 2
	}
	var sides []*side
	var slow []string
	for _, s := range f.all() {
		if s != f.ours && spreadOf(s.rates).Median < 1.3*rate {
			slow = append(slow, s.server.name)
			continue
		}
		sides = append(sides, s)
	}
	if err := b.interleaveAt(ctx, rate, sides...); err != nil {
		return err
	}
	curves := chart.Chart{Name: "latency", Title: fmt.Sprintf("Latency of resolve at %.0f requests a second, counted from when each was due", rate),
		X: chart.Axis{Label: "part of all requests", Scale: chart.Part}, Y: chart.Axis{Label: "ms", Scale: chart.Log}}
	for _, s := range f.all() {
		line := chart.Line{Name: s.server.name} // without points if left out, so that the colours stay the same
		if slices.Contains(sides, s) {
			line.Points = s.paced.all.curve()
		}
		curves.Lines = append(curves.Lines, line)
	}
	for _, s := range sides {
		if s != f.ours {
			rows := f.ours.paced.comparedWith("latency at a constant rate,", &s.paced, s.server.name)
			for i := range rows {
				if s != f.floor {
					rows[i].Name += ", beside " + s.server.name
					rows[i] = rows[i].aside()
				}
			}
			rep.add(rows...)
		}
	}
	rep.Charts = append(rep.Charts, curves)
	rep.note("Latencies at %.0f requests a second at random intervals, on %d connections.", rate, b.load.connections)
	if len(slow) > 0 {
		rep.note("Left out of these, since they do not reach 1.3 times that rate: %s.", strings.Join(slow, ", "))
	}
	return nil
}

// sweepRounds bounds the rounds of each number of connections.
const sweepRounds = 3

// sweepConnections asks at full speed over few connections and over many.
func (b *bench) sweepConnections(ctx context.Context, f *field, rep *report) error {
	rates := chart.Chart{Name: "throughput", Title: "Throughput of resolve against connections",
		X: chart.Axis{Label: "connections", Scale: chart.Log}, Y: chart.Axis{Label: "requests/s"}}
	p99 := chart.Chart{Name: "p99", Title: "p99 of resolve against connections, as fast as answers come",
		X: rates.X, Y: chart.Axis{Label: "ms", Scale: chart.Log}}
	sides := f.all()
	for _, s := range sides {
		rates.Lines = append(rates.Lines, chart.Line{Name: s.server.name})
		p99.Lines = append(p99.Lines, chart.Line{Name: s.server.name})
	}
	for _, connections := range b.sweep {
		at := *b
		at.load.connections, at.load.rounds = connections, min(sweepRounds, b.load.rounds)
		at.load.round /= 2 // nothing here needs long rounds for CPU ticks
		fresh := make([]*side, len(sides))
		for i, s := range sides {
			fresh[i] = &side{server: s.server, corpus: s.corpus, asker: s.asker, protocol: s.protocol}
		}
		b.say("%d connections", connections)
		if err := at.interleave(ctx, fresh...); err != nil {
			return err
		}
		for i, s := range fresh {
			x := float64(connections)
			rates.Lines[i].Points = append(rates.Lines[i].Points, spreadOf(s.rates).at(x))
			p99.Lines[i].Points = append(p99.Lines[i].Points, spreadOf(s.p99).at(x))
		}
		name := func(what string) string { return fmt.Sprintf("%s on %d connections", what, connections) }
		rep.add(
			compared(name("resolve"), "requests/s", fresh[0].rates, fresh[1].rates, fresh[1].server.name),
			compared(name("p99"), "ms", fresh[0].p99, fresh[1].p99, fresh[1].server.name),
		)
	}
	rep.Charts = append(rep.Charts, rates, p99)
	return nil
}

func mib(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// parameters returns what a reader needs in order to repeat the run.
func (b *bench) parameters(c *corpus, more map[string]any) map[string]any {
	p := map[string]any{
		"projects": c.Projects, "domains": c.Domains, "seed": c.Seed, "connections": b.load.connections, "rounds": b.load.rounds,
		"round": b.load.round.String(), "zipf": b.load.zipf, "cacheSize": b.cacheSize,
	}
	for k, v := range more {
		p[k] = v
	}
	return p
}
