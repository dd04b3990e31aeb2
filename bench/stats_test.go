package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"fingerpost/bench/chart"
)

func TestSpread(t *testing.T) {
	f := func(want spread, values ...float64) {
		t.Helper()
		if got := spreadOf(values); got != want {
			t.Errorf("spreadOf(%v) = %+v, want %+v", values, got, want)
		}
	}
	f(spread{3, 3, 3}, 3)
	f(spread{2, 1, 9}, 9, 1, 2)
	f(spread{2.5, 1, 4}, 4, 1, 2, 3)
	if got := ratios([]float64{2, 9}, []float64{4, 3}); !slices.Equal(got, []float64{0.5, 3}) {
		t.Errorf("ratios = %v", got)
	}
}

// Percentiles are exact within three digits.
func TestPercentiles(t *testing.T) {
	var l latencies
	for i := 100; i >= 1; i-- {
		l.add(time.Duration(i) * time.Millisecond)
	}
	f := func(part float64, want time.Duration) {
		t.Helper()
		if got := l.percentiles(part)[0]; (got - want).Abs() > want/1000 {
			t.Errorf("percentile %v = %v, want %v", part, got, want)
		}
	}
	f(0, time.Millisecond)
	f(0.5, 50*time.Millisecond)
	f(0.99, 99*time.Millisecond)
	f(0.999, 100*time.Millisecond)
	f(1, 100*time.Millisecond)
	if got := new(latencies).percentiles(0.5); !slices.Equal(got, []time.Duration{0}) {
		t.Errorf("percentiles of nothing = %v", got)
	}
	var all latencies
	all.merge(latencies{}) // of nothing
	all.merge(l)
	all.merge(l)
	if all.count() != 200 || all.percentiles(0.5)[0] != l.percentiles(0.5)[0] {
		t.Errorf("merged twice: %d, %v", all.count(), all.percentiles(0.5))
	}
	all = latencies{}
	all.add(-time.Second)
	all.add(100 * time.Hour)
	if got := all.percentiles(0, 1); all.count() != 2 || got[0] != 0 || got[1].Truncate(time.Minute) != longestLatency {
		t.Errorf("percentiles = %v of %d", got, all.count())
	}
}

// A curve goes as far as its number bears, and always upwards.
func TestCurve(t *testing.T) {
	var l latencies
	for i := range 3000 {
		l.add(time.Duration(i) * time.Microsecond)
	}
	points := l.curve()
	last := points[len(points)-1]
	if points[0].X != 1 || points[0].Y != 1e-3 || last.X != 1000 || last.Y < 2.99 || last.Y > 3 {
		t.Errorf("from %+v to %+v", points[0], last)
	}
	if !slices.IsSortedFunc(points, func(a, b chart.Point) int { return cmp.Or(cmp.Compare(a.X, b.X), cmp.Compare(a.Y, b.Y)) }) {
		t.Errorf("not ascending: %v", points)
	}
	if got := new(latencies).curve(); len(got) != 1 {
		t.Errorf("the curve of nothing: %v", got)
	}
}

func TestParseStat(t *testing.T) {
	const rest = " S 1 2 3 4 5 6 7 8 9 10 1234 66 14 15 20 0 9 0 99 1 2"
	for _, name := range []string{"(fingerpost)", "(a b) c)", "(:) S 1 1)"} {
		if got, err := parseStat([]byte("77 " + name + rest)); err != nil || got != 13*time.Second {
			t.Errorf("%s: %v, %v; want 13s", name, got, err)
		}
	}
	for _, bad := range []string{"", "77 (x) S 1", "77 x" + rest, "77 (x) S 1 2 3 4 5 6 7 8 9 10 x 66", "77 (x)" + strings.Replace(rest, "66", "-", 1)} {
		if got, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("%q: %v; want an error", bad, got)
		}
	}
}

