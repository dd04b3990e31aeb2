package chart

import (
	"math"
	"strconv"
	"strings"
)

// A Unit says what values are.
type Unit int

// The units.
const (
	Count   Unit = iota // whole numbers
	Rate                // numbers
	Seconds             // written with the unit that fits
	Share               // from 0 to 1, written in percent
)

// Text writes a value for people, "–" where there is none.
func (u Unit) Text(v float64) string {
	switch {
	case !known(v):
		return "–"
	case u == Seconds:
		return seconds(v)
	case u == Share:
		if v >= 1 {
			return "100\u00a0%"
		}
		// Cut, not rounded: 99.96 % is not all.
		return strconv.FormatFloat(math.Floor(v*1000+1e-9)/10, 'f', -1, 64) + "\u00a0%"
	case u == Rate && v < 10:
		return short(v)
	}
	return whole(v)
}

// short writes a number below ten with one digit after the point, where that is not 0, and more of a very small one.
func short(v float64) string {
	if v > 0 && v < 0.05 {
		return strconv.FormatFloat(v, 'g', 1, 64)
	}
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
}

// whole writes a whole number in groups of three digits, a large one in words.
func whole(v float64) string {
	for _, large := range []struct {
		from float64
		word string
	}{{1e15, ""}, {1e12, "trillion"}, {1e9, "billion"}, {1e6, "million"}} {
		switch {
		case v < large.from:
		case large.word == "":
			return strconv.FormatFloat(v, 'g', 3, 64)
		default:
			return strconv.FormatFloat(v/large.from, 'f', 1, 64) + "\u00a0" + large.word
		}
	}
	text := strconv.FormatFloat(math.Round(v), 'f', 0, 64)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "\u202f" + text[i:]
	}
	return text
}

func seconds(v float64) string {
	unit, in := "h", v/3600
	switch {
	case v == 0:
		return "0\u00a0s"
	case v < 1e-3:
		unit, in = "µs", v*1e6
	case v < 1:
		unit, in = "ms", v*1e3
	case v < 120:
		unit, in = "s", v
	case v < 7200:
		unit, in = "min", v/60
	}
	if in < 9.95 {
		return short(in) + "\u00a0" + unit
	}
	return whole(in) + "\u00a0" + unit
}
