package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"fingerpost/bench/machine"
)

// resultFormat and resultVersion mark a file as a result of this program. The version changes when an older reader
// would misunderstand a newer file.
const (
	resultFormat  = "fingerpost-bench"
	resultVersion = 1
)

// A result is the output of one run of bench: the file in bench/results.
type result struct {
	Format   string          `json:"format"`
	Version  int             `json:"version"`
	Began    time.Time       `json:"began"`
	Command  string          `json:"command"` // the command of the run: all, or the one with a report
	Source   source          `json:"source"`
	Machine  machine.Machine `json:"machine"`
	Reports  []*report       `json:"reports"`
	Failures []failure       `json:"failures,omitempty"`
}

// A source is the state of the checkout that was measured.
type source struct {
	Release string `json:"release"` // git describe: the last tag, and the distance from it
	Commit  string `json:"commit"`  // abbreviated; "unknown" outside a git checkout
	Dirty   bool   `json:"dirty,omitempty"`
	Binary  string `json:"binary,omitempty"` // named by -binary: the commit need not be its own
}

// A failure is a command that did not complete.
type failure struct {
	Command string `json:"command"`
	Error   string `json:"error"`
}

func newResult(ctx context.Context, command string, o options) *result {
	r := &result{Format: resultFormat, Version: resultVersion, Began: time.Now().UTC().Truncate(time.Second),
		Command: command, Source: lookAtSource(ctx), Machine: machine.Look(o.work), Reports: []*report{}}
	if o.binary != "" {
		r.Source.Binary = filepath.Base(o.binary)
	}
	return r
}

func lookAtSource(ctx context.Context) source {
	git := func(args ...string) string {
		out, err := exec.CommandContext(ctx, "git", args...).Output()
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(out))
	}
	s := source{Commit: git("rev-parse", "--short=12", "HEAD")}
	if s.Commit == "" {
		return source{Release: "unknown", Commit: "unknown"}
	}
	// Saved results of earlier runs do not make a checkout dirty.
	s.Dirty = git("status", "--porcelain", "--", ":/",
		":(top,exclude)bench/results", ":(top,exclude)bench/README.md") != ""
	s.Release = git("describe", "--tags", "--always", "--abbrev=12")
	return s
}

func (s source) String() string {
	text := s.Commit
	if s.Release != "" && s.Release != s.Commit {
		text = s.Release
	}
	if s.Dirty {
		text += ", with changes that are not committed"
	}
	if s.Binary != "" {
		text += ", with the ready binary " + s.Binary
	}
	return text
}

// exitCode returns 3 if a command failed, 1 if a goal was missed, 4 if the machine was too noisy for a verdict on one,
// 0 otherwise.
func (r *result) exitCode() int {
	switch {
	case len(r.Failures) > 0:
		return 3
	case slices.ContainsFunc(r.Reports, (*report).missed):
		return 1
	case slices.ContainsFunc(r.Reports, (*report).inconclusive):
		return 4
	}
	return 0
}

// report returns a command's report, or nil.
func (r *result) report(command string) *report {
	for _, rep := range r.Reports {
		if rep.Command == command {
			return rep
		}
	}
	return nil
}

func (r *result) writeText(w io.Writer) error {
	fmt.Fprintf(w, "\n%s at %s on %s\n", r.Command, r.Source, r.Machine)
	for _, rep := range r.Reports {
		fmt.Fprintf(w, "\n%s, in %.0f s\n\n", rep.Command, rep.Seconds)
		if err := align(w, rep.markdown(r.Machine.Warnings())); err != nil {
			return err
		}
	}
	for _, f := range r.Failures {
		fmt.Fprintf(w, "\nFAILED: %s: %s\n", f.Command, f.Error)
	}
	return nil
}

// save writes the result below dir as <date>-<commit>.json and returns the path. A run of one command has its name in
// it, too. Existing files stay: another result gets a number.
func (r *result) save(dir string) (string, error) {
	text, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	name := r.Began.Format(time.DateOnly) + "-" + r.Source.Commit
	if r.Source.Dirty {
		name += "-dirty"
	}
	if r.Command != allCommand {
		name += "-" + r.Command
	}
	path := filepath.Join(dir, name+".json")
	for n := 2; err == nil; n++ {
		if _, missing := os.Lstat(path); errors.Is(missing, os.ErrNotExist) {
			err = os.WriteFile(path, append(text, '\n'), 0o644)
			break
		}
		path = filepath.Join(dir, fmt.Sprintf("%s-%d.json", name, n))
	}
	if err != nil {
		return "", fmt.Errorf("save the result: %w", err)
	}
	return path, nil
}

