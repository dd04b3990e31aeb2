package main

import (
	"fmt"
	"io"
	"slices"
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
	Ratio    *spread `json:"ratio,omitempty"`   // figure divided by baseline, round by round if there are rounds
	Goal     *goal   `json:"goal,omitempty"`
	Aside    bool    `json:"aside,omitempty"`  // for information: compare does not judge it
	Rounds   *rounds `json:"rounds,omitempty"` // the values behind the spreads
}

// rounds are the figures of a row, round by round.
type rounds struct {
	Figure   []float64 `json:"figure"`
	Baseline []float64 `json:"baseline,omitempty"`
}

// A goal bounds a row's ratio, or its figure.
type goal struct {
	OfRatio bool    `json:"ofRatio"`
	AtLeast bool    `json:"atLeast"` // else at most
	Bound   float64 `json:"bound"`
	Met     bool    `json:"met"`
	Noisy   bool    `json:"noisy,omitempty"` // the machine was too noisy for a verdict: Met means nothing
}

// once returns a figure that was measured one time.
func once(v float64) spread { return spread{Median: v, Low: v, High: v} }

// compared returns a row of interleaved rounds.
func compared(name, unit string, figures, baselines []float64, against string) row {
	base := spreadOf(baselines)
	r := row{Name: name, Unit: unit, Figure: spreadOf(figures), Baseline: &base, Against: against,
		Rounds: &rounds{Figure: figures, Baseline: baselines}}
	if !slices.Contains(baselines, 0) { // CPU time is counted in ticks: a short round may have none
		ratio := spreadOf(ratios(figures, baselines))
		r.Ratio = &ratio
	}
	return r
}

// comparedOnce returns a row of a figure and a baseline that were measured once.
func comparedOnce(name, unit string, figure, baseline float64, against string) row {
	base := once(baseline)
	r := row{Name: name, Unit: unit, Figure: once(figure), Baseline: &base, Against: against}
	if baseline != 0 {
		ratio := once(figure / baseline)
		r.Ratio = &ratio
	}
	return r
}

func alone(name, unit string, figure float64) row {
	return row{Name: name, Unit: unit, Figure: once(figure)}
}

// several returns a row of rounds without a baseline.
func several(name, unit string, figures []float64) row {
	return row{Name: name, Unit: unit, Figure: spreadOf(figures), Rounds: &rounds{Figure: figures}}
}

func (r row) ratioAtLeast(bound float64) row {
	return r.judged(goal{OfRatio: true, AtLeast: true, Bound: bound})
}

func (r row) ratioAtMost(bound float64) row { return r.judged(goal{OfRatio: true, Bound: bound}) }
func (r row) atMost(bound float64) row      { return r.judged(goal{Bound: bound}) }
func (r row) atLeast(bound float64) row     { return r.judged(goal{AtLeast: true, Bound: bound}) }

// aside excludes a row from compare: its baseline is another project's server, or its figure is in another row already.
func (r row) aside() row {
	r.Aside = true
	return r
}

// judged checks the row against a goal.
func (r row) judged(g goal) row {
	switch {
	case !g.OfRatio:
		g.Met = g.holds(r.Figure.Median)
	case r.Ratio != nil:
		g.Met = g.holds(r.Ratio.Median)
	}
	g.Noisy = r.noise() > noiseBound && !r.unanimous(g)
	r.Goal = &g
	return r
}

func (g goal) holds(v float64) bool { return g.AtLeast && v >= g.Bound || !g.AtLeast && v <= g.Bound }

// noiseBound is the largest spread of a baseline's rounds, as a share of their median. A baseline does the same work
// each time, so beyond this bound the machine is too noisy for a verdict, unless every single round has the same one.
const noiseBound = 0.25

// noise returns the spread of the baseline's rounds, as a share of their median; 0 if there are no rounds.
func (r row) noise() float64 {
	if r.Rounds == nil || r.Baseline == nil || r.Baseline.Median == 0 {
		return 0
	}
	return (r.Baseline.High - r.Baseline.Low) / r.Baseline.Median
}

// unanimous reports whether each round alone gives the same verdict on the goal.
func (r row) unanimous(g goal) bool {
	low, high := r.Figure.Low, r.Figure.High
	if g.OfRatio {
		if r.Ratio == nil {
			return true
		}
		low, high = r.Ratio.Low, r.Ratio.High
	}
	return g.holds(low) == g.holds(high)
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

func (r *report) writeText(w io.Writer) error {
	fmt.Fprintf(w, "\n%s, in %.0f s\n\n", r.Command, r.Seconds)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\tmedian (low … high)\tbaseline\tratio\tgoal\t")
	for _, row := range r.Rows {
		fmt.Fprintln(t, strings.Join(row.cells(), "\t")+"\t")
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, note := range append(r.noiseNotes(), r.Notes...) {
		fmt.Fprintf(w, "\n%s", note)
	}
	_, err := fmt.Fprintln(w)
	return err
}

// cells returns a row of a table: name and unit, figure, baseline, ratio, goal.
func (r row) cells() []string {
	base, ratio := "", ""
	if r.Baseline != nil {
		base = r.Baseline.text() + " " + r.Against
	}
	if r.Ratio != nil {
		ratio = r.Ratio.ratioText()
	}
	return []string{r.Name + ", " + r.Unit, r.Figure.text(), base, ratio, r.Goal.text()}
}

// noiseNotes names the goals without a verdict.
func (r *report) noiseNotes() (notes []string) {
	for _, row := range r.Rows {
		if row.Goal != nil && row.Goal.Noisy {
			notes = append(notes, fmt.Sprintf("Too noisy to conclude: %s. The rounds of its baseline, the same work each time, "+
				"lie %.0f %% apart (bound: %.0f %%), and some rounds meet the goal and others do not. "+
				"Repeat it on a quiet machine, or with more rounds.", row.Name, 100*row.noise(), 100*noiseBound))
		}
	}
	return notes
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

func (s spread) text() string {
	if s.Low == s.High {
		return number(s.Median)
	}
	return fmt.Sprintf("%s (%s … %s)", number(s.Median), number(s.Low), number(s.High))
}

func (s spread) ratioText() string {
	if s.Low == s.High {
		return fmt.Sprintf("%.3f", s.Median)
	}
	return fmt.Sprintf("%.3f (%.3f … %.3f)", s.Median, s.Low, s.High)
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
