package main

import (
	"math/rand/v2"
	"slices"
)

// bootstrapTimes is the number of resamples. The seed is fixed, so that the same files give the same interval.
const bootstrapTimes = 10_000

// bootstrapRatio returns the ratio of the medians of after and before, with its confidence interval: rounds are
// resampled with replacement, and the ratio is computed for each resample. With few rounds the interval is too wide
// rather than too narrow. All values must be above 0.
func bootstrapRatio(before, after []float64, confidence float64) spread {
	r := rand.New(rand.NewPCG(1, 0xb007))
	drawn := make([]float64, bootstrapTimes)
	b, a := make([]float64, len(before)), make([]float64, len(after))
	for i := range drawn {
		draw(r, b, before)
		draw(r, a, after)
		drawn[i] = median(a) / median(b)
	}
	slices.Sort(drawn)
	out := int((1 - confidence) / 2 * bootstrapTimes) // on each side
	return spread{Median: spreadOf(after).Median / spreadOf(before).Median, Low: drawn[out], High: drawn[bootstrapTimes-1-out]}
}

func draw(r *rand.Rand, dst, from []float64) {
	for i := range dst {
		dst[i] = from[r.IntN(len(from))]
	}
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
