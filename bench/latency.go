package main

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// latencies is an HDR histogram with three significant digits, from a nanosecond to an hour; longer values count as an
// hour. The zero value is empty. Not safe for concurrent use.
type latencies struct{ histogram *hdrhistogram.Histogram }

const (
	longestLatency = time.Hour
	latencyDigits  = 3
)

// reserve allocates what the first add would allocate: a quarter of a megabyte, which would disturb a running
// measurement.
func (l *latencies) reserve() {
	if l.histogram == nil {
		l.histogram = hdrhistogram.New(1, int64(longestLatency), latencyDigits)
	}
}

func (l *latencies) add(d time.Duration) {
	l.reserve()
	// The value is in range, so there is no error.
	_ = l.histogram.RecordValue(int64(min(max(0, d), longestLatency)))
}

// merge adds all of other.
func (l *latencies) merge(other latencies) {
	if other.histogram != nil {
		l.reserve()
		l.histogram.Merge(other.histogram)
	}
}

func (l *latencies) count() int {
	if l.histogram == nil {
		return 0
	}
	return int(l.histogram.TotalCount())
}

// percentiles returns the latencies at the given ranks (0.5, 0.99 …; 1 is the longest), by the nearest-rank method,
// within the three digits. All are 0 if there are no latencies.
func (l *latencies) percentiles(parts ...float64) []time.Duration {
	out := make([]time.Duration, len(parts))
	if l.count() == 0 {
		return out
	}
	for i, part := range parts {
		out[i] = time.Duration(l.histogram.ValueAtPercentile(100 * part))
	}
	return out
}

// tailParts are the percentiles in a table of latencies, and tailNames their names.
var (
	tailParts = []float64{0.5, 0.9, 0.99, 0.999, 1}
	tailNames = []string{"p50", "p90", "p99", "p99.9", "max"}
)
