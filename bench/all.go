package main

import "time"

// allCommand runs every measurement, one after the other.
const allCommand = "all"

// tuneAll sets the defaults of all, which make it take less than ten minutes on two cores.
func tuneAll(o *options) {
	o.corpus.Projects, o.corpus.Domains = 10_000, 30_000
	o.load.rounds, o.load.round = 5, time.Second
	o.saves, o.unknown = 100, 200_000
	o.logEntries, o.waiting = 20_000, 2000
	o.sweep = intList{1, 16, 256}
	o.sizes = intList{1000, 10_000, 100_000}
}
