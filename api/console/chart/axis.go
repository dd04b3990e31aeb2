package chart

import "math"

// An axis maps values to heights.
type axis struct {
	low, high float64 // of the axis; of a logarithmic one, exponents of ten
	log       bool
	ticks     []float64
}

// The bounds of what is drawn: sums and products of values stay finite.
const smallest, largest = 1e-9, 1e18

// axis returns the axis for the values of the chart.
func (c *Chart) axis() axis {
	low, high := math.Inf(1), c.Top
	for i := range c.Lines {
		l, h, n := extent(c.Lines[i].Values)
		if n > 0 && c.Top == 0 {
			low, high = min(low, l), max(high, h)
		}
	}
	if c.Log {
		return logAxis(low, high)
	}
	return linearAxis(high, c.Unit)
}

// linearAxis has two to five ticks at 1, 2 or 5 times a power of ten.
func linearAxis(high float64, u Unit) axis {
	if high = min(high, largest); !(high > smallest) {
		high = 1
	}
	step := math.Pow(10, math.Floor(math.Log10(high)))
	for _, part := range []float64{0.2, 0.5, 1, 2, 5} {
		if high/(step*part) <= 4 {
			step *= part
			break
		}
	}
	if u == Count {
		step = max(step, 1)
	}
	n := math.Ceil(high/step - 1e-9)
	a := axis{high: step * n}
	for i := range int(n) + 1 {
		a.ticks = append(a.ticks, float64(i)*step)
	}
	return a
}

// logAxis has two to six ticks at powers of ten.
func logAxis(low, high float64) axis {
	if !(low <= high) || high <= 0 {
		low, high = 1e-6, 1e-3
	}
	exponent := func(v float64) float64 { return math.Log10(min(max(v, smallest), largest)) }
	a := axis{log: true, low: math.Floor(exponent(low)), high: math.Ceil(exponent(high))}
	if a.high <= a.low {
		a.high = a.low + 1
	}
	step := math.Ceil((a.high - a.low) / 5)
	for e := a.low; e <= a.high; e += step {
		a.ticks = append(a.ticks, math.Pow(10, e))
	}
	return a
}

// at returns the height of a value, from 0 to 1.
func (a *axis) at(v float64) float64 {
	if v = min(v, largest); a.log {
		v = math.Log10(max(v, smallest))
	}
	return min(max((v-a.low)/(a.high-a.low), 0), 1)
}
