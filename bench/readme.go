package main

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A section of the README is written by report: everything between its markers.
type section struct{ begin, end string }

var (
	figuresSection = section{"<!-- figures: go -C bench run . report -->\n", "<!-- end of figures -->"}
	historySection = section{"<!-- history: go -C bench run . report -->\n", "<!-- end of history -->"}
)

// replace puts text between the markers. Each must occur once, in order.
func (s section) replace(in []byte, text string) ([]byte, error) {
	begin, end := []byte(s.begin), []byte(s.end)
	if bytes.Count(in, begin) != 1 || bytes.Count(in, end) != 1 || bytes.Index(in, end) < bytes.Index(in, begin) {
		return nil, fmt.Errorf("it must have the line %q once, and %q once below it", strings.TrimSpace(s.begin), s.end)
	}
	head, rest, _ := bytes.Cut(in, begin)
	_, tail, _ := bytes.Cut(rest, end)
	return slices.Concat(head, begin, []byte(text), end, tail), nil
}

// into writes figures and history into a README.
func (w *writeUp) into(path string) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text, err1 := figuresSection.replace(old, w.figures())
	if err1 != nil {
		text = old // to report the errors of both
	}
	text, err2 := historySection.replace(text, w.history())
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if bytes.Equal(text, old) {
		return nil
	}
	return saveByRename(path, text)
}

const noResults = "\nThere are no results yet: `go -C bench run . all`, then `go -C bench run . report`.\n\n"

const tableHead = "\n| | median (low … high) | baseline | ratio | goal |\n|---|---|---|---|---|\n"

// figures returns an overview of the goals of all commands, then each command with all rows.
func (w *writeUp) figures() string {
	names := w.reported()
	if len(names) == 0 {
		return noResults
	}
	var b strings.Builder
	b.WriteString(tableHead)
	for _, name := range names {
		_, rep := w.latest(name)
		for _, row := range rep.Rows {
			if row.Goal != nil {
				b.WriteString(row.markdown(name + ": "))
			}
		}
	}
	for _, name := range names {
		r, rep := w.latest(name)
		fmt.Fprintf(&b, "\n### %s\n\n%s, %s, on %s.\n\n", name, r.Began.Format(time.DateOnly), r.Source, r.Machine)
		b.WriteString("<details><summary>All figures</summary>\n" + tableHead)
		for _, row := range rep.Rows {
			b.WriteString(row.markdown(""))
		}
		b.WriteString("\n")
		for _, note := range slices.Concat(r.Machine.warnings(), rep.noiseNotes(), rep.Notes) {
			fmt.Fprintf(&b, "- %s\n", note)
		}
		fmt.Fprintf(&b, "- Parameters: %s.\n\n</details>\n", rep.parametersText())
	}
	b.WriteString("\n")
	return b.String()
}

// markdown returns the row of a table.
func (r row) markdown(prefix string) string {
	return "| " + prefix + strings.Join(r.cells(), " | ") + " |\n"
}

func (r *report) parametersText() string {
	var text []string
	for _, name := range slices.Sorted(maps.Keys(r.Parameters)) {
		if v := parameterText(r.Parameters[name]); v != "" {
			text = append(text, name+" "+v)
		}
	}
	return strings.Join(text, ", ")
}

// parameterText returns a parameter as a person would type it. Numbers that were read from a file are float64.
func parameterText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return fmt.Sprint(v)
}

// A column of the history is one figure of one command. Of several rows whose names end in suffix the last counts: that
// of most clients.
type column struct {
	title, command, suffix string
	ratio                  bool // the ratio to the baseline instead of the figure
}

// historyColumns are the figures in the history of releases.
func historyColumns() []column {
	return []column{
		{"resolve, requests/s", "resolve", "resolve", false},
		{"resolve, of the floor", "resolve", "resolve", true},
		{"server CPU, of the floor's", "resolve", "server CPU", true},
		{"p99 at half load, of the floor's", "resolve", "latency at a constant rate, p99", true},
		{"save → visible, p99, ms", "reload", "write and rename: save → visible, p99", false},
		{"durable writes at once, of the bare program", "write", " at once: durable writes", true},
		{"mails, of the bare mailer", "mail", " clients: raw sends", true},
		{"start with an empty store, s", "start", "start with an empty store", false},
		{"peak memory with a full cache, MiB", "start", "full cache: peak memory", false},
	}
}

// A release holds all results of one state of the source on one machine.
type release struct {
	date                      time.Time
	source, machine, projects string
	cells                     []string
}

// history has a line for each state of the source, machine and size. The newest of several results counts.
func (w *writeUp) history() string {
	columns := historyColumns()
	var releases []*release
	for _, r := range w.results {
		source, machine := r.Source.String(), r.Machine.String()
		for _, rep := range r.Reports {
			projects := parameterText(rep.Parameters["projects"]) // mail's projects are no part of the size
			for i, c := range columns {
				text := c.cell(rep)
				if text == "" {
					continue
				}
				at := slices.IndexFunc(releases, func(o *release) bool {
					return o.source == source && o.machine == machine && (projects == "" || o.projects == projects)
				})
				if at < 0 {
					at = len(releases)
					releases = append(releases, &release{source: source, machine: machine, projects: projects,
						cells: make([]string, len(columns))})
				}
				releases[at].date, releases[at].cells[i] = r.Began, text
			}
		}
	}
	if len(releases) == 0 {
		return noResults
	}
	var b strings.Builder
	b.WriteString("\n| date | source | projects |")
	for _, c := range columns {
		fmt.Fprintf(&b, " %s |", c.title)
	}
	b.WriteString(" machine |\n|---|---|---|" + strings.Repeat("---|", len(columns)+1) + "\n")
	for _, r := range slices.Backward(releases) { // newest first
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n",
			r.date.Format(time.DateOnly), r.source, r.projects, strings.Join(r.cells, " | "), r.machine)
	}
	b.WriteString("\n")
	return b.String()
}

// cell returns the column's figure in a report, "" if there is none.
func (c column) cell(rep *report) (text string) {
	if rep.Command != c.command {
		return ""
	}
	for _, row := range rep.Rows {
		switch {
		case !strings.HasSuffix(row.Name, c.suffix):
		case c.ratio && row.Ratio != nil:
			text = fmt.Sprintf("%.3f", row.Ratio.Median)
		case !c.ratio:
			text = number(row.Figure.Median)
		}
	}
	return text
}
