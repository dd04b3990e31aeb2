package main

import "math/rand/v2"

// scheduleLen is how many questions a schedule holds before it repeats.
const scheduleLen = 1 << 19

// zipfExponent is the exponent of the Zipf distribution of hits.
const zipfExponent = 1.01

// zipfSchedule draws from names, with the popular ones scattered over all of them: in order of rank, the popular names
// would all belong to the first files.
func zipfSchedule(names []uint32) []uint32 {
	r := rand.New(rand.NewPCG(corpusSeed, 0x21bf))
	z := rand.NewZipf(r, zipfExponent, 1, uint64(len(names)-1))
	schedule := make([]uint32, scheduleLen)
	for i := range schedule {
		schedule[i] = names[z.Uint64()]
	}
	return schedule
}

// names returns size of the names 0 … n-1, spread evenly over all of them, in random order.
func names(n, size int) []uint32 {
	all := make([]uint32, size)
	for i := range all {
		all[i] = uint32(i * n / size)
	}
	r := rand.New(rand.NewPCG(corpusSeed, 0x5ca7))
	r.Shuffle(size, func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// zipf is a schedule over all names of the corpus.
func (c *corpus) zipf() []uint32 { return zipfSchedule(c.names()) }

// names returns all names of the corpus, in random order.
func (c *corpus) names() []uint32 { return names(c.Domains, c.Domains) }
