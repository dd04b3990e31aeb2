package chart

import (
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Sentence says what the chart shows: "12 to 40 resolves a second in the last hour, 31 now."
func (c *Chart) Sentence() string {
	n := c.steps()
	if n == 0 {
		return c.Title + ": " + c.nothing() + "."
	}
	var parts []string
	for i := range c.Lines {
		if part := c.tell(&c.Lines[i], period(n, c.Step)); !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	text := strings.Join(parts, "; ")
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:] + "."
}

// nothing says why nothing is drawn.
func (c *Chart) nothing() string {
	if n := c.steps(); n > 0 && c.Lines[0].None != "" {
		return c.Lines[0].None + " in " + period(n, c.Step)
	}
	return "no data yet"
}

// tell says in words what one line shows.
func (c *Chart) tell(l *Figure, when string) string {
	low, high, n := extent(l.Values)
	last := "none now"
	if v := l.last(); known(v) {
		last = c.Unit.Text(v) + " now"
	}
	lowText, highText := c.Unit.Text(low), c.Unit.Text(high)
	switch {
	case n == 0:
		return l.None + " in " + when
	case l.Counts:
		sum := 0.0
		for _, v := range l.Values {
			if known(v) {
				sum += v
			}
		}
		text := l.say(c.Unit.Text(sum)) + " in " + when
		if v := l.last(); sum > 0 && known(v) {
			text += ", " + c.Unit.Text(v) + " in the last " + length(c.Step)
		}
		return text
	case lowText == highText:
		return l.say(highText) + " in " + when + ", " + last
	}
	return l.say(shared(lowText, highText)+" to "+highText) + " in " + when + ", " + last
}

// say puts a value into words.
func (l *Figure) say(value string) string {
	if value == "1" && l.One != "" {
		return l.Before + value + l.One
	}
	return l.Before + value + l.After
}

// shared leaves the unit out of a text where the next one has the same: "12 to 40 µs".
func shared(text, next string) string {
	number, unit, has := strings.Cut(text, "\u00a0")
	if _, same, _ := strings.Cut(next, "\u00a0"); has && unit == same {
		return number
	}
	return text
}

// period names the time that has values: "the last 12 minutes".
func period(n int, step time.Duration) string {
	return "the last " + strings.TrimPrefix(length(time.Duration(n)*step), "1 ")
}

// length names a time: "10 seconds", "1 hour".
func length(d time.Duration) string {
	count := func(n int, unit string) string {
		if n == 1 {
			return "1 " + unit
		}
		return fmt.Sprintf("%d %ss", n, unit)
	}
	switch {
	case d < 2*time.Minute:
		return count(int(d/time.Second), "second")
	case d < time.Hour-30*time.Second:
		return count(int((d+30*time.Second)/time.Minute), "minute")
	}
	return "1 hour"
}

// A Row is the values of a minute in the table behind a chart.
type Row struct {
	Time  time.Time // of the first value
	Cells []string
}

// HTML returns the cells of the row. An hour has thousands of them, which took a template a third of the page's time.
func (r Row) HTML() template.HTML {
	var b strings.Builder
	for _, text := range r.Cells {
		b.WriteString("<td>" + escape(text) + "</td>")
	}
	return template.HTML(b.String())
}

// Columns are the heads of the cells of a row.
func (c *Chart) Columns() (heads []string) {
	for i := range c.perRow() {
		heads = append(heads, fmt.Sprintf("+%d s", i*int(c.Step/time.Second)))
	}
	return heads
}

func (c *Chart) perRow() int { return max(int(time.Minute/max(c.Step, time.Second)), 1) }

// Table returns the values of a line, the newest minute first. Minutes without a value are left out.
func (c *Chart) Table(l Figure) []Row {
	return c.rows(len(l.Values), func(k int) (string, bool) { return c.Unit.Text(l.Values[k]), known(l.Values[k]) })
}

// rows has the texts of n values in rows of a minute.
func (c *Chart) rows(n int, cell func(k int) (text string, known bool)) (rows []Row) {
	width := c.perRow()
	for end := n; end > 0; end -= width {
		row := Row{Time: c.End.Add(-time.Duration(n-end+width-1) * c.Step), Cells: make([]string, width)}
		some := false
		for i := range width {
			row.Cells[i] = "–"
			if k := end - width + i; k >= 0 {
				text, is := cell(k)
				row.Cells[i], some = text, some || is
			}
		}
		if some {
			rows = append(rows, row)
		}
	}
	return rows
}