// A process that works uses about as much CPU time as passes, and the kernel says so.
func TestProcessCPU(t *testing.T) {
	before, err := processCPU(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	var after time.Duration
	for began := time.Now(); after-before < 50*time.Millisecond; {
		if after, err = processCPU(os.Getpid()); err != nil {
			t.Fatal(err)
		}
		if time.Since(began) > 30*time.Second {
			t.Fatalf("CPU time went from %v to %v in %v of work", before, after, time.Since(began))
		}
	}
	if _, err := processCPU(-1); err == nil {
		t.Error("no error for a process that is not there")
	}
}

func TestProcessMemory(t *testing.T) {
	m, err := processMemory(os.Getpid())
	if err != nil || m.now < 1<<20 || m.peak < m.now/2 {
		t.Errorf("%+v, %v", m, err)
	}
	got, err := parseStatus([]byte("Name:\tx\nVmPeak:\t  99 kB\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\nThreads:\t4\n"))
	if err != nil || got != (memory{now: 1 << 20, peak: 2 << 20}) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{"", "VmRSS:\t1 kB\n", "VmHWM:\t1 MB\nVmRSS:\t1 kB\n", "VmHWM:\tx kB\nVmRSS:\t1 kB\n"} {
		if got, err := parseStatus([]byte(bad)); err == nil {
			t.Errorf("%q: %+v; want an error", bad, got)
		}
	}
}

func TestCacheCounts(t *testing.T) {
	text := "# HELP fingerpost_resolve_cache_total x\n# TYPE fingerpost_resolve_cache_total counter\n" +
		"fingerpost_resolve_cache_total{result=\"hit\"} %s\nfingerpost_resolve_cache_total{result=\"miss\"} 10\nother_total 5\n"
	read := func(hits string) cacheCounts {
		t.Helper()
		c, err := readCacheCounts(strings.NewReader(fmt.Sprintf(text, hits)))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first, second := read("90"), read("1.00009e+06")
	if got := first.hitShare(); got != 0.9 {
		t.Errorf("share %v, want 0.9", got)
	}
	if got := second.since(first); got["hit"] != 1_000_000 || got["miss"] != 0 || got.hitShare() != 1 {
		t.Errorf("grown by %v", got)
	}
	if got := (cacheCounts{}).hitShare(); got != 0 {
		t.Errorf("share of nothing: %v", got)
	}
	if _, err := readCacheCounts(strings.NewReader(cacheMetric + "hit\"} many\n")); err == nil {
		t.Error("no error for a bad value")
	}
}

func TestScanAddresses(t *testing.T) {
	f := func(output, addr, ops string) {
		t.Helper()
		found := make(chan [2]string, 1)
		scanAddresses(strings.NewReader(output), found)
		if got := <-found; got != [2]string{addr, ops} {
			t.Errorf("%q: %q", output, got)
		}
	}
	f("fingerpost 1\nlistening on http://127.0.0.1:4\nops on http://127.0.0.1:5\nloaded\nlistening on http://127.0.0.1:9\n", "127.0.0.1:4", "http://127.0.0.1:5")
	f("ops on http://127.0.0.1:5\nlistening on http://127.0.0.1:4", "127.0.0.1:4", "http://127.0.0.1:5")
	f(floorGreeting+"127.0.0.1:6\n", "127.0.0.1:6", "")
	f("listening on http://127.0.0.1:4\n", "", "")
	f("no such thing\n", "", "")
}

func TestGoals(t *testing.T) {
	f := func(r row, met bool, text string) {
		t.Helper()
		if !r.Goal.Noisy && r.Goal.Met != met || r.Goal.text() != text {
			t.Errorf("%+v: %q", r.Goal, r.Goal.text())
		}
		rep := report{Rows: []row{alone("a", "b", 1), r}}
		if rep.missed() == met || rep.inconclusive() != r.Goal.Noisy {
			t.Errorf("missed() = %v", rep.missed())
		}
	}
	r := compared("x", "ms", []float64{9, 8, 10}, []float64{10, 10, 10}, "floor")
	f(r.ratioAtLeast(0.9), true, "ratio ≥ 0.900: met")
	f(r.ratioAtLeast(0.92), false, "ratio ≥ 0.920: MISSED")
	f(r.ratioAtMost(0.9), true, "ratio ≤ 0.900: met")
	f(r.atMost(8.9), false, "≤ 8.900: MISSED")
	f(r.atLeast(9), true, "≥ 9: met")
	// A noisy baseline leaves no verdict, unless all rounds have the same.
	loud := compared("x", "requests/s", []float64{90, 130, 95}, []float64{100, 140, 100}, "floor")
	noisy := loud.ratioAtLeast(0.92)
	f(noisy, true, "ratio ≥ 0.920: TOO NOISY")
	if rep := (report{Rows: []row{noisy}}); !rep.inconclusive() || !strings.Contains(strings.Join(rep.noiseNotes(), ""), "lie 40 % apart (bound: 25 %)") {
		t.Errorf("inconclusive() = %v, notes %q", rep.inconclusive(), rep.noiseNotes())
	}
	f(loud.ratioAtLeast(0.8), true, "ratio ≥ 0.800: met")
	f(loud.ratioAtLeast(0.99), false, "ratio ≥ 0.990: MISSED")
	f(loud.atLeast(91), true, "≥ 91: TOO NOISY")
	// Without a baseline there is no ratio, and no goal on it is met.
	f(comparedOnce("x", "count", 3, 0, "quiet").ratioAtMost(1), false, "ratio ≤ 1: MISSED")
}

func TestNumber(t *testing.T) {
	f := func(v float64, want string) {
		t.Helper()
		if got := number(v); got != want {
			t.Errorf("number(%v) = %q, want %q", v, got, want)
		}
	}
	f(0, "0")
	f(7, "7")
	f(0.12345, "0.123")
	f(12.345, "12.3")
	f(123456.7, "123457")
	f(-12.345, "-12.3")
}
