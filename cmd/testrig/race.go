//go:build race

package testrig

// Race reports that the race detector is on. It makes programs ten times slower and several times as large, makes
// sync.Pool drop items at random, and finds nothing in code that runs on one goroutine.
const Race = true
