package main

import "context"

// missAsked bounds the names that are asked: their answers fit into the cache of the server that answers from it, and
// the blocks of their records into the store's.
const missAsked = 300_000

const missStoreCache = "4GiB" // used as needed

// runMiss asks the same names of a server with hardly any cache, and of one that answers all from its cache. Both have
// read all names before the measurement, so that the store reads nothing from the disk.
func runMiss(ctx context.Context, b *bench) (*report, error) {
	c, err := b.openCorpus(b.corpus)
	if err != nil {
		return nil, err
	}
	schedule := uniformSchedule(c.Domains, c.Seed)
	schedule = schedule[:min(len(schedule), missAsked)]
	var sides []*side
	for _, kind := range []struct{ name, cache string }{{"misses", "64KiB"}, {"hits", "4GiB"}} {
		s, err := b.fingerpost(ctx, c.String()+"-"+kind.name, c.config, "--cache-size", kind.cache, "--store-cache-size", missStoreCache)
		if err != nil {
			return nil, err
		}
		defer s.stop()
		s.name = kind.name
		side := known(s, c, schedule)
		if err := b.warm(ctx, side, 2*len(schedule)); err != nil {
			return nil, err
		}
		sides = append(sides, side)
	}
	misses, hits := sides[0], sides[1]
	before, err := cachesOf(misses.server, hits.server)
	if err != nil {
		return nil, err
	}
	if err := b.interleave(ctx, misses, hits); err != nil {
		return nil, err
	}
	after, err := cachesOf(misses.server, hits.server)
	if err != nil {
		return nil, err
	}
	extra := make([]float64, len(misses.cpu))
	for i := range extra {
		extra[i] = misses.cpu[i] - hits.cpu[i]
	}
	rep := &report{Parameters: b.parameters(c, nil)}
	rep.add(
		row{Name: "CPU of a miss beyond a hit", Unit: "µs", Figure: spreadOf(extra)},
		compared("server CPU, misses", "µs/request", misses.cpu, hits.cpu, "hits").atMost(25),
		compared("misses", "requests/s", misses.rates, hits.rates, "hits").ratioAtLeast(0.3),
		comparedOnce("answered by the cache", "part of all", after[0].since(before[0]).hitShare(), after[1].since(before[1]).hitShare(), "hits"),
	)
	rep.note("%d names are asked equally often, in random order. The store's block cache has room for all of their records (--store-cache-size %s).", len(schedule), missStoreCache)
	return rep, nil
}

// cachesOf reads the counters of several servers.
func cachesOf(servers ...*server) ([]cacheCounts, error) {
	var all []cacheCounts
	for _, s := range servers {
		c, err := s.cache()
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}
