package main

import (
	"context"
	"math/rand/v2"
)

// runFlood asks for a million unknown names, between two equal phases of known ones.
func runFlood(ctx context.Context, b *bench) (*report, error) {
	s, c, err := b.serve(ctx)
	if err != nil {
		return nil, err
	}
	schedule := zipfSchedule(c.Domains, b.zipf, c.Seed)
	b.say("warming up")
	if err := b.warm(ctx, known(s, c, schedule), 2*b.warmUp); err != nil {
		return nil, err
	}
	asked := func(count int, a asker) (*loadResult, cacheCounts, memory, error) {
		l := b.closed(target{server: s, corpus: c, asker: a})
		l.count = count
		res, cache, err := l.withCache(ctx)
		if err != nil {
			return nil, nil, memory{}, err
		}
		mem, err := s.memory()
		return res, cache, mem, err
	}
	// Few enough questions that the effects of the flood are still there: the cache recovers while it is asked.
	few := min(100_000, b.warmUp)
	_, hitsBefore, memBefore, err := asked(few, &scheduled{corpus: c, schedule: schedule})
	if err != nil {
		return nil, err
	}
	b.say("%d unknown domains", b.unknown)
	flood, floodCache, memAfter, err := asked(b.unknown, &strangers{random: rand.New(rand.NewPCG(c.Seed, 0xf100d))})
	if err != nil {
		return nil, err
	}
	again, hitsAfter, _, err := asked(few, &scheduled{corpus: c, schedule: schedule})
	if err != nil {
		return nil, err
	}
	rep := &report{Parameters: b.parameters(c, map[string]any{"unknown": b.unknown})}
	rep.add(
		comparedOnce("known names answered by the cache after the flood", "part of all",
			hitsAfter.hitShare(), hitsBefore.hitShare(), "before").atLeast(hitsBefore.hitShare()-0.05),
		comparedOnce("resident memory after the flood", "MiB", memAfter.now, memBefore.now, "before").atMost(memoryBound),
		alone("peak memory", "MiB", memAfter.peak).atMost(memoryBound),
		alone("unknown names", "requests/s", flood.perSecond()),
		alone("wrong answers", "count", float64(flood.failures()+again.failures())).atMost(0),
	)
	rep.note("Cache results during the flood: %v.%s", floodCache, flood.describeFaults())
	return rep, nil
}

// memoryBound is the goal for the memory of the server, in MiB.
const memoryBound = 1.2 * 1024
