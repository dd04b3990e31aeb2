package chart

import (
	"bytes"
	"fmt"
	"html/template"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// A frame is where values are drawn, in units of the view box, which is 360 wide: on a phone about a pixel each.
type frame struct {
	left, right, top, bottom float64
	dx                       float64 // of a step
	axis
}

const (
	width      = 360
	height     = 156
	laneHeight = 34
)

// SVG draws the chart.
func (c *Chart) SVG() template.HTML {
	var b bytes.Buffer
	on := spans[span(c.steps(), c.Step)]
	f := frame{left: 56, right: width - 8, top: 26, bottom: height - 24, axis: c.axis()}
	f.dx = (f.right - f.left) / (float64(on.length) / float64(max(c.Step, time.Second)))
	open(&b, height, c.Sentence())
	if !c.some() {
		f.ticks = nil
		fmt.Fprintf(&b, `<path class="rule" d="M%s %sH%s"/>`, num(f.left), num(f.bottom), num(f.right))
	}
	for _, v := range f.ticks {
		y := num(f.y(v))
		fmt.Fprintf(&b, `<path class="rule" d="M%s %sH%s"/><text x="%s" y="%s" dy="4" text-anchor="end">%s</text>`,
			num(f.left), y, num(f.right), num(f.left-6), y, escape(c.Unit.Text(v)))
	}
	for _, minutes := range on.ticks {
		x := f.right - float64(minutes)*float64(time.Minute)/float64(max(c.Step, time.Second))*f.dx
		text, anchor := strconv.Itoa(minutes), "middle"
		switch {
		case minutes == 0:
			text, anchor = "now", "end"
		case x < f.left+20:
			text, anchor = text+"\u00a0min ago", "start"
		}
		fmt.Fprintf(&b, `<text x="%s" y="%d" text-anchor="%s">%s</text>`, num(x), height-6, anchor, text)
	}
	for i := range c.Lines {
		f.draw(&b, c.Lines[i].Values, c.Shape, i)
	}
	if c.some() {
		c.drawMarks(&b, &f)
		c.drawLegend(&b, &f)
	} else {
		fmt.Fprintf(&b, `<text x="%s" y="%s" text-anchor="middle">%s</text>`, num((f.left+f.right)/2),
			num((f.top+f.bottom)/2-8), escape(c.nothing()))
	}
	b.WriteString("</svg>")
	return template.HTML(b.String())
}

func open(b *bytes.Buffer, height int, text string) {
	fmt.Fprintf(b, `<svg class="chart" viewBox="0 0 %d %d" role="img" aria-label="%s">`, width, height, escape(text))
}

// escape returns a text for SVG. Characters that XML does not have, that are not to be seen, or that turn the direction
// of a text around, are shown as one that is seen.
func escape(text string) string {
	return template.HTMLEscapeString(strings.Map(func(r rune) rune {
		if r == 0xfffe || r == 0xffff || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Cs, unicode.Zl, unicode.Zp) {
			return unicode.ReplacementChar
		}
		return r
	}, text))
}

// num writes a coordinate.
func num(v float64) string {
	text := strconv.FormatFloat(v, 'f', 1, 64)
	if n := len(text) - 2; text[n:] == ".0" {
		return text[:n]
	}
	return text
}

func (f *frame) y(v float64) float64 { return f.bottom - f.at(v)*(f.bottom-f.top) }

// dashes tell the lines of a chart from each other.
var dashes = []string{"", "5 3", "1 3"}

// minRun is how wide a run of values is drawn as a line: on a quiet service single values stand among gaps, and lines as
// wide as their steps were not seen.
const minRun = 6

// draw draws each run of values between two gaps, as dots where a line would be too short.
func (f *frame) draw(b *bytes.Buffer, values []float64, shape Shape, nth int) {
	var line, area, dots bytes.Buffer
	for from := 0; from < len(values); {
		to := from
		for to < len(values) && known(values[to]) {
			to++
		}
		if short := float64(to-from)*f.dx < minRun && shape != Steps; short {
			for k := from; k < to; k++ {
				x := f.right - float64(len(values)-1-k)*f.dx
				fmt.Fprintf(&dots, "M%s %sh0", num(max(x, f.left)), num(f.y(values[k])))
			}
		} else if to > from {
			f.run(&line, &area, values, from, to, shape)
		}
		from = to + 1
	}
	if dots.Len() > 0 {
		fmt.Fprintf(b, `<path class="line line%d dots" d="%s"/>`, nth+1, dots.Bytes())
	}
	if line.Len() == 0 {
		return
	}
	if shape != Line && nth == 0 {
		fmt.Fprintf(b, `<path class="area" d="%s"/>`, area.Bytes())
	}
	dash := ""
	if d := dashes[nth%len(dashes)]; d != "" {
		dash = ` stroke-dasharray="` + d + `"`
	}
	fmt.Fprintf(b, `<path class="line line%d"%s d="%s"/>`, nth+1, dash, line.Bytes())
}

