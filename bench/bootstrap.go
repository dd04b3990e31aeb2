package main

import (
	"math/rand/v2"
	"slices"
)

// bootstrapTimes is how often the rounds are drawn anew. The seed is fixed: the same files give the same interval.
const bootstrapTimes = 10_000

// bootstrapRatio is the ratio of the medians of after and before, with the interval in which it lies with that
// confidence: rounds are drawn with replacement, and so often the ratio is taken. Of the few rounds that there are, the
// interval is rather too wide than too narrow. All values must be above 0.
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
