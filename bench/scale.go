package main

import (
	"context"
	"flag"
	"fmt"
)

const (
	// scaleAsked is how many names each size of server is asked for. The work for the processor's caches is the same, so
	// that only what grows with the number of domains can differ.
	scaleAsked = 1000
	// scalePerProject keeps the number of files low enough that a million domains start within about a minute.
	scalePerProject = 10
)

// scaleOptions are the flags of scale.
type scaleOptions struct{ sizes intList }

func (o *scaleOptions) register(f *flag.FlagSet) {
	f.Var(&o.sizes, "sizes", "scale: numbers of domains that are compared, each a multiple of 10")
}

func (o *scaleOptions) check() error {
	for _, n := range o.sizes {
		if n%scalePerProject != 0 || n < scaleAsked || n/scalePerProject > maxProjects {
			return fmt.Errorf("-sizes has %d, each must be a multiple of %d from %d to %d",
				n, scalePerProject, scaleAsked, maxProjects*scalePerProject)
		}
	}
	return nil
}

// runScale compares servers that have from a thousand domains up to the largest of -sizes. Each starts with an empty
// store.
func runScale(ctx context.Context, b *bench) (*report, error) {
	var turns []*turn
	var starts []row
	var c *corpus
	var s *server
	for _, n := range b.scale.sizes {
		var err error
		if c, err = b.openCorpus("corpus-", corpusParams{Projects: n / scalePerProject, Domains: n}); err != nil {
			return nil, err
		}
		name := "scale-" + c.String()
		if err := b.clearStore(name); err != nil {
			return nil, err
		}
		if s, err = b.fingerpost(ctx, name, c.config); err != nil {
			return nil, err
		}
		mem, err := s.memory()
		if err != nil {
			return nil, err
		}
		scrape, err := s.scrape()
		if err != nil {
			return nil, err
		}
		starts = append(starts,
			measured(fmt.Sprintf("a scrape of the metrics at %d domains", n), "ms", scrape.Seconds()*1000),
			measured(fmt.Sprintf("start with an empty store at %d domains", n), "s", s.ready.Seconds()),
			measured(fmt.Sprintf("resident memory when ready at %d domains", n), "MiB", mem.now))
		few := resolves(s, c, zipfSchedule(names(n, scaleAsked)))
		few.name = fmt.Sprintf("at %d domains", n)
		turns = append(turns, b.fullSpeed(few))
	}
	tenth := names(c.Domains, c.Domains/10)
	if err := b.fill(ctx, s, c, tenth); err != nil {
		return nil, err
	}
	wide := b.fullSpeed(resolves(s, c, zipfSchedule(tenth)))
	if err := b.alternate(ctx, append(turns, wide)...); err != nil {
		return nil, err
	}
	rep := &report{Parameters: b.parameters(c,
		map[string]any{"sizes": b.scale.sizes.String(), "namesAsked": scaleAsked})}
	small := turns[0]
	for i, t := range turns {
		if i == 0 {
			continue
		}
		rate := t.against(small, perSecond, "the same names asked "+t.name, "requests/s")
		cpu := t.against(small, cpuEach, "the same names asked "+t.name+": server CPU", "µs/request")
		if i == len(turns)-1 {
			rate, cpu = rate.ratioAtLeast(0.90), cpu.ratioAtMost(1.10)
		}
		rep.add(rate, cpu)
	}
	name := fmt.Sprintf("a tenth of %d domains asked", c.Domains)
	rep.add(wide.against(small, perSecond, name, "requests/s"),
		wide.against(small, cpuEach, name+": server CPU", "µs/request"))
	rep.add(starts...)
	rep.note("%d domains a project, one file each. %d names are asked of each size; of the largest also a tenth of all: "+
		"their bodies no longer fit the processor's caches, whatever serves them.", scalePerProject, scaleAsked)
	return rep, nil
}
