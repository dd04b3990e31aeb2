//go:build !race

package testrig

// Race reports that the race detector is on.
const Race = false
