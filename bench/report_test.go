package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"
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
	if got := (&rounds{Figure: []float64{2, 9}, Baseline: []float64{4, 3}}).ratios(); !slices.Equal(got, []float64{0.5, 3}) {
		t.Errorf("ratios = %v", got)
	}
}

// Percentiles are by nearest rank.
func TestPercentiles(t *testing.T) {
	var l latencies
	for i := 100; i >= 1; i-- {
		l = append(l, time.Duration(i)*time.Millisecond)
	}
	f := func(part float64, want time.Duration) {
		t.Helper()
		if got := l.percentiles(part)[0]; got != want {
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

func TestServerMemory(t *testing.T) {
	m, err := (&server{pid: os.Getpid()}).memory()
	if err != nil || m.now < 1 || m.peak < m.now/2 {
		t.Errorf("%+v MiB, %v", m, err)
	}
}

func TestHitShare(t *testing.T) {
	hits, name := "90", "fingerpost_resolve_cache_total"
	s := standIn(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "# TYPE %[1]s counter\n%[1]s{result=\"hit\"} %s\n%[1]s{result=\"miss\"} 10\nother_total 5\n", name, hits)
	})
	first, err1 := metrics(s.addr)
	hits = "1.00009e+06"
	second, err2 := metrics(s.addr)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	if got := hitShare(nil, first); got != 0.9 {
		t.Errorf("share %v, want 0.9", got)
	}
	if got := hitShare(first, second); got != 1 {
		t.Errorf("share %v of what has grown, want 1", got)
	}
	if got := hitShare(first, first); got != 0 {
		t.Errorf("share of nothing: %v", got)
	}
}

func TestGoals(t *testing.T) {
	f := func(r row, met bool, text string) {
		t.Helper()
		if !r.Goal.Noisy && r.Goal.Met != met || r.Goal.text() != text {
			t.Errorf("%+v: %q", r.Goal, r.Goal.text())
		}
		rep := report{Rows: []row{measured("a", "b", 1), r}}
		if rep.missed() == met || rep.inconclusive() != r.Goal.Noisy {
			t.Errorf("missed() = %v", rep.missed())
		}
	}
	r := measured("x", "ms", 9, 8, 10).over("floor", 10, 10, 10)
	f(r.ratioAtLeast(0.9), true, "ratio ≥ 0.900: met")
	f(r.ratioAtLeast(0.92), false, "ratio ≥ 0.920: MISSED")
	f(r.ratioAtMost(0.9), true, "ratio ≤ 0.900: met")
	f(r.atMost(8.9), false, "≤ 8.900: MISSED")
	f(r.atLeast(9), true, "≥ 9: met")
	// A noisy baseline leaves no verdict, unless all rounds have the same.
	loud := measured("x", "requests/s", 90, 130, 95).over("floor", 100, 140, 100)
	noisy := loud.ratioAtLeast(0.92)
	f(noisy, true, "ratio ≥ 0.920: TOO NOISY")
	if rep := (report{Rows: []row{noisy}}); !rep.inconclusive() || rep.missed() {
		t.Errorf("inconclusive() = %v, missed() = %v", rep.inconclusive(), rep.missed())
	}
	f(loud.ratioAtLeast(0.8), true, "ratio ≥ 0.800: met")
	f(loud.ratioAtLeast(0.99), false, "ratio ≥ 0.990: MISSED")
	f(loud.atLeast(91), true, "≥ 91: TOO NOISY")
	// Without a baseline there is no ratio, and no goal on it is met.
	f(measured("x", "count", 3).over("quiet", 0).ratioAtMost(1), false, "ratio ≤ 1: MISSED")
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
