package main

import "slices"

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

// median sorts values.
func median(values []float64) float64 {
	slices.Sort(values)
	mid := len(values) / 2
	if len(values)%2 == 0 {
		return (values[mid-1] + values[mid]) / 2
	}
	return values[mid]
}

// ratios divides round by round, so that a disturbance of both sides of a round cancels out.
func ratios(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = a[i] / b[i]
	}
	return out
}
