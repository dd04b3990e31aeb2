package chart_test

import (
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fingerpost/api/console/chart"
)

var update = flag.Bool("update", false, "write the golden files")

var gap = math.NaN()

const step = 10 * time.Second

var end = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)

// wave is n values around a middle.
func wave(n int, middle, swing float64) (values []float64) {
	for i := range n {
		values = append(values, middle+swing*math.Sin(float64(i)/9))
	}
	return values
}

// charts are one of each kind.
var charts = map[string]*chart.Chart{
	"rate": {Title: "Resolves a second", Unit: chart.Rate, Shape: chart.Area, Step: step, End: end,
		Lines: []chart.Figure{{After: " resolves a second", None: "no calls", Values: wave(360, 26, 14)}},
		Marks: []chart.Mark{{Time: end.Add(-40 * time.Minute), Text: "generation 4: 2 projects <b>"}, {Time: end.Add(-2 * time.Hour), Text: "gone"},
			{Time: end.Add(-40*time.Minute + time.Second), Text: "generation 5"}}},
	"latency": {Title: "Time of a resolve", Unit: chart.Seconds, Log: true, Step: step, End: end, Lines: []chart.Figure{
		{Name: "p50", Before: "half of them took ", None: "no calls", Values: append(append(wave(100, 4e-6, 1e-6), gap, gap, 3e-6, gap), wave(50, 4e-6, 2e-6)...)},
		{Name: "p99", Before: "99 % took ", None: "no calls", Values: append(append(wave(100, 4e-4, 3.9e-4), gap, gap, 2e-3, gap), wave(50, 4e-4, 1e-4)...)}}},
	"share": {Title: "From the cache", Unit: chart.Share, Top: 1, Step: step, End: end,
		Lines: []chart.Figure{{After: " from the cache", None: "no calls", Values: []float64{0.5, 0.92, 0.9996, 1, gap}}}},
	"counts": {Title: "Mail", Unit: chart.Count, Shape: chart.Steps, Step: step, End: end, Lines: []chart.Figure{
		{Name: "sent", Counts: true, After: " mails sent", Values: []float64{0, 0, 3, 1, 0, 12}},
		{Name: "failed", Counts: true, After: " failed", Values: []float64{0, 0, 0, 1, 0, 0}}}},
	"empty": {Title: "Resolves a second", Unit: chart.Rate, Shape: chart.Area, Step: step, Lines: []chart.Figure{{None: "no calls"}}},
	"gaps": {Title: "Time of a resolve", Unit: chart.Seconds, Log: true, Step: step, End: end,
		Lines: []chart.Figure{{None: "no calls of resolve", Values: []float64{gap, gap, gap}}}},
	"one": {Title: "Resolves a second", Unit: chart.Rate, Shape: chart.Area, Step: step, End: end,
		Lines: []chart.Figure{{After: " resolves a second", Values: []float64{1234.5}}}},
}

// TestQuiet: values that stand alone among gaps are dots, which are seen, and those that stand together are lines.
func TestQuiet(t *testing.T) {
	hour := make([]float64, 360)
	for i := range hour {
		hour[i] = gap
	}
	hour[100], hour[200], hour[201] = 4e-6, 5e-6, 6e-6
	quiet := &chart.Chart{Unit: chart.Seconds, Log: true, Step: step, End: end, Lines: []chart.Figure{{Values: hour}}}
	if svg := string(quiet.SVG()); strings.Count(svg, "h0") != 3 || !strings.Contains(svg, `class="line line1 dots"`) || strings.Contains(svg, `class="line line1" d`) {
		t.Errorf("three values of a quiet hour: %s", svg)
	}
	quiet.Lines[0].Values = wave(360, 5e-6, 1e-6)
	if svg := string(quiet.SVG()); strings.Contains(svg, "dots") {
		t.Errorf("a busy hour has dots: %s", svg)
	}
}

func TestGolden(t *testing.T) {
	for name, c := range charts {
		golden(t, name, string(c.SVG()))
	}
}

// golden compares a drawing with the one in testdata, which a browser shows.
func golden(t *testing.T, name, svg string) {
	t.Helper()
	wellFormed(t, svg)
	file := filepath.Join("testdata", name+".svg")
	text := strings.ReplaceAll(strings.Replace(svg, "<svg ", `<svg xmlns="http://www.w3.org/2000/svg" `, 1), "><", ">\n<") + "\n"
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("%s has changed; look at it, and run go test -update:\n%s", file, text)
	}
}

// wellFormed checks that an SVG can be parsed, and has neither styles, scripts nor numbers that are none.
func wellFormed(t *testing.T, svg string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("%v in %s", err, svg)
		}
		e, is := token.(xml.StartElement)
		if !is {
			continue
		}
		if e.Name.Local == "style" || e.Name.Local == "script" {
			t.Errorf("a %s in %s", e.Name.Local, svg)
		}
		for _, a := range e.Attr {
			if a.Name.Local == "style" || strings.HasPrefix(a.Name.Local, "on") {
				t.Errorf("%s=%q in %s", a.Name.Local, a.Value, svg)
			}
			if a.Name.Local != "aria-label" && (strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") || strings.Contains(a.Value, "e+")) {
				t.Errorf("%s=%.200q", a.Name.Local, a.Value)
			}
		}
	}
}

func TestSentences(t *testing.T) {
	f := func(name, want string) {
		t.Helper()
		if got := strings.NewReplacer("\u00a0", " ", "\u202f", " ").Replace(charts[name].Sentence()); got != want {
			t.Errorf("%s: %s\nwant %s", name, got, want)
		}
	}
	f("rate", "12 to 40 resolves a second in the last hour, 37 now.")
	f("latency", "Half of them took 2 to 6 µs in the last 26 minutes, 2.5 µs now; 99 % took 10 µs to 2 ms in the last 26 minutes, 326 µs now.")
	f("share", "50 to 100 % from the cache in the last 50 seconds, none now.")
	f("counts", "16 mails sent in the last 60 seconds, 12 in the last 10 seconds; 1 failed in the last 60 seconds, 0 in the last 10 seconds.")
	f("empty", "Resolves a second: no data yet.")
	f("gaps", "No calls of resolve in the last 30 seconds.")
	f("one", "1 235 resolves a second in the last 10 seconds, 1 235 now.")
}

func TestUnits(t *testing.T) {
	f := func(u chart.Unit, v float64, want string) {
		t.Helper()
		if got := strings.NewReplacer("\u00a0", " ", "\u202f", " ").Replace(u.Text(v)); got != want {
			t.Errorf("%g is %q, want %q", v, got, want)
		}
	}
	for v, want := range map[float64]string{0: "0", 0.004: "0.004", 0.26: "0.3", 3: "3", 9.96: "10", 31.4: "31", 12345: "12 345",
		1.25e6: "1.2 million", 4e12: "4.0 trillion", 1e300: "1e+300", -1: "–", gap: "–", math.Inf(1): "–"} {
		f(chart.Rate, v, want)
	}
	for v, want := range map[float64]string{0: "0 s", 2.5e-6: "2.5 µs", 4e-4: "400 µs", 0.0123: "12 ms", 1.5: "1.5 s", 59: "59 s", 600: "10 min", 86400: "24 h"} {
		f(chart.Seconds, v, want)
	}
	for v, want := range map[float64]string{0: "0 %", 0.9996: "99.9 %", 0.29: "29 %", 1: "100 %", 0.5004: "50 %"} {
		f(chart.Share, v, want)
	}
}
