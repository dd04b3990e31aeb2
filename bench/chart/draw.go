package chart

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

const (
	width  = 8 * vg.Inch
	height = 4.2 * vg.Inch
	margin = vg.Length(6) // points
)

// SVG draws the chart as an SVG document; equal charts make equal bytes. An error of Check, or of w.
func (c *Chart) SVG(w io.Writer) error {
	p, err := c.plot()
	if err != nil {
		return err
	}
	canvas := vgsvg.New(width, height)
	c.draw(p, draw.New(canvas))
	_, err = canvas.WriteTo(w)
	return err
}

// draw puts the names of the lines next to the plot, where they cover no line.
func (c *Chart) draw(p *plot.Plot, to draw.Canvas) {
	to.SetColor(color.White)
	to.Fill(to.Rectangle.Path())
	names := p.Legend
	p.Legend = plot.NewLegend() // empty: p draws no legend itself
	names.Top, names.Padding, names.XOffs, names.YOffs = true, vg.Points(3), -margin, -vg.Points(30)
	names.ThumbnailWidth = vg.Points(18)
	beside := names.Rectangle(to).Size().X + 3*margin
	p.Draw(draw.Crop(to, margin, -beside, margin, -margin))
	names.Draw(to)
}

// colours are distinguishable with red or green blindness, on white paper (after Okabe and Ito).
var colours = []color.Color{
	color.RGBA{0x00, 0x72, 0xb2, 0xff}, color.RGBA{0xd5, 0x5e, 0x00, 0xff}, color.RGBA{0x00, 0x9e, 0x73, 0xff},
	color.RGBA{0xcc, 0x79, 0xa7, 0xff}, color.RGBA{0x56, 0xb4, 0xe9, 0xff}, color.RGBA{0xe6, 0x9f, 0x00, 0xff},
	color.RGBA{0x55, 0x55, 0x55, 0xff}, color.RGBA{0x88, 0x22, 0x55, 0xff},
}

func (c *Chart) plot() (*plot.Plot, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	p := plot.New()
	p.Title.Text = c.Title
	p.Title.Padding = vg.Points(6)
	p.BackgroundColor = color.White
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{0xe0}, color.Gray{0xe0}
	p.Add(grid)
	for i, l := range c.Lines {
		if err := addLine(p, l, i); err != nil {
			return nil, fmt.Errorf("chart %q: line %q: %w", c.Name, l.Name, err)
		}
	}
	setAxis(&p.X, c.X)
	setAxis(&p.Y, c.Y)
	return p, nil
}

// addLine draws a line with a mark at each point, and error bars at points with a spread.
func addLine(p *plot.Plot, l Line, i int) error {
	points := make(plotter.XYs, len(l.Points))
	bars := struct {
		plotter.XYs
		plotter.YErrors
	}{}
	for j, q := range l.Points {
		points[j] = plotter.XY{X: q.X, Y: q.Y}
		if q.spread() {
			bars.XYs = append(bars.XYs, points[j])
			bars.YErrors = append(bars.YErrors, struct{ Low, High float64 }{q.Y - q.Low, q.High - q.Y})
		}
	}
	if len(points) == 0 {
		return nil
	}
	line, marks, err := plotter.NewLinePoints(points)
	if err != nil {
		return err
	}
	colour := colours[i%len(colours)]
	line.Color, line.Width = colour, vg.Points(1.5)
	marks.Color, marks.Radius, marks.Shape = colour, vg.Points(2), draw.CircleGlyph{}
	if i >= len(colours) { // the colours repeat
		line.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
	}
	p.Add(line, marks)
	p.Legend.Add(l.Name, line, marks)
	if len(bars.XYs) > 0 {
		spread, err := plotter.NewYErrorBars(bars)
		if err != nil {
			return err
		}
		spread.Color = colour
		p.Add(spread)
	}
	return nil
}

// setAxis is called after the points are added, because they determine the range.
func setAxis(to *plot.Axis, a Axis) {
	to.Label.Text = a.Label
	to.Label.Padding = vg.Points(4)
	if a.Scale == Linear {
		to.Min = min(0, to.Min)
		if to.Max <= to.Min {
			to.Max = to.Min + 1
		}
		to.Tick.Marker = plot.TickerFunc(linearTicks)
		return
	}
	to.Scale = plot.LogScale{}
	if to.Max <= to.Min { // one value: a decade around it
		to.Min, to.Max = to.Min/3, to.Max*3
	}
	to.Tick.Marker = plot.TickerFunc(logTicks)
	if a.Scale == Part {
		to.Min = 1
		to.Tick.Marker = plot.TickerFunc(partTicks)
	}
}

func linearTicks(low, high float64) []plot.Tick {
	ticks := plot.DefaultTicks{}.Ticks(low, high)
	for i := range ticks {
		if ticks[i].Label != "" {
			ticks[i].Label = short(ticks[i].Value)
		}
	}
	return ticks
}

// logTicks puts a label at each power of ten, or at 1, 2 and 5 times it if there are few powers.
func logTicks(low, high float64) (ticks []plot.Tick) {
	fine := high/low < 200
	for decade := math.Pow(10, math.Floor(math.Log10(low))); decade <= high*1.0001; decade *= 10 {
		for step := 1.0; step < 10; step++ {
			v := decade * step
			if v < low*0.9999 || v > high*1.0001 {
				continue
			}
			t := plot.Tick{Value: v}
			if step == 1 || fine && (step == 2 || step == 5) {
				t.Label = short(v)
			}
			ticks = append(ticks, t)
		}
	}
	return ticks
}

func partTicks(low, high float64) (ticks []plot.Tick) {
	for _, t := range []struct {
		at    float64
		label string
	}{
		{1, "0 %"}, {2, "50 %"}, {10, "90 %"}, {100, "99 %"}, {1000, "99.9 %"}, {10_000, "99.99 %"}, {100_000, "99.999 %"},
	} {
		if t.at >= low*0.9999 && t.at <= high*1.0001 {
			ticks = append(ticks, plot.Tick{Value: t.at, Label: t.label})
		}
	}
	return ticks
}

// short writes 1,500,000 as 1.5M and 0.002 as it is.
func short(v float64) string {
	suffix := ""
	switch a := math.Abs(v); {
	case a >= 1e6:
		v, suffix = v/1e6, "M"
	case a >= 1e4:
		v, suffix = v/1e3, "k"
	}
	return strconv.FormatFloat(v, 'g', 6, 64) + suffix
}
