//go:build race

package configsrc_test

// underRace: the race detector makes parser and store twenty times slower, so few random writes run with it; CI runs
// them all without.
const underRace = true
