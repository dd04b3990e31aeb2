//go:build !race

package hclfile_test

const underRace = false
