//go:build !race

package configsrc_test

const underRace = false
