package main

import "context"

// runResolve puts fingerpost against the floor, in turns.
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

func (b *bench) againstFloor(ctx context.Context, s *server, c *corpus) (*report, error) {
	schedule := zipfSchedule(c.Domains, b.load.zipf, c.Seed)
	size, err := answerSize(s, c, schedule, 200)
	if err != nil {
		return nil, err
	}
	f, err := b.floor(ctx, c, size)
	if err != nil {
		return nil, err
	}
	defer f.stop()
	ours, floor := known(s, c, schedule), known(f, c, schedule)
	b.say("warming up; a body has %d bytes", size)
	for _, side := range []*side{ours, floor} {
		if err := b.warm(ctx, side, b.load.warmUp); err != nil {
			return nil, err
		}
	}
	before, err := s.cache()
	if err != nil {
		return nil, err
	}
	if err := b.interleave(ctx, ours, floor); err != nil {
		return nil, err
	}
	after, err := s.cache()
	if err != nil {
		return nil, err
	}
	mem, err := processMemory(s.pid)
	if err != nil {
		return nil, err
	}
	rep := &report{Parameters: b.parameters(c, map[string]any{"bodyBytes": size})}
	rep.add(
		compared("resolve", "requests/s", ours.rates, floor.rates, "floor").ratioAtLeast(0.92),
		compared("server CPU", "µs/request", ours.cpu, floor.cpu, "floor").ratioAtMost(1.15),
		alone("answered by the cache", "part of all", after.since(before).hitShare()),
		alone("resident memory", "MiB", mib(mem.now)),
	)
	rep.note("Cache results: %v. Every answer was 200 and about the right project.", after.since(before))
	return rep, nil
}

func mib(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// parameters are what a reader needs in order to repeat the run.
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
