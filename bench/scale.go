package main

import (
	"context"
	"fmt"

	"fingerpost/bench/chart"
)

const (
	// scaleAsked is how many names each size of server is asked for. The work for the processor's caches is the same, so
	// that only what grows with the number of domains can differ.
	scaleAsked = 1000
	// scalePerProject keeps the number of files low enough that a million domains start within about a minute.
	scalePerProject = 10
)

// A sized is a server with a given number of domains.
type sized struct {
	*side
	domains int
	ready   float64 // s, from the start of the process with an empty store to readiness
	atReady memory
}

// runScale compares servers that have from a thousand domains up to the largest of -sizes.
func runScale(ctx context.Context, b *bench) (*report, error) {
	var all []*sized
	for _, n := range b.sizes {
		s, err := b.startSized(ctx, n)
		if err != nil {
			return nil, err
		}
		defer s.server.stop()
		all = append(all, s)
	}
	return b.compareScales(ctx, all)
}

// startSized starts a server on an empty store.
func (b *bench) startSized(ctx context.Context, domains int) (*sized, error) {
	c, err := b.openCorpus(corpusParams{Projects: domains / scalePerProject, Domains: domains, Seed: b.corpus.Seed})
	if err != nil {
		return nil, err
	}
	empty := *b
	empty.fresh = true
	s, err := empty.fingerpost(ctx, "scale-"+c.String(), c.config, b.cacheFlags()...)
	if err != nil {
		return nil, err
	}
	b.binary = empty.binary
	mem, err := s.memory()
	if err != nil {
		s.stop()
		return nil, err
	}
	s.name = fmt.Sprintf("%d domains", domains)
	side := known(s, c, subsetSchedule(c.Domains, scaleAsked, b.load.zipf, c.Seed))
	return &sized{side: side, domains: domains, ready: s.ready.Seconds(), atReady: mem}, nil
}

func (b *bench) compareScales(ctx context.Context, all []*sized) (*report, error) {
	small, large := all[0], all[len(all)-1]
	wide := known(large.server, large.corpus, subsetSchedule(large.domains, max(1, large.domains/10), b.load.zipf, large.corpus.Seed))
	var sides []*side
	for _, s := range all {
		sides = append(sides, s.side)
	}
	sides = append(sides, wide)
	for _, s := range sides {
		if err := b.warm(ctx, s, b.load.warmUp); err != nil {
			return nil, err
		}
	}
	if err := b.interleave(ctx, sides...); err != nil {
		return nil, err
	}
	rep := &report{Parameters: b.parameters(large.corpus, map[string]any{"sizes": b.sizes.String(), "namesAsked": scaleAsked})}
	against := fmt.Sprintf("at %d domains", small.domains)
	for _, s := range all[1:] {
		name := fmt.Sprintf("the same names asked at %d domains", s.domains)
		rate := compared(name, "requests/s", s.rates, small.rates, against)
		cpu := compared(name+": server CPU", "µs/request", s.cpu, small.cpu, against)
		if s == large {
			rate, cpu = rate.ratioAtLeast(0.90), cpu.ratioAtMost(1.10)
		}
		rep.add(rate, cpu)
	}
	rep.add(
		compared(fmt.Sprintf("a tenth of %d domains asked", large.domains), "requests/s", wide.rates, small.rates, against),
		compared(fmt.Sprintf("a tenth of %d domains asked: server CPU", large.domains), "µs/request", wide.cpu, small.cpu, against),
	)
	for _, s := range all {
		rep.add(
			alone(fmt.Sprintf("start with an empty store at %d domains", s.domains), "s", s.ready),
			alone(fmt.Sprintf("resident memory when ready at %d domains", s.domains), "MiB", mib(s.atReady.now)),
		)
	}
	rep.Charts = scaleCharts(all)
	rep.note("%d domains a project, one file each. %d names are asked of each size; of the largest also a tenth of all: their bodies no longer fit "+
		"the processor's caches, whatever serves them.", scalePerProject, scaleAsked)
	return rep, nil
}

// scaleCharts show what grows with the number of domains, and what does not.
func scaleCharts(all []*sized) []chart.Chart {
	x := chart.Axis{Label: "domains", Scale: chart.Log}
	cost := chart.Chart{Name: "cost", Title: "Server CPU of a resolve against the number of domains", X: x, Y: chart.Axis{Label: "µs/request"}, Lines: []chart.Line{{Name: fmt.Sprintf("%d names asked", scaleAsked)}}}
	memory := chart.Chart{Name: "memory", Title: "Resident memory when ready against the number of domains", X: x, Y: chart.Axis{Label: "MiB"}, Lines: []chart.Line{{Name: "fingerpost"}}}
	start := chart.Chart{Name: "start", Title: "Start with an empty store against the number of domains", X: x, Y: chart.Axis{Label: "s", Scale: chart.Log}, Lines: []chart.Line{{Name: "fingerpost"}}}
	for _, s := range all {
		n := float64(s.domains)
		cost.Lines[0].Points = append(cost.Lines[0].Points, spreadOf(s.cpu).at(n))
		memory.Lines[0].Points = append(memory.Lines[0].Points, chart.Point{X: n, Y: mib(s.atReady.now)})
		start.Lines[0].Points = append(start.Lines[0].Points, chart.Point{X: n, Y: s.ready})
	}
	return []chart.Chart{cost, memory, start}
}
