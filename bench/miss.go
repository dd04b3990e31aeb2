package main

import "context"

// missAsked bounds the names that are asked: their answers fit into the cache of the server that answers from it, and
// the blocks of their records into the store's.
const missAsked = 300_000

const missStoreCache = "4GiB" // used as needed

// runMiss asks the same names of a server with hardly any cache, and of one that answers all from its cache. Both have
// read all names before the measurement, so that the store reads nothing from the disk.
func runMiss(ctx context.Context, b *bench) (*report, error) {
	c, err := b.openCorpus("corpus-", b.corpus)
	if err != nil {
		return nil, err
	}
	schedule := uniformSchedule(c.Domains, c.Seed)
	schedule = schedule[:min(len(schedule), missAsked)]
	var turns []*turn
	var servers []*server
	var before []cacheCounts
	for _, kind := range []struct{ name, cache string }{{"misses", "64KiB"}, {"hits", "4GiB"}} {
		s, err := b.fingerpost(ctx, c.String()+"-"+kind.name, c.config,
			"--cache-size", kind.cache, "--store-cache-size", missStoreCache)
		if err != nil {
			return nil, err
		}
		if err := b.warm(ctx, known(s, c, schedule), 2*len(schedule)); err != nil {
			return nil, err
		}
		counts, err := s.cache()
		if err != nil {
			return nil, err
		}
		servers, before = append(servers, s), append(before, counts)
		turns = append(turns, b.fullSpeed(kind.name, known(s, c, schedule)))
	}
	if err := b.alternate(ctx, turns...); err != nil {
		return nil, err
	}
	var shares []float64
	for i, s := range servers {
		after, err := s.cache()
		if err != nil {
			return nil, err
		}
		shares = append(shares, after.since(before[i]).hitShare())
	}
	misses, hits := turns[0], turns[1]
	var extra []float64
	for i, v := range misses.figures[cpuEach] {
		extra = append(extra, v-hits.figures[cpuEach][i])
	}
	rep := &report{Parameters: b.parameters(c, nil)}
	rep.add(
		row{Name: "CPU of a miss beyond a hit", Unit: "µs", Figure: spreadOf(extra)},
		misses.against(hits, cpuEach, "server CPU, misses", "µs/request").atMost(25),
		misses.against(hits, perSecond, "misses", "requests/s").ratioAtLeast(0.3),
		comparedOnce("answered by the cache", "part of all", shares[0], shares[1], "hits"),
	)
	rep.note("%d names are asked equally often, in random order. "+
		"The store's block cache has room for all of their records (--store-cache-size %s).", len(schedule), missStoreCache)
	return rep, nil
}
