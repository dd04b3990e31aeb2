//go:build race

package store_test

// underRace: the race detector makes sync.Pool drop items at random, so allocations cannot be counted.
const underRace = true
