//go:build race

package configsrc_test

// underRace: the race detector makes parser and store twenty times slower, so few random writes are made with it; CI makes
// them all without.
const underRace = true
