package chart_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"
	"testing"
	"time"

	"fingerpost/api/console/chart"
)

func TestLane(t *testing.T) {
	lag := append(wave(100, 0, 0), gap, gap, 1.5, 3.2, 0)
	ready := make([]bool, len(lag))
	for i := range 95 {
		ready[i] = true
	}
	long := chart.Lane{Name: "fra <1>", Lag: lag, Ready: ready, Step: step}
	golden(t, "lane", string(long.SVG()))
	lane := chart.Lane{Name: "fra", Lag: []float64{0, 0, gap, 1.5, 0}, Ready: []bool{true, true, false, false, true}, Step: step}
	if got, want := strings.ReplaceAll(lane.Sentence(), "\u00a0", " "), "fra: at most 1.5 s behind in the last 50 seconds, not ready for 10 seconds of it, not known for 10 seconds of it."; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	lane.End = end
	if rows := lane.Table(); len(rows) != 1 || strings.ReplaceAll(strings.Join(rows[0].Cells, "|"), "\u00a0", " ") != "–|0 s|0 s|–|1.5 s, not ready|0 s" {
		t.Errorf("%q", rows)
	}
}

// An axis has two to five ticks in whole steps that people count in.
func TestTicks(t *testing.T) {
	for _, high := range []float64{0, 0.3, 1, 1.2, 3, 4, 5, 6, 7, 9.99, 10, 11, 47, 99, 101, 12345, 9.9e9} {
		for _, unit := range []chart.Unit{chart.Count, chart.Rate} {
			c := chart.Chart{Unit: unit, Step: step, End: end, Lines: []chart.Figure{{Values: []float64{high}}}}
			if n := strings.Count(string(c.SVG()), `class="rule"`); n < 2 || n > 5 {
				t.Errorf("up to %g there are %d ticks", high, n)
			}
		}
	}
}

// A name cannot turn a text around, and what is not to be seen is seen.
func TestHiddenCharacters(t *testing.T) {
	c := chart.Chart{Title: "a\u202eb\u200bc\r\n\u2028d", Step: step, Lines: []chart.Figure{{}}}
	if svg := string(c.SVG()); !strings.Contains(svg, "a\ufffdb\ufffdc\ufffd\ufffd\ufffdd") {
		t.Errorf("%+q", svg)
	}
}

// The table has the numbers of the chart, by minute, the newest first.
func TestTable(t *testing.T) {
	c := chart.Chart{Unit: chart.Count, Step: step, End: end}
	values := []float64{1, 2, gap, gap, gap, gap, gap, gap, 3, 4, 5, 6, 7, 8}
	rows := c.Table(chart.Figure{Values: values})
	var got []string
	for _, r := range rows {
		got = append(got, r.Time.Format("15:04:05 ")+strings.Join(r.Cells, " "))
	}
	if want := "09:59:10 3 4 5 6 7 8, 09:57:10 – – – – 1 2"; strings.Join(got, ", ") != want {
		t.Errorf("%s\nwant %s", strings.Join(got, ", "), want)
	}
	if heads := strings.Join(c.Columns(), ","); heads != "+0 s,+10 s,+20 s,+30 s,+40 s,+50 s" {
		t.Error(heads)
	}
}

func FuzzCharts(f *testing.F) {
	bytesOf := func(values ...float64) (b []byte) {
		for _, v := range values {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		}
		return b
	}
	f.Add([]byte{}, 0, false, 0.0, "")
	f.Add(bytesOf(1, gap, math.Inf(1), math.Inf(-1), math.MaxFloat64, 5e-324, -3, 0), 2, true, 0.0, `"><script>`)
	f.Add(bytesOf(0, 0, 0), 1, false, 1.0, "\x00\ufffe\xff")
	f.Fuzz(func(t *testing.T, raw []byte, kind int, log bool, top float64, text string) {
		var values []float64
		for r := bytes.NewReader(raw); len(values) < 1000; {
			var v float64
			if binary.Read(r, binary.LittleEndian, &v) != nil {
				break
			}
			values = append(values, v)
		}
		kind &= 0xffff
		c := chart.Chart{Title: text, Unit: chart.Unit(kind % 4), Shape: chart.Shape(kind / 4 % 3), Log: log, Top: top, Step: step, End: end,
			Lines: []chart.Figure{{Name: text, Values: values}, {Values: values[:len(values)/2]}},
			Marks: []chart.Mark{{Time: end, Text: text}, {Time: time.Time{}}, {Time: end.Add(1e18)}}}
		wellFormed(t, string(c.SVG()))
		c.Table(c.Lines[0])
		lane := chart.Lane{Name: text, Lag: values, Ready: []bool{true}, Step: step}
		wellFormed(t, string(lane.SVG()))
		if once, again := string(c.SVG()), string(c.SVG()); once != again {
			t.Error("it is drawn in two ways")
		}
	})
}
