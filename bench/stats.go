package main

import (
	"slices"
	"time"
)

// A spread is a median with the lowest and the highest of several rounds.
type spread struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

// spreadOf panics on no values: there is no round without one.
func spreadOf(values []float64) spread {
	if len(values) == 0 {
		panic("bench: a spread of no rounds: impossible, options.check asks for one")
	}
	sorted := slices.Sorted(slices.Values(values))
	mid := len(sorted) / 2
	median := sorted[mid]
	if len(sorted)%2 == 0 {
		median = (sorted[mid-1] + sorted[mid]) / 2
	}
	return spread{Median: median, Low: sorted[0], High: sorted[len(sorted)-1]}
}

// ratios divides round by round, so that what disturbs both sides of a round cancels out.
func ratios(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = a[i] / b[i]
	}
	return out
}

// percentiles returns the latencies below which the given parts lie (0.5, 0.99 …), by the nearest-rank rule.
func (l *latencies) percentiles(parts ...float64) []time.Duration {
	out := make([]time.Duration, len(parts))
	if len(l.micros) == 0 {
		return out
	}
	slices.Sort(l.micros)
	for i, part := range parts {
		rank := int(float64(len(l.micros))*part + 0.999999)
		out[i] = time.Duration(l.micros[min(max(rank, 1), len(l.micros))-1]) * time.Microsecond
	}
	return out
}
