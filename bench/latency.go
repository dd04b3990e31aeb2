package main

import (
	"math"
	"slices"
	"time"
)

// latencies are times of operations.
type latencies []time.Duration

// percentiles returns the latencies at the given ranks (0.5, 0.99 …; 1 is the longest), by the nearest-rank method. All
// are 0 if there are no latencies. It sorts them.
func (l latencies) percentiles(parts ...float64) []time.Duration {
	out := make([]time.Duration, len(parts))
	if len(l) == 0 {
		return out
	}
	slices.Sort(l)
	for i, part := range parts {
		rank := int(math.Ceil(part * float64(len(l))))
		out[i] = l[max(1, min(rank, len(l)))-1]
	}
	return out
}

// tailParts are the percentiles in a table of latencies, and tailNames their names.
var (
	tailParts = []float64{0.5, 0.9, 0.99, 0.999, 1}
	tailNames = []string{"p50", "p90", "p99", "p99.9", "max"}
)

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