// run draws the values from one index to another. What lies on the line between its neighbours is left out.
func (f *frame) run(line, area *bytes.Buffer, values []float64, from, to int, shape Shape) {
	x := func(k int) float64 { return f.right - float64(len(values)-1-k)*f.dx }
	var path bytes.Buffer
	begin := x(from)
	if shape == Steps || to-from == 1 {
		begin -= f.dx // a value is as wide as its step
	}
	begin = max(begin, f.left)
	fmt.Fprintf(&path, "M%s %s", num(begin), num(f.y(values[from])))
	last := num(f.y(values[from]))
	for k := from; k < to; k++ {
		y := num(f.y(values[k]))
		switch {
		case shape == Steps && y != last:
			fmt.Fprintf(&path, "H%sV%s", num(x(k-1)), y)
		case shape != Steps && k > from && (y != last || k+1 < to && num(f.y(values[k+1])) != y):
			fmt.Fprintf(&path, "L%s %s", num(x(k)), y)
		}
		last = y
	}
	fmt.Fprintf(&path, "L%s %s", num(x(to-1)), last)
	line.Write(path.Bytes())
	area.Write(path.Bytes())
	fmt.Fprintf(area, "V%sH%sZ", num(f.bottom), num(begin))
}

// drawLegend names the lines with their last values.
func (c *Chart) drawLegend(b *bytes.Buffer, f *frame) {
	at := f.left
	for i := range c.Lines {
		l := &c.Lines[i]
		if l.Name != "" {
			dash := ""
			if d := dashes[i%len(dashes)]; d != "" {
				dash = ` stroke-dasharray="` + d + `"`
			}
			fmt.Fprintf(b, `<path class="line line%d"%s d="M%s 9H%s"/>`, i+1, dash, num(at), num(at+20))
		}
		text := "now\u00a0" + c.Unit.Text(l.last())
		x := at
		if l.Name != "" {
			text, x = l.Name+"\u00a0"+c.Unit.Text(l.last()), at+25
		}
		fmt.Fprintf(b, `<text class="last" x="%s" y="13">%s</text>`, num(x), escape(text))
		at += (f.right - f.left) / float64(len(c.Lines))
	}
}

// last is the newest value.
func (l *Figure) last() float64 {
	if n := len(l.Values); n > 0 {
		return l.Values[n-1]
	}
	return -1
}

// minGap is how far marks stand apart: of those closer to each other only the newest is drawn. Beyond maxTitles of them
// none has its text: the drawing would be large, and a pointer would hardly find one of them.
const (
	minGap    = 3
	maxTitles = 24
)

// drawMarks draws a dashed line for each mark, and a triangle at its foot.
func (c *Chart) drawMarks(b *bytes.Buffer, f *frame) {
	type drawn struct{ x, text string }
	var all []drawn
	before := f.right + 2*minGap
	for i := len(c.Marks) - 1; i >= 0; i-- {
		m := &c.Marks[i]
		ago := max(c.End.Sub(m.Time), 0)
		x := f.right - float64(ago)/float64(max(c.Step, time.Second))*f.dx
		if x >= f.left && before-x >= minGap {
			before = x
			all = append(all, drawn{num(x), m.Text})
		}
	}
	var lines, feet strings.Builder
	for _, m := range all {
		line := "M" + m.x + " " + num(f.top) + "V" + num(f.bottom)
		foot := "M" + m.x + " " + num(f.bottom) + "l-4 6h8z"
		if len(all) > maxTitles {
			lines.WriteString(line)
			feet.WriteString(foot)
			continue
		}
		fmt.Fprintf(b, `<g class="mark"><title>%s</title><path stroke-dasharray="2 2" d="%s"/><path d="%s"/></g>`,
			escape(m.text), line, foot)
	}
	if lines.Len() > 0 {
		fmt.Fprintf(b, `<g class="mark"><path stroke-dasharray="2 2" d="%s"/><path d="%s"/></g>`, lines.String(),
			feet.String())
	}
}
