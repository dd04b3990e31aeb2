//go:build race

package hcledit

// UnderRace: the race detector makes parsing ten times slower and finds nothing in code that runs on one goroutine, so
// the largest inputs are left to runs without it; CI has one.
const UnderRace = true
