package chart_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"

	"fingerpost/bench/chart"
)

func sample() chart.Chart {
	return chart.Chart{
		Name: "latency-curve", Title: "Latency",
		X: chart.Axis{Label: "part of all", Scale: chart.Part}, Y: chart.Axis{Label: "ms", Scale: chart.Log},
		Lines: []chart.Line{
			{Name: "fingerpost",
				Points: []chart.Point{{X: 1, Y: 0.02}, {X: 10, Y: 0.05, Low: 0.04, High: 0.07}, {X: 1000, Y: 2}}},
			{Name: "floor & <others>", Points: []chart.Point{{X: 1, Y: 0.015}, {X: 1000, Y: 1.5}}},
			{Name: "nothing yet"},
		},
	}
}

// A chart shows its title, the names of its lines and the ticks of its scales, and is a whole document.
func TestDraw(t *testing.T) {
	c := sample()
	var svg, again bytes.Buffer
	if err := errors.Join(c.SVG(&svg), c.SVG(&again)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(svg.Bytes(), again.Bytes()) {
		t.Error("equal charts make different SVG: each run would change the files in git")
	}
	text := ""
	for d := xml.NewDecoder(bytes.NewReader(svg.Bytes())); ; {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("the SVG is not XML: %v", err)
		}
		if chars, ok := token.(xml.CharData); ok {
			text += string(chars) + "\n"
		}
	}
	for _, want := range []string{"Latency", "fingerpost", "floor & <others>", "50 %", "99.9 %", "part of all", "ms"} {
		if !strings.Contains(text, want) {
			t.Errorf("the SVG does not show %q", want)
		}
	}
	if strings.Contains(text, "nothing yet") {
		t.Error("a line without points is in the legend")
	}
	if n := strings.Count(svg.String(), "<path"); n < 10 {
		t.Errorf("the SVG has %d paths: nothing is drawn", n)
	}
}

// Every scale takes one point, and the same value at all points.
func TestScales(t *testing.T) {
	for _, scale := range []chart.Scale{chart.Linear, chart.Log, chart.Part} {
		for _, points := range [][]chart.Point{{{X: 5, Y: 5}}, {{X: 1, Y: 3}, {X: 2, Y: 3}}, {{X: 1000, Y: 4e6}, {X: 5e6, Y: 1e-3}}} {
			c := chart.Chart{Name: "x", X: chart.Axis{Scale: scale}, Y: chart.Axis{Scale: scale},
				Lines: []chart.Line{{Name: "l", Points: points}}}
			if err := c.SVG(io.Discard); err != nil {
				t.Errorf("scale %q, %v: %v", scale, points, err)
			}
		}
	}
}

func TestCheck(t *testing.T) {
	f := func(want string, change func(c *chart.Chart)) {
		t.Helper()
		c := sample()
		change(&c)
		err := c.Check()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Check: %v, want an error with %q", err, want)
		}
		if drawn := c.SVG(io.Discard); drawn == nil || drawn.Error() != err.Error() {
			t.Errorf("SVG: %v, want %v", drawn, err)
		}
	}
	f("lower-case words", func(c *chart.Chart) { c.Name = "../x" })
	f("lower-case words", func(c *chart.Chart) { c.Name = "" })
	f(`scale "cubic"`, func(c *chart.Chart) { c.Y.Scale = "cubic" })
	f("does not lie on the axes", func(c *chart.Chart) { c.Lines[0].Points[1].Y = 0 })
	f("does not lie on the axes", func(c *chart.Chart) { c.Lines[0].Points[1].X = math.NaN() })
	f("does not lie on the axes", func(c *chart.Chart) { c.Lines[0].Points[1].Low = -1 })
	f("no points", func(c *chart.Chart) { c.Lines = nil })
}

func TestJSON(t *testing.T) {
	c := sample()
	b, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var back chart.Chart
	if err := json.Unmarshal(b, &back); err != nil || !reflect.DeepEqual(c, back) {
		t.Errorf("%v: %+v", err, back)
	}
}
