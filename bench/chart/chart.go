// Package chart draws the charts of bench as SVG: lines with error bars for the spread of rounds. It is the only
// package that uses the plotting library.
package chart

import (
	"errors"
	"fmt"
	"math"
	"regexp"
)

// A Chart describes a drawing. Results store it as JSON.
type Chart struct {
	Name  string `json:"name"` // part of a file's name: lower-case words with hyphens
	Title string `json:"title"`
	X     Axis   `json:"x"`
	Y     Axis   `json:"y"`
	Lines []Line `json:"lines"`
}

// An Axis has a label, with the unit, and a scale.
type Axis struct {
	Label string `json:"label"`
	Scale Scale  `json:"scale,omitempty"`
}

// A Scale says how an axis maps values.
type Scale string

const (
	// Linear begins at zero.
	Linear Scale = ""
	// Log is logarithmic to the base of ten.
	Log Scale = "log"
	// Part is Log for values 1/(1-p), where p is a share: ticks say "50 %", "99.9 %".
	Part Scale = "part"
)

// A Line has a name for the legend, and points from left to right. A line without points is not shown but uses up its
// colour, so that the other lines have the same colours in all charts.
type Line struct {
	Name   string  `json:"name"`
	Points []Point `json:"points"`
}

// A Point may have a spread: Low and High are both 0 if it has none.
type Point struct {
	X    float64 `json:"x"`
	Y    float64 `json:"y"`
	Low  float64 `json:"low,omitempty"`
	High float64 `json:"high,omitempty"`
}

func (p Point) spread() bool { return p.Low != 0 || p.High != 0 }

// name keeps a chart's files inside the folder that it is drawn into.
var name = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// Check returns every reason why the chart cannot be drawn.
func (c *Chart) Check() error {
	var errs []error
	wrong := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("chart %q: "+format, append([]any{c.Name}, args...)...))
	}
	if !name.MatchString(c.Name) {
		wrong("its name must be lower-case words with hyphens between them")
	}
	for _, a := range []Axis{c.X, c.Y} {
		if a.Scale != Linear && a.Scale != Log && a.Scale != Part {
			wrong("scale %q of the axis %q must be %q, %q or empty", a.Scale, a.Label, Log, Part)
		}
	}
	points := 0
	for _, l := range c.Lines {
		points += len(l.Points)
		for _, p := range l.Points {
			spread := !p.spread() || c.Y.Scale.holds(p.Low) && c.Y.Scale.holds(p.High)
			if !c.X.Scale.holds(p.X) || !c.Y.Scale.holds(p.Y) || !spread {
				wrong("line %q: the point %+v does not lie on the axes: finite numbers, "+
					"and above 0 on a scale other than the linear one", l.Name, p)
			}
		}
	}
	if points == 0 {
		wrong("it has no points")
	}
	return errors.Join(errs...)
}

func (s Scale) holds(v float64) bool {
	return !math.IsNaN(v) && !math.IsInf(v, 0) && (s == Linear || v > 0)
}
