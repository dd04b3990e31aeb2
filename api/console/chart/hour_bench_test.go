package chart_test

import (
	"fmt"
	"testing"
	"time"

	"fingerpost/api/console/chart"
	"fingerpost/api/ops/history"
)

// BenchmarkHour is what the last hour costs a node with 64 edges: a sample every ten seconds, and all charts, made once
// for all who look.
func BenchmarkHour(b *testing.B) {
	s := history.Sample{Mail: new(history.Mail)}
	for i := range 64 {
		s.Edges = append(s.Edges, history.Edge{Name: fmt.Sprint("edge-", i), Lag: time.Duration(i%3) * time.Second, Ready: true})
	}
	r, now := history.New(), begun
	record := func(i int) {
		s.Resolves += uint64(i*7919%1000 + 1)
		s.Hits += uint64(i * 7919 % 1000)
		s.Durations = []history.Bucket{{Most: time.Microsecond, Count: s.Resolves / 2}, {Most: time.Millisecond, Count: s.Resolves}}
		now = now.Add(history.Step)
		r.Note(history.Generation{Number: uint64(i), Time: now, Changed: map[string][]uint64{"domain": make([]uint64, i%3)}, By: []string{"Ada"}})
		r.Record(now, s)
	}
	for i := range history.Points {
		record(i)
	}
	b.Run("sample", func(b *testing.B) {
		b.ReportAllocs()
		for i := range b.N {
			record(i)
		}
	})
	b.Run("status", func(b *testing.B) {
		var out []byte
		for range b.N {
			out = r.View().AppendJSON(out[:0])
		}
		b.ReportMetric(float64(len(out)), "bytes")
	})
	b.Run("charts", func(b *testing.B) {
		size := 0
		for range b.N {
			size = 0
			c := chart.HourOf(r.View(), false)
			for _, ch := range c.All {
				size += len(ch.SVG())
			}
			for _, l := range c.Lanes {
				size += len(l.SVG())
			}
		}
		b.ReportMetric(float64(size), "bytes")
	})
}
