package main

import "math/rand/v2"

// scheduleLen is how many questions a schedule holds before it repeats.
const scheduleLen = 1 << 19

// zipfExponent is the exponent of the Zipf distribution of hits.
const zipfExponent = 1.01

// zipfSchedule draws names 0 … n-1, with the popular ones scattered over all of them: in order of rank, the popular
// names would all belong to the first files.
func zipfSchedule(n int) []uint32 {
	r := rand.New(rand.NewPCG(corpusSeed, 0x21bf))
	z := rand.NewZipf(r, zipfExponent, 1, uint64(n-1))
	names := scattered(n)
	schedule := make([]uint32, scheduleLen)
	for i := range schedule {
		schedule[i] = names[z.Uint64()]
	}
	return schedule
}

// uniformSchedule asks each of names 0 … n-1 equally often, in random order.
func uniformSchedule(n int) []uint32 { return scattered(n) }

// subsetSchedule is a Zipf schedule over size of the n names, spread evenly over all of them.
func subsetSchedule(n, size int) []uint32 {
	schedule := zipfSchedule(min(size, n))
	if size < n {
		for i, name := range schedule {
			schedule[i] = uint32(uint64(name) * uint64(n) / uint64(size))
		}
	}
	return schedule
}

// scattered returns a random permutation of 0 … n-1.
func scattered(n int) []uint32 {
	names := make([]uint32, n)
	for i := range names {
		names[i] = uint32(i)
	}
	r := rand.New(rand.NewPCG(corpusSeed, 0x5ca7))
	r.Shuffle(n, func(i, j int) { names[i], names[j] = names[j], names[i] })
	return names
}
