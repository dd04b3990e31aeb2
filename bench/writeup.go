package main

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"fingerpost/bench/chart"
)

// chartFolder is in the folder of results; report writes it anew each time.
const chartFolder = "charts"

// runWriteUp draws the charts and writes the figures into the README, from all results.
func runWriteUp(args []string, stdout, stderr io.Writer) int {
	folder := benchFolder()
	flags := flag.NewFlagSet("report", flag.ContinueOnError)
	results := flags.String("results", filepath.Join(folder, "results"), "folder of the results; the charts go there, too")
	readme := flags.String("readme", filepath.Join(folder, "README.md"), "the file with the figures, between its markers")
	if code, ok := parseFlags(flags, args, 0, stderr); !ok {
		return code
	}
	w := writeUp{folder: *results}
	err := w.read()
	if err == nil {
		err = w.into(*readme)
	}
	if err == nil {
		err = w.draw()
	}
	if err != nil {
		fmt.Fprintln(stderr, "bench report:", err)
		return 2
	}
	fmt.Fprintf(stdout, "%d results: %s and %s are up to date\n",
		len(w.results), *readme, filepath.Join(*results, chartFolder))
	return 0
}

// A writeUp is the report on a folder of results.
type writeUp struct {
	folder  string
	results []*result // oldest first
}

// read reads all results; it fails if a single file is not one.
func (w *writeUp) read() error {
	paths, err := filepath.Glob(filepath.Join(w.folder, "*.json"))
	if err != nil {
		return err
	}
	var errs []error
	for _, path := range paths {
		r, err := readResult(path)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		w.results = append(w.results, r)
	}
	slices.SortStableFunc(w.results, func(a, b *result) int {
		return cmp.Or(a.Began.Compare(b.Began), cmp.Compare(a.Command, b.Command))
	})
	return errors.Join(errs...)
}

// latest returns the newest result that has a report of the command, or nil.
func (w *writeUp) latest(command string) (*result, *report) {
	for _, r := range slices.Backward(w.results) {
		if rep := r.report(command); rep != nil {
			return r, rep
		}
	}
	return nil, nil
}

// reported returns the commands with figures, in their order.
func (w *writeUp) reported() (names []string) {
	for _, c := range commands() {
		if _, rep := w.latest(c.name); rep != nil {
			names = append(names, c.name)
		}
	}
	return names
}

// chartPath returns the path of a command's chart below the folder of results.
func chartPath(command string, c chart.Chart) string {
	return filepath.Join(chartFolder, command+"-"+c.Name+".svg")
}

// draw makes the charts of the newest report of each command, and removes older ones.
func (w *writeUp) draw() error {
	if err := os.RemoveAll(filepath.Join(w.folder, chartFolder)); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(w.folder, chartFolder), 0o755); err != nil {
		return err
	}
	var errs []error
	for _, name := range w.reported() {
		_, rep := w.latest(name)
		for _, c := range rep.Charts {
			var b bytes.Buffer
			err := c.SVG(&b)
			if err == nil {
				err = os.WriteFile(filepath.Join(w.folder, chartPath(name, c)), b.Bytes(), 0o644)
			}
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
