package main

import "context"

// scaleAsked is how many names are asked on both sizes of server: the same work for the processor's caches, so that
// only what grows with the number of domains can differ.
const scaleAsked = 1000

// runScale compares a server that knows 1,000 domains with one that knows 1,000,000 (ten a project, so that it starts
// within a minute or so).
func runScale(ctx context.Context, b *bench) (*report, error) {
	small := corpusParams{Projects: 100, Domains: scaleAsked, Seed: b.corpus.Seed}
	large := corpusParams{Projects: b.corpus.Projects, Domains: 10 * b.corpus.Projects, Seed: b.corpus.Seed}
	var sides []*side
	for _, p := range []corpusParams{small, large} {
		c, err := b.openCorpus(p)
		if err != nil {
			return nil, err
		}
		s, err := b.fingerpost(ctx, c.String(), c.config, b.cacheFlags()...)
		if err != nil {
			return nil, err
		}
		defer s.stop()
		side := known(s, c, subsetSchedule(c.Domains, scaleAsked, b.load.zipf, c.Seed))
		sides = append(sides, side)
	}
	wide := known(sides[1].server, sides[1].corpus, subsetSchedule(large.Domains, large.Domains/10, b.load.zipf, large.Seed))
	sides = append(sides, wide)
	for _, s := range sides {
		if err := b.warm(ctx, s, b.load.warmUp); err != nil {
			return nil, err
		}
	}
	if err := b.interleave(ctx, sides...); err != nil {
		return nil, err
	}
	rep := &report{Parameters: b.parameters(sides[1].corpus, map[string]any{"smallDomains": small.Domains, "namesAsked": scaleAsked})}
	rep.add(
		compared("the same number of names asked of a large set", "requests/s", sides[1].rates, sides[0].rates, "at 1,000 domains").ratioAtLeast(0.90),
		compared("its server CPU", "µs/request", sides[1].cpu, sides[0].cpu, "at 1,000 domains").ratioAtMost(1.10),
		compared("a tenth of the large set asked", "requests/s", wide.rates, sides[0].rates, "at 1,000 domains"),
		compared("its server CPU", "µs/request", wide.cpu, sides[0].cpu, "at 1,000 domains"),
	)
	rep.note("The large set has %d domains. The last two rows ask many more names: their bodies no longer fit the processor's caches, whatever serves them.", large.Domains)
	return rep, nil
}
