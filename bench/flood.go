package main

import (
	"context"
	"math/rand/v2"
)

// runFlood asks for a million unknown names, between two equal phases of known ones.
func runFlood(ctx context.Context, b *bench) (*report, error) {
	c, err := b.openCorpus(b.corpus)
	if err != nil {
		return nil, err
	}
	s, err := b.fingerpost(ctx, c.String(), c.config, b.cacheFlags()...)
	if err != nil {
		return nil, err
	}
	defer s.stop()
	return b.floodKnown(ctx, s, c)
}

func (b *bench) floodKnown(ctx context.Context, s *server, c *corpus) (*report, error) {
	schedule := zipfSchedule(c.Domains, b.load.zipf, c.Seed)
	ours := known(s, c, schedule)
	b.say("warming up")
	if err := b.warm(ctx, ours, 2*b.load.warmUp); err != nil {
		return nil, err
	}
	l := b.closed(ours)
	// Few enough questions that the effects of the flood are still there: the cache recovers while it is asked.
	l.count = min(100_000, b.load.warmUp)
	_, before, err := l.withCache(ctx, s, known(s, c, schedule).asker)
	if err != nil {
		return nil, err
	}
	memBefore, err := processMemory(s.pid)
	if err != nil {
		return nil, err
	}
	b.say("%d unknown domains", b.unknown)
	flood := l
	flood.count = b.unknown
	floodResult, floodCache, err := flood.withCache(ctx, s, &strangers{random: rand.New(rand.NewPCG(c.Seed, 0xf100d))})
	if err != nil {
		return nil, err
	}
	memAfter, err := processMemory(s.pid)
	if err != nil {
		return nil, err
	}
	again, after, err := l.withCache(ctx, s, known(s, c, schedule).asker)
	if err != nil {
		return nil, err
	}
	rep := &report{Parameters: b.parameters(c, map[string]any{"unknown": b.unknown})}
	rep.add(
		comparedOnce("known names answered by the cache after the flood", "part of all", after.hitShare(), before.hitShare(), "before").atLeast(before.hitShare()-0.05),
		comparedOnce("resident memory after the flood", "MiB", mib(memAfter.now), mib(memBefore.now), "before").atMost(1.2*1024),
		alone("peak memory", "MiB", mib(memAfter.peak)).atMost(1.2*1024),
		alone("unknown names", "requests/s", floodResult.perSecond()),
		alone("wrong answers", "count", float64(floodResult.failures()+again.failures())).atMost(0),
	)
	rep.note("Cache results during the flood: %v.%s", floodCache, floodResult.describeFaults())
	return rep, nil
}
