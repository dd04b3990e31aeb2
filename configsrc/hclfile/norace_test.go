//go:build !race

package hclfile

const UnderRace = false
