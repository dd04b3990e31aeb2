package main

import (
	"bytes"
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

var figuresSection = section{"<!-- figures: go -C bench run . report -->\n", "<!-- end of figures -->"}

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

// into writes the figures into a README.
func (w *writeUp) into(path string) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text, err := figuresSection.replace(old, w.figures())
	if err != nil {
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
