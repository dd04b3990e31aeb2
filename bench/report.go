package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// A report is what a command found.
type report struct {
	Command    string         `json:"command"`
	Machine    string         `json:"machine"`
	Parameters map[string]any `json:"parameters"`
	Rows       []row          `json:"rows"`
	Notes      []string       `json:"notes,omitempty"`
}

// A row is one figure beside its baseline.
type row struct {
	Name     string  `json:"name"`
	Unit     string  `json:"unit"`
	Figure   spread  `json:"figure"`
	Baseline *spread `json:"baseline,omitempty"`
	Against  string  `json:"against,omitempty"` // what the baseline is
	Ratio    *spread `json:"ratio,omitempty"`   // figure through baseline, round by round where there are rounds
	Goal     *goal   `json:"goal,omitempty"`
}

// A goal bounds a row's ratio, or its figure.
type goal struct {
	OfRatio bool    `json:"ofRatio"`
	AtLeast bool    `json:"atLeast"` // else at most
	Bound   float64 `json:"bound"`
	Met     bool    `json:"met"`
}

// once is a figure that was taken one time.
func once(v float64) spread { return spread{Median: v, Low: v, High: v} }

// compared is a row of interleaved rounds.
func compared(name, unit string, figures, baselines []float64, against string) row {
	base := spreadOf(baselines)
	r := row{Name: name, Unit: unit, Figure: spreadOf(figures), Baseline: &base, Against: against}
	if !slices.Contains(baselines, 0) { // CPU time has ticks: a short round may have seen none
		ratio := spreadOf(ratios(figures, baselines))
		r.Ratio = &ratio
	}
	return r
}

// beside is a row of a figure that was taken once, like its baseline.
func beside(name, unit string, figure, baseline float64, against string) row {
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

func (r row) ratioAtLeast(bound float64) row {
	r.Goal = &goal{OfRatio: true, AtLeast: true, Bound: bound, Met: r.Ratio != nil && r.Ratio.Median >= bound}
	return r
}

func (r row) ratioAtMost(bound float64) row {
	r.Goal = &goal{OfRatio: true, Bound: bound, Met: r.Ratio != nil && r.Ratio.Median <= bound}
	return r
}

func (r row) atMost(bound float64) row {
	r.Goal = &goal{Bound: bound, Met: r.Figure.Median <= bound}
	return r
}

func (r row) atLeast(bound float64) row {
	r.Goal = &goal{AtLeast: true, Bound: bound, Met: r.Figure.Median >= bound}
	return r
}

func (r *report) add(rows ...row) { r.Rows = append(r.Rows, rows...) }

func (r *report) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// missed reports whether any goal was not met.
func (r *report) missed() bool {
	for _, row := range r.Rows {
		if row.Goal != nil && !row.Goal.Met {
			return true
		}
	}
	return false
}

func (r *report) writeJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

func (r *report) writeText(w io.Writer) error {
	fmt.Fprintf(w, "\n%s on %s\n\n", r.Command, r.Machine)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\tmedian (low … high)\tbaseline\tratio\tgoal\t")
	for _, row := range r.Rows {
		base, ratio := "", ""
		if row.Baseline != nil {
			base = row.Baseline.text() + " " + row.Against
		}
		if row.Ratio != nil {
			ratio = row.Ratio.ratioText()
		}
		fmt.Fprintf(t, "%s, %s\t%s\t%s\t%s\t%s\t\n", row.Name, row.Unit, row.Figure.text(), base, ratio, row.Goal.text())
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, note := range r.Notes {
		fmt.Fprintf(w, "\n%s", note)
	}
	_, err := fmt.Fprintln(w)
	return err
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
	if g.Met {
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

// describeMachine names what the figures depend on most.
func describeMachine() string {
	cpu := ""
	if f, err := os.Open("/proc/cpuinfo"); err == nil {
		defer f.Close()
		for lines := bufio.NewScanner(f); lines.Scan() && cpu == ""; {
			if name, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
				cpu = strings.TrimSpace(value) + ", "
			}
		}
	}
	kernel := ""
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		kernel = ", Linux " + strings.TrimSpace(string(b))
	}
	return fmt.Sprintf("%s%d cores, %s%s", cpu, runtime.NumCPU(), runtime.Version(), kernel)
}

// quietLoad is a load average up to which a machine counts as idle.
const quietLoad = 0.3

// loadAverage is the number of runnable threads over the last minute, 0 where the system does not tell.
func loadAverage() float64 {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(b), " ")
	load, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0
	}
	return load
}
