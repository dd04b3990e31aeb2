package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// resultFormat and resultVersion mark a file as a result of this program. The version changes when an older reader
// would misunderstand a newer file.
const (
	resultFormat  = "fingerpost-bench"
	resultVersion = 1
)

// A result is the output of one run of bench: the file in bench/results.
type result struct {
	Format   string    `json:"format"`
	Version  int       `json:"version"`
	Began    time.Time `json:"began"`
	Command  string    `json:"command"` // the command of the run: all, or the one with a report
	Source   source    `json:"source"`
	Machine  machine   `json:"machine"`
	Reports  []*report `json:"reports"`
	Failures []failure `json:"failures,omitempty"`
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
		Command: command, Source: lookAtSource(ctx), Machine: lookAtMachine(o.work), Reports: []*report{}}
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

// writeJSON writes a value as a person can read it.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

func (r *result) writeText(w io.Writer) error {
	fmt.Fprintf(w, "\n%s at %s on %s\n", r.Command, r.Source, r.Machine)
	for _, rep := range r.Reports {
		if err := rep.writeText(w); err != nil {
			return err
		}
	}
	for _, note := range r.Machine.warnings() {
		fmt.Fprintf(w, "\n%s", note)
	}
	for _, f := range r.Failures {
		fmt.Fprintf(w, "\nFAILED: %s: %s", f.Command, f.Error)
	}
	_, err := fmt.Fprintln(w)
	return err
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

// save writes the result below dir as <date>-<commit>.json and returns the path. A run of one command has its name in
// it, too. Existing files stay: another result gets a number.
func (r *result) save(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("save the result: %w", err)
	}
	name := r.Began.Format(time.DateOnly) + "-" + r.Source.Commit
	if r.Source.Dirty {
		name += "-dirty"
	}
	if r.Command != allCommand {
		name += "-" + r.Command
	}
	for n := 1; ; n++ {
		path := filepath.Join(dir, name+".json")
		if n > 1 {
			path = filepath.Join(dir, fmt.Sprintf("%s-%d.json", name, n))
		}
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("save the result: %w", err)
		}
		if err := errors.Join(writeJSON(f, r), f.Close()); err != nil {
			return "", fmt.Errorf("save the result: %w", err)
		}
		return path, nil
	}
}

// readResult reads a file that save wrote. Another file, or one of another version, is an error.
func readResult(path string) (*result, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read a result: %w", err)
	}
	var head struct {
		Format  string `json:"format"`
		Version int    `json:"version"`
	}
	if err := json.Unmarshal(b, &head); err != nil || head.Format != resultFormat {
		return nil, fmt.Errorf("%s is not a result of bench: it must be JSON with \"format\": %q, "+
			"as bench/results/<date>-<commit>.json is", path, resultFormat)
	}
	if head.Version != resultVersion {
		return nil, fmt.Errorf("%s has version %d of the format, this bench reads version %d: "+
			"read it with the bench of its own commit, or measure anew", path, head.Version, resultVersion)
	}
	r := new(result)
	if err := json.Unmarshal(b, r); err != nil {
		return nil, fmt.Errorf("%s is a damaged result: %w", path, err)
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
