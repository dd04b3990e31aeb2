package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"slices"
)

// runWriteUp writes the figures into the README, from all results.
func runWriteUp(args []string, stdout, stderr io.Writer) int {
	folder := benchFolder()
	flags := flag.NewFlagSet("report", flag.ContinueOnError)
	results := flags.String("results", filepath.Join(folder, "results"), "folder of the results")
	readme := flags.String("readme", filepath.Join(folder, "README.md"), "the file with the figures, between its markers")
	if code, ok := parseFlags(flags, args, 0, stderr); !ok {
		return code
	}
	w := writeUp{folder: *results}
	err := w.read()
	if err == nil {
		err = w.into(*readme)
	}
	if err != nil {
		fmt.Fprintln(stderr, "bench report:", err)
		return 2
	}
	fmt.Fprintf(stdout, "%d results: %s is up to date\n", len(w.results), *readme)
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
