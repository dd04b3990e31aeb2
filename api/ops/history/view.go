package history

import (
	"encoding/json"
	"math"
	"strconv"
	"time"
)

// A View is the history at a moment. It belongs to the caller.
type View struct {
	Steps  int       // recorded since the start: two views with the same number have the same values
	Noted  int       // generations since the start: two views with the same number have the same marks
	End    time.Time // of the newest values; zero: there are none yet
	Names  []string
	Values [][]float64 // of each name, the oldest first; NaN: none
	Edges  []Lane
	Marks  []Mark // the oldest first
}

// A Lane is the history of an edge, the oldest first.
type Lane struct {
	Name  string
	Lag   []float64 // seconds; NaN where the edge was not known
	Ready []bool
}

// View returns the history.
func (r *Recorder) View() *View {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := min(r.steps, Points)
	v := &View{Steps: r.steps, Noted: r.noted, Names: names[:]}
	if n > 0 {
		v.End = r.at.UTC()
	}
	for i := range names {
		values := make([]float64, n)
		for k := range values {
			values[k] = float64(r.values[i][r.place(k, n)])
		}
		v.Values = append(v.Values, values)
	}
	for _, l := range r.lanes {
		shown := Lane{Name: l.name, Lag: make([]float64, n), Ready: make([]bool, n)}
		for k := range n {
			at := r.place(k, n)
			shown.Lag[k], shown.Ready[k] = float64(l.lag[at]), l.state[at] == ready
			if l.state[at] == absent {
				shown.Lag[k] = math.NaN()
			}
		}
		v.Edges = append(v.Edges, shown)
	}
	for _, m := range r.marks {
		v.Marks = append(v.Marks, m.view())
	}
	return v
}

// Progress returns what View has as Steps and Noted, without a copy of the values.
func (r *Recorder) Progress() (steps, noted int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.steps, r.noted
}

// place returns where the k-th of the newest n steps is kept.
func (r *Recorder) place(k, n int) int { return (r.steps - n + k) % Points }

// Of returns the values of a figure, nil if there is none of the name.
func (v *View) Of(name string) []float64 {
	for i, n := range v.Names {
		if n == name {
			return v.Values[i]
		}
	}
	return nil
}

// AppendJSON appends the view as a JSON object for the document /status, without the people of its marks: each list of
// values is one line, also where the document around it is indented.
func (v *View) AppendJSON(b []byte) []byte {
	b = append(b, `{"step": `...)
	b = strconv.AppendInt(b, int64(Step/time.Second), 10)
	b = append(b, `, "end": `...)
	if v.End.IsZero() {
		b = append(b, "null"...)
	} else {
		b = appendValue(b, v.End.Format(time.RFC3339))
	}
	b = append(b, ",\n    \"names\": "...)
	b = appendValue(b, v.Names)
	b = append(b, ",\n    \"values\": ["...)
	for i, values := range v.Values {
		b = append(comma(b, i), "\n      "...)
		b = appendNumbers(b, values)
	}
	b = append(b, "\n    ],\n    \"edges\": ["...)
	for i := range v.Edges {
		l := &v.Edges[i]
		b = append(comma(b, i), "\n      {\"name\": "...)
		b = append(appendValue(b, l.Name), ",\n       \"lagSeconds\": "...)
		b = append(appendNumbers(b, l.Lag), ",\n       \"ready\": "...)
		b = append(appendValue(b, l.Ready), '}')
	}
	b = append(b, "],\n    \"marks\": ["...)
	for i := range v.Marks {
		b = append(comma(b, i), "\n      "...)
		b = appendValue(b, &v.Marks[i])
	}
	return append(b, "]\n  }"...)
}

func comma(b []byte, i int) []byte {
	if i > 0 {
		return append(b, ',')
	}
	return b
}

func appendValue(b []byte, v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic("history: " + err.Error()) // texts, times and numbers have a JSON form
	}
	return append(b, text...)
}

// appendNumbers appends a list with null for what is no number.
func appendNumbers(b []byte, values []float64) []byte {
	b = append(b, '[')
	for i, v := range values {
		b = comma(b, i)
		if math.IsNaN(v) || math.IsInf(v, 0) {
			b = append(b, "null"...)
			continue
		}
		b = strconv.AppendFloat(b, v, 'g', 4, 32)
	}
	return append(b, ']')
}
