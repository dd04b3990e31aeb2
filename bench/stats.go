package main

import (
	"slices"

	"fingerpost/bench/chart"
)

// A spread is a median with the lowest and the highest of several rounds.
type spread struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

// spreadOf panics without values: there is no round without one.
func spreadOf(values []float64) spread {
	if len(values) == 0 {
		panic("bench: a spread of no rounds: impossible, options.check asks for one")
	}
	sorted := slices.Clone(values)
	m := median(sorted)
	return spread{Median: m, Low: sorted[0], High: sorted[len(sorted)-1]}
}

// ratios divides round by round, so that a disturbance of both sides of a round cancels out.
func ratios(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = a[i] / b[i]
	}
	return out
}

// at returns the spread as a point of a chart.
func (s spread) at(x float64) chart.Point {
	return chart.Point{X: x, Y: s.Median, Low: s.Low, High: s.High}
}