// readResult reads a file that save wrote. Another file, or one of another version, is an error.
func readResult(path string) (*result, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read a result: %w", err)
	}
	r := new(result)
	switch err := json.Unmarshal(b, r); {
	case err != nil || r.Format != resultFormat:
		return nil, fmt.Errorf("%s is not a result of bench, as bench/results/<date>-<commit>.json is: %w", path, err)
	case r.Version != resultVersion:
		return nil, fmt.Errorf("%s has version %d of the format, this bench reads version %d: "+
			"read it with the bench of its own commit, or measure again", path, r.Version, resultVersion)
	}
	return r, nil
}

// benchFolder returns bench/ of the checkout around the current folder, or "" outside one.
func benchFolder() string {
	dir, err := os.Getwd()
	for ; err == nil; dir = filepath.Dir(dir) {
		b, _ := os.ReadFile(filepath.Join(dir, "go.mod")) // most folders have none
		if bytes.HasPrefix(b, []byte("module fingerpost\n")) {
			return filepath.Join(dir, "bench")
		}
		if filepath.Dir(dir) == dir {
			break
		}
	}
	return ""
}

// runReport writes the figures into the README, from all results in a folder.
func runReport(args []string, stdout, stderr io.Writer) int {
	folder := benchFolder()
	flags := flag.NewFlagSet("report", flag.ContinueOnError)
	dir := flags.String("results", filepath.Join(folder, "results"), "folder of the results")
	readme := flags.String("readme", filepath.Join(folder, "README.md"), "the file with the figures, between its markers")
	if code, ok := parseFlags(flags, args, 0, stderr); !ok {
		return code
	}
	paths, err := filepath.Glob(filepath.Join(*dir, "*.json"))
	var results []*result
	for _, path := range paths {
		r, errRead := readResult(path)
		results, err = append(results, r), errors.Join(err, errRead)
	}
	if err == nil {
		slices.SortStableFunc(results, func(a, b *result) int { return a.Began.Compare(b.Began) })
		err = replaceFigures(*readme, figures(results))
	}
	if err != nil {
		fmt.Fprintln(stderr, "bench report:", err)
		return 2
	}
	fmt.Fprintf(stdout, "%d results: %s is up to date\n", len(results), *readme)
	return 0
}

// The markers of the figures in the README.
const (
	figuresBegin = "<!-- figures: go -C bench run . report -->\n"
	figuresEnd   = "<!-- end of figures -->"
)

// replaceFigures puts text between the markers of a file.
func replaceFigures(path, text string) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	head, rest, found := strings.Cut(string(old), figuresBegin)
	_, tail, ended := strings.Cut(rest, figuresEnd)
	if !found || !ended {
		return fmt.Errorf("%s: it must have the line %q, and %q below it", path, strings.TrimSpace(figuresBegin), figuresEnd)
	}
	return saveByRename(path, []byte(head+figuresBegin+text+figuresEnd+tail))
}

// figures returns an overview of the goals of all commands, then each command with all rows of its newest result.
func figures(results []*result) string {
	var goals, sections strings.Builder
	for _, c := range commands() {
		for _, r := range slices.Backward(results) {
			rep := r.report(c.name)
			if rep == nil {
				continue
			}
			for _, row := range rep.Rows {
				if row.Goal != nil {
					goals.WriteString(row.markdown(c.name + ": "))
				}
			}
			fmt.Fprintf(&sections, "\n### %s\n\n%s, %s, on %s.\n\n<details><summary>All figures</summary>\n\n%s\n</details>\n",
				c.name, r.Began.Format(time.DateOnly), r.Source, r.Machine, rep.markdown(r.Machine.Warnings()))
			break
		}
	}
	if sections.Len() == 0 {
		return "\nThere are no results yet: `go -C bench run . all`, then `go -C bench run . report`.\n\n"
	}
	return "\n" + tableHead + goals.String() + sections.String() + "\n"
}
