//go:build race

package main

// underRace: the race detector keeps a record for each piece of memory, so a program takes several times as much.
const underRace = true
