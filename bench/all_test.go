package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestSmokeAll runs every command as people do: the real binary, all of them after another, with small sizes. Whether
// goals are met says nothing here; that no command fails, that each has its rows and charts, and that the result can be
// compared and reported, does.
func TestSmokeAll(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs a dozen servers")
	}
	rounds, peers := "1", "-peers=false" // which have a test of their own
	if os.Getenv("CI") != "" {
		rounds, peers = "3", "-peers=true"
	}
	dir := t.TempDir()
	results := filepath.Join(dir, "results")
	var out, errs bytes.Buffer
	code := run(t.Context(), []string{allCommand, "-work", filepath.Join(dir, "work"), "-results", results,
		"-projects", "120", "-domains", "360", "-connections", "8", "-rounds", rounds, "-round", "100ms", peers,
		"-warm-up", "500", "-saves", "6", "-unknown", "2000", "-streams", "20", "-log-entries", "2100", "-waiting", "30",
		"-sweep", "1,8", "-sizes", "1000,2000", "-clients", "1,4"}, &out, &errs)
	if code == 2 || code == 3 {
		t.Fatalf("all = %d:\n%s%s", code, out.String(), errs.String())
	}
	paths, err := filepath.Glob(filepath.Join(results, "*.json"))
	if err != nil || len(paths) != 1 {
		t.Fatalf("results %v, %v", paths, err)
	}
	r, err := readResult(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range commands() {
		rep := r.report(c.name)
		if rep == nil || len(rep.Rows) == 0 {
			t.Errorf("no report of %s", c.name)
			continue
		}
		seen := map[string]bool{}
		for _, row := range rep.Rows {
			if key := row.Name + ", " + row.Unit; seen[key] {
				t.Errorf("%s has two rows %q", c.name, key)
			} else {
				seen[key] = true
			}
			if higherIsBetter(row.Unit) == 0 && !row.Aside {
				t.Errorf("%s: compare does not know the unit %q", c.name, row.Unit)
			}
		}
	}
	for _, name := range []string{"resolve", "reload", "write", "scale"} {
		if rep := r.report(name); rep != nil && len(rep.Charts) == 0 {
			t.Errorf("%s has no charts", name)
		}
	}
	if r.Machine.Cores < 1 || r.Machine.Kernel == "" || r.Machine.MemoryMiB < 1 || len(r.Failures) > 0 {
		t.Errorf("machine %+v, failures %v", r.Machine, r.Failures)
	}
	readme := filepath.Join(dir, "README.md")
	if err := os.WriteFile(readme, []byte(emptyReadme), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"compare", paths[0], paths[0]}, {"report", "-results", results, "-readme", readme}} {
		out.Reset()
		if code := run(t.Context(), args, &out, &errs); code != 0 {
			t.Errorf("%q = %d:\n%s%s", args, code, out.String(), errs.String())
		}
	}
	if b, err := os.ReadFile(readme); err != nil || !bytes.Contains(b, []byte("### scale")) {
		t.Errorf("the README has no figures: %v\n%s", err, b)
	}
}

// A command that fails does not keep all from going on; it is said, and the exit code tells.
func TestAllGoesOn(t *testing.T) {
	b := smallBench(t)
	r := &result{Began: time.Now(), Reports: []*report{}}
	list := []command{
		{name: "first", run: func(context.Context, *bench) (*report, error) { return nil, errors.New("the disk is gone") }},
		{name: "second", run: func(context.Context, *bench) (*report, error) { return &report{Rows: []row{alone("x", "ms", 1)}}, nil }},
	}
	r.runAll(t.Context(), list, []*bench{b, b})
	var text bytes.Buffer
	if err := r.writeText(&text); err != nil {
		t.Fatal(err)
	}
	says(t, text.String(), "FAILED: first: the disk is gone", "second, in")
	if r.report("second") == nil || r.exitCode() != 3 {
		t.Errorf("exit code %d, %+v", r.exitCode(), r)
	}
}
