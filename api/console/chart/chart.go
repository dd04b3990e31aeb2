package chart

import (
	"math"
	"time"
)

// A Shape is how values are drawn.
type Shape int

// The shapes.
const (
	Line  Shape = iota // joined by a line
	Area               // a line with the area below it
	Steps              // each value as wide as its step: for counts and states
)

// A Chart is one or two figures over the time before a moment.
type Chart struct {
	Title string
	Unit  Unit
	Shape Shape
	Log   bool    // the axis has a tick for each power of ten
	Top   float64 // where the axis ends; 0: by the values
	Lines []Figure
	Marks []Mark
	Step  time.Duration // between two values
	End   time.Time     // of the newest values
}

// A Figure is the values of one line, and how a sentence tells of them.
type Figure struct {
	Name          string    // on the line, where there are several
	Values        []float64 // the oldest first
	Before, After string    // a value in a sentence: "half of them took ", " resolves a second"
	One           string    // After where the value is 1; "": After
	Counts        bool      // values count what came within their step: a sentence tells the sum
	None          string    // where there is no value: "no calls of resolve"
}

// A Mark is something that happened.
type Mark struct {
	Time time.Time
	Text string
}

// known reports whether there is a value.
func known(v float64) bool { return v >= 0 && !math.IsInf(v, 1) }

// extent returns the lowest and the highest value, and how many there are.
func extent(values []float64) (low, high float64, n int) {
	low = math.Inf(1)
	for _, v := range values {
		if known(v) {
			low, high = min(low, v), max(high, v)
			n++
		}
	}
	return low, high, n
}

// steps is the number of steps that the chart has values for.
func (c *Chart) steps() (n int) {
	for i := range c.Lines {
		n = max(n, len(c.Lines[i].Values))
	}
	return n
}

// some reports whether there is a value.
func (c *Chart) some() bool {
	for i := range c.Lines {
		if _, _, n := extent(c.Lines[i].Values); n > 0 {
			return true
		}
	}
	return false
}

// spans are the lengths of the axis of time. A node that has just begun gets the shortest.
var spans = []struct {
	length time.Duration
	ticks  []int // in minutes before the end
}{
	{10 * time.Minute, []int{10, 5, 0}},
	{30 * time.Minute, []int{30, 20, 10, 0}},
	{time.Hour, []int{60, 40, 20, 0}},
}

// span returns the place in spans of the axis of time.
func span(n int, step time.Duration) int {
	for i := range spans {
		if time.Duration(n)*step <= spans[i].length {
			return i
		}
	}
	return len(spans) - 1
}
