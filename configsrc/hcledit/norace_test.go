//go:build !race

package hcledit

const UnderRace = false
