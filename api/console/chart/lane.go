package chart

import (
	"bytes"
	"fmt"
	"html/template"
	"time"
)

// A Lane is how far behind something was, in seconds, and whether it was ready.
type Lane struct {
	Name  string
	Lag   []float64 // the oldest first
	Ready []bool
	Step  time.Duration
	End   time.Time // of the newest values
}

// chart has the table.
func (l *Lane) chart() *Chart {
	return &Chart{Title: l.Name, Unit: Seconds, Step: l.Step, End: l.End}
}

// Columns returns the heads of the cells of Table.
func (l *Lane) Columns() []string { return l.chart().Columns() }

// Table returns how far behind it was, the newest minute first, and where it was not ready. Minutes in which it had
// everything are left out.
func (l *Lane) Table() []Row {
	c := l.chart()
	return c.rows(len(l.Lag), func(k int) (string, bool) {
		text, down := c.Unit.Text(l.Lag[k]), l.state(k) == "down"
		if down {
			text += ", not ready"
		}
		return text, down || l.Lag[k] > 0
	})
}

// SVG draws the lane: the lag as an area, below it a thin line while it was ready and a thick one while it was not.
func (l *Lane) SVG() template.HTML {
	var b bytes.Buffer
	open(&b, laneHeight, l.Sentence())
	on := spans[span(len(l.Lag), l.Step)]
	_, high, _ := extent(l.Lag)
	f := frame{left: 0, right: width, top: 2, bottom: laneHeight - 8, axis: linearAxis(max(high, 1), Seconds)}
	f.dx = width / (float64(on.length) / float64(max(l.Step, time.Second)))
	fmt.Fprintf(&b, `<path class="rule" d="M0 %sH%d"/>`, num(f.bottom), width)
	f.draw(&b, l.Lag, Steps, 0)
	for from := 0; from < len(l.Lag); {
		to := from + 1
		for to < len(l.Lag) && l.state(to) == l.state(from) {
			to++
		}
		x := func(k int) string { return num(max(f.right-float64(len(l.Lag)-k)*f.dx, 0)) }
		if class := l.state(from); class != "" {
			fmt.Fprintf(&b, `<path class="%s" d="M%s %dH%s"/>`, class, x(from), laneHeight-4, x(to))
		}
		from = to
	}
	b.WriteString("</svg>")
	return template.HTML(b.String())
}

// state is the class of a step: "" where nothing is known.
func (l *Lane) state(k int) string {
	switch {
	case !known(l.Lag[k]):
		return ""
	case k < len(l.Ready) && l.Ready[k]:
		return "ready"
	}
	return "down"
}

// Sentence says what the lane shows: "at most 3.2 s behind in the last hour, not ready for 2 minutes of it".
func (l *Lane) Sentence() string {
	_, high, n := extent(l.Lag)
	if n == 0 {
		return l.Name + ": not seen."
	}
	down := 0
	for k := range l.Lag {
		if l.state(k) == "down" {
			down++
		}
	}
	text := l.Name + ": "
	if high == 0 {
		text += "never behind in " + period(len(l.Lag), l.Step)
	} else {
		text += "at most " + Seconds.Text(high) + " behind in " + period(len(l.Lag), l.Step)
	}
	if down > 0 {
		text += ", not ready for " + length(time.Duration(down)*l.Step) + " of it"
	}
	if n < len(l.Lag) {
		text += ", not known for " + length(time.Duration(len(l.Lag)-n)*l.Step) + " of it"
	}
	return text + "."
}
