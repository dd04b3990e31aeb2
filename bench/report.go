package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// A report is the result of a command.
type report struct {
	Command    string         `json:"command"`
	Seconds    float64        `json:"seconds"` // duration of the command
	Parameters map[string]any `json:"parameters"`
	Rows       []row          `json:"rows"`
	Notes      []string       `json:"notes,omitempty"`
}

// A row is one figure with its baseline.
type row struct {
	Name     string  `json:"name"`
	Unit     string  `json:"unit"`
	Figure   spread  `json:"figure"`
	Baseline *spread `json:"baseline,omitempty"`
	Against  string  `json:"against,omitempty"` // the name of the baseline
	Ratio    *spread `json:"ratio,omitempty"`   // figure divided by baseline, round by round
	Goal     *goal   `json:"goal,omitempty"`
	Aside    bool    `json:"aside,omitempty"`  // for information: compare does not judge it
	Rounds   *rounds `json:"rounds,omitempty"` // the values behind the spreads
}

// rounds are the figures of a row, round by round.
type rounds struct {
	Figure   []float64 `json:"figure"`
	Baseline []float64 `json:"baseline,omitempty"`
}

// A spread is a median with the lowest and the highest of several rounds.
type spread struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

// spreadOf panics without values: each figure has one from every round.
func spreadOf(values []float64) spread {
	sorted := slices.Sorted(slices.Values(values))
	mid := len(sorted) / 2
	median := sorted[mid]
	if len(sorted)%2 == 0 {
		median = (sorted[mid-1] + sorted[mid]) / 2
	}
	return spread{Median: median, Low: sorted[0], High: sorted[len(sorted)-1]}
}

// measured returns a row of the figures of all rounds, or of one.
func measured(name, unit string, figures ...float64) row {
	return row{Name: name, Unit: unit, Figure: spreadOf(figures), Rounds: &rounds{Figure: figures}}
}

// over compares the row with a baseline of the same rounds.
func (r row) over(against string, baselines ...float64) row {
	base := spreadOf(baselines)
	r.Baseline, r.Against, r.Rounds.Baseline = &base, against, baselines
	if !slices.Contains(baselines, 0) {
		ratio := spreadOf(r.Rounds.ratios())
		r.Ratio = &ratio
	}
	return r
}

// ratios divides round by round, so that a disturbance of both sides of a round cancels out.
func (r *rounds) ratios() []float64 {
	out := make([]float64, len(r.Figure))
	for i := range out {
		out[i] = r.Figure[i] / r.Baseline[i]
	}
	return out
}

// aside excludes a row from compare: its figure is in another row already.
func (r row) aside() row {
	r.Aside = true
	return r
}

// A goal bounds a row's ratio, or its figure.
type goal struct {
	OfRatio bool    `json:"ofRatio"`
	AtLeast bool    `json:"atLeast"` // else at most
	Bound   float64 `json:"bound"`
	Met     bool    `json:"met"`
	Noisy   bool    `json:"noisy,omitempty"` // the machine was too noisy for a verdict: Met means nothing
}

// noiseBound is the largest spread of a baseline's rounds, as a share of their median. A baseline does the same work
// each time, so beyond this bound the machine is too noisy for a verdict, unless every single round has the same one.
const noiseBound = 0.25

func (r row) ratioAtLeast(bound float64) row {
	return r.judged(goal{OfRatio: true, AtLeast: true, Bound: bound})
}

func (r row) ratioAtMost(bound float64) row { return r.judged(goal{OfRatio: true, Bound: bound}) }
func (r row) atMost(bound float64) row      { return r.judged(goal{Bound: bound}) }
func (r row) atLeast(bound float64) row     { return r.judged(goal{AtLeast: true, Bound: bound}) }

