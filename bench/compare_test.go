package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fingerpost/bench/machine"
)

// sampleResult has one report with a row of rounds and a baseline, one of rounds alone and one measured once.
func sampleResult() *result {
	rate := measured("resolve", "requests/s", 95, 96, 94, 95, 97).over("floor", 100, 101, 99, 100, 102).ratioAtLeast(0.92)
	return &result{
		Format: resultFormat, Version: resultVersion, Began: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Command: "resolve",
		Source: source{Release: "v1-3-gabc", Commit: "abc"}, Machine: machine.Machine{CPU: "X", Cores: 2, Usable: 2, MemoryMiB: 4000, System: "linux/amd64"},
		Reports: []*report{{Command: "resolve", Parameters: map[string]any{"projects": 100, "rate": 5.5}, Rows: []row{
			rate,
			measured("latency", "ms", 10, 10.1, 9.9, 10, 10.2),
			measured("wrong answers", "ms", 0).atMost(0),
			measured("latency alone", "ms", 10, 10.1, 9.9).atMost(12).aside(),
		}}},
	}
}

func saved(t *testing.T, r *result) string {
	t.Helper()
	path, err := r.save(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// compareWith runs compare on the sample and on a changed one.
func compareWith(t *testing.T, code int, change func(r *result), flags ...string) (stdout, stderr string) {
	t.Helper()
	other := sampleResult()
	change(other)
	var out, errs bytes.Buffer
	args := append(append([]string{"compare"}, flags...), saved(t, sampleResult()), saved(t, other))
	if got := run(t.Context(), args, &out, &errs); got != code {
		t.Errorf("compare = %d, want %d:\n%s%s", got, code, out.String(), errs.String())
	}
	return out.String(), errs.String()
}

func says(t *testing.T, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
}

func TestCompare(t *testing.T) {
	rows := func(r *result) []row { return r.Reports[0].Rows }
	scaled := func(v []float64, by float64) []float64 {
		out := make([]float64, len(v))
		for i := range v {
			out[i] = v[i] * by
		}
		return out
	}
	out, _ := compareWith(t, 0, func(*result) {})
	says(t, out, "0 worse, 0 better, 2 without a change", "2 not judged", "for information")
	// A machine that is slower as a whole is no regression of what has a baseline.
	out, _ = compareWith(t, 0, func(r *result) {
		rows(r)[0] = measured("resolve", "requests/s", scaled(rows(r)[0].Rounds.Figure, 0.5)...).over("floor", scaled(rows(r)[0].Rounds.Baseline, 0.5)...).ratioAtLeast(0.92)
	})
	says(t, out, "0 worse")
	out, _ = compareWith(t, 1, func(r *result) {
		rows(r)[0] = measured("resolve", "requests/s", scaled(rows(r)[0].Rounds.Figure, 0.9)...).over("floor", rows(r)[0].Rounds.Baseline...).ratioAtLeast(0.92)
	})
	says(t, out, "1 worse", "resolve: resolve, requests/s", "WORSE", "× floor", "-10.00% (p=0.008 n=5)")
	// The same change of rounds that jump about is within the noise.
	compareWith(t, 0, func(r *result) {
		rows(r)[0] = measured("resolve", "requests/s", 95, 70, 99, 80, 85).over("floor", 100, 100, 100, 100, 100)
	})
	// For a latency less is better.
	out, _ = compareWith(t, 0, func(r *result) { rows(r)[1] = measured("latency", "ms", scaled(rows(r)[1].Rounds.Figure, 0.5)...) })
	says(t, out, "1 better")
	compareWith(t, 1, func(r *result) { rows(r)[1] = measured("latency", "ms", scaled(rows(r)[1].Rounds.Figure, 1.5)...) })
	// A change of less than 3 % is none, whatever its significance; three rounds are too few for any.
	compareWith(t, 0, func(r *result) { rows(r)[1] = measured("latency", "ms", scaled(rows(r)[1].Rounds.Figure, 1.028)...) })
	out, _ = compareWith(t, 0, func(r *result) { rows(r)[1] = measured("latency", "ms", 50, 51, 52) })
	says(t, out, "fewer than 5 rounds")
	// A figure that was measured once is judged by its goal.
	out, _ = compareWith(t, 1, func(r *result) { rows(r)[2] = measured("wrong answers", "ms", 3).atMost(0) })
	says(t, out, "its goal was met and is missed: ≤ 0: MISSED")
	// On another machine only ratios to a baseline count.
	out, _ = compareWith(t, 0, func(r *result) {
		r.Machine.CPU = "Y"
		rows(r)[1] = measured("latency", "ms", scaled(rows(r)[1].Rounds.Figure, 9)...)
	})
	says(t, out, "two kinds of machine", "another kind of machine, and no baseline")
	// A row for information is never a regression.
	compareWith(t, 0, func(r *result) {
		rows(r)[3] = measured("latency alone", "ms", 90, 91, 92).atMost(12).aside()
	})
}

// What cannot be compared is reported at once, with all reasons.
func TestCompareRefuses(t *testing.T) {
	lacking := func(r *result) {
		r.Reports[0].Rows = r.Reports[0].Rows[:1]
		r.Reports[0].Rows[0].Unit = "requests/min"
	}
	_, errs := compareWith(t, 2, lacking)
	says(t, errs, "no row in common")
	out, _ := compareWith(t, 0, func(r *result) { r.Reports[0].Rows = r.Reports[0].Rows[:1] })
	says(t, out, `The second lacks the row "latency", ms of resolve.`, `lacks the row "wrong answers"`, "0 worse")
	_, errs = compareWith(t, 2, func(r *result) { r.Reports[0].Parameters = map[string]any{"projects": 7} })
	says(t, errs, "resolve was other work: projects was 100 and is 7")
	_, errs = compareWith(t, 2, func(r *result) { r.Reports[0].Command = "reload" })
	says(t, errs, "no row in common")
	_, errs = compareWith(t, 2, func(r *result) { r.Version = 9 })
	says(t, errs, "has version 9 of the format, this bench reads version 1")
	_, errs = compareWith(t, 2, func(r *result) { r.Format = "else" })
	says(t, errs, "is not a result of bench")

	dir := t.TempDir()
	f := func(want string, text string) {
		t.Helper()
		path := filepath.Join(dir, "x.json")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		if code := run(t.Context(), []string{"compare", path, filepath.Join(dir, "none.json")}, &out, &errs); code != 2 {
			t.Errorf("%q: exit code %d", text, code)
		}
		says(t, errs.String(), want, "none.json")
	}
	f("is not a result of bench", "")
	f("is not a result of bench", "[]")
	f("is not a result of bench", `{"reports":[]}`)
	f("is not a result of bench", `{"format":"fingerpost-bench","version":1,"reports":7}`)
}

func TestCompareUsage(t *testing.T) {
	f := func(code int, args ...string) {
		t.Helper()
		var out, errs bytes.Buffer
		if got := run(t.Context(), append([]string{"compare"}, args...), &out, &errs); got != code || errs.Len() == 0 {
			t.Errorf("compare %q = %d, want %d: %s", args, got, code, errs.String())
		}
	}
	f(2)
	f(2, "a.json")
	f(2, "-nonsense", "a.json", "b.json")
	f(0, "-h")
}

func TestUnits(t *testing.T) {
	f := func(unit string, want int) {
		t.Helper()
		if got := higherIsBetter(unit); got != want {
			t.Errorf("higherIsBetter(%q) = %d, want %d", unit, got, want)
		}
	}
	f("requests/s", 1)
	f("part of all", 1)
	f("ms", -1)
	f("µs/request", -1)
	f("ms/write", -1)
	f("MiB", -1)
	f("furlongs", 0)
	f("furlongs/day", 0)
}
