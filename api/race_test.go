//go:build race

package api_test

// underRace: the race detector makes the server ten times slower, so the long runs are made without it in CI.
const underRace = true