// judged checks the row against a goal. Without a ratio no goal of it is met.
func (r row) judged(g goal) row {
	holds := func(v float64) bool { return g.AtLeast && v >= g.Bound || !g.AtLeast && v <= g.Bound }
	of := &r.Figure
	if g.OfRatio {
		of = r.Ratio
	}
	if of != nil {
		loud := r.Baseline != nil && r.Baseline.High-r.Baseline.Low > noiseBound*r.Baseline.Median
		g.Met, g.Noisy = holds(of.Median), loud && holds(of.Low) != holds(of.High)
	}
	r.Goal = &g
	return r
}

func (r *report) add(rows ...row) { r.Rows = append(r.Rows, rows...) }

func (r *report) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// missed reports whether any goal was not met.
func (r *report) missed() bool {
	return slices.ContainsFunc(r.Rows, func(w row) bool { return w.Goal != nil && !w.Goal.Met && !w.Goal.Noisy })
}

// inconclusive reports whether the machine was too noisy for a verdict on any goal.
func (r *report) inconclusive() bool {
	return slices.ContainsFunc(r.Rows, func(w row) bool { return w.Goal != nil && w.Goal.Noisy })
}

const tableHead = "| | median (low … high) | baseline | ratio | goal |\n|---|---|---|---|---|\n"

// markdown returns the row of a table: name and unit, figure, baseline, ratio, goal.
func (r row) markdown(prefix string) string {
	base, ratio := "", ""
	if r.Baseline != nil {
		base = r.Baseline.text(number) + " " + r.Against
	}
	if r.Ratio != nil {
		ratio = r.Ratio.text(func(v float64) string { return fmt.Sprintf("%.3f", v) })
	}
	cells := []string{prefix + r.Name + ", " + r.Unit, r.Figure.text(number), base, ratio, r.Goal.text()}
	return "| " + strings.Join(cells, " | ") + " |\n"
}

// markdown returns the table of a report, and its notes after those of the machine.
func (r *report) markdown(ofMachine []string) string {
	var b strings.Builder
	b.WriteString(tableHead)
	for _, row := range r.Rows {
		b.WriteString(row.markdown(""))
	}
	b.WriteString("\n")
	for _, note := range slices.Concat(ofMachine, r.Notes, []string{"Parameters: " + r.parametersText() + "."}) {
		b.WriteString("- " + note + "\n")
	}
	return b.String()
}

// align writes markdown with the columns of its tables in line, for a terminal.
func align(w io.Writer, markdown string) error {
	t := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	fmt.Fprint(t, strings.ReplaceAll(markdown, " | ", "\t| "))
	return t.Flush()
}

// parametersText lists the parameters as a person would type them. Numbers that were read from a file are float64.
func (r *report) parametersText() string {
	var text []string
	for _, name := range slices.Sorted(maps.Keys(r.Parameters)) {
		value := fmt.Sprint(r.Parameters[name])
		if v, ok := r.Parameters[name].(float64); ok {
			value = strconv.FormatFloat(v, 'f', -1, 64)
		}
		if value != "" {
			text = append(text, name+" "+value)
		}
	}
	return strings.Join(text, ", ")
}

func (g *goal) text() string {
	if g == nil {
		return ""
	}
	sign, what, verdict := "≤", "", "MISSED"
	if g.AtLeast {
		sign = "≥"
	}
	if g.OfRatio {
		what = "ratio "
	}
	switch {
	case g.Noisy:
		verdict = "TOO NOISY"
	case g.Met:
		verdict = "met"
	}
	return fmt.Sprintf("%s%s %s: %s", what, sign, number(g.Bound), verdict)
}

func (s spread) text(number func(float64) string) string {
	if s.Low == s.High {
		return number(s.Median)
	}
	return fmt.Sprintf("%s (%s … %s)", number(s.Median), number(s.Low), number(s.High))
}

// number prints three significant digits or more, never an exponent.
func number(v float64) string {
	switch {
	case v == float64(int64(v)), v >= 100, v <= -100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10, v <= -10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.3f", v)
}
