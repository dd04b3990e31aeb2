package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
)

// TestSmokeAll runs every command as people do: the real binary, all of them after another, with small sizes. Whether
// goals are met says nothing here; that no command fails, that each has its rows, and that the result can be
// compared and reported, does.
func TestSmokeAll(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs a dozen servers")
	}
	rounds := "1"
	if testrig.Full() {
		rounds = "3"
	}
	dir := t.TempDir()
	results := filepath.Join(dir, "results")
	var out, errs bytes.Buffer
	code := measure(t.Context(), allCommand, commands(), []string{"-work", filepath.Join(dir, "work"), "-results", results,
		"-projects", "120", "-domains", "360", "-connections", "8", "-rounds", rounds, "-round", "100ms",
		"-waiting", "30", "-listed", "1500", "-edges", "1,2", "-followers", "3", "-sizes", "1000,2000",
		"-entries", "500", "-clients", "5", "-client-writes", "2"}, &out, &errs)
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
	// Each goal is the row that a command is for.
	for _, want := range []struct{ command, row string }{
		{"resolve", "resolve"}, {"resolve", "server CPU"},
		{"reload", "write and rename: save → visible, p99"}, {"reload", "answered by the cache"},
		{"write", "8 at once: durable writes"}, {"write", "1 at once: latency p50"},
		{"write", "resolve while 50 writes a second come in"}, {"write", "writes meanwhile"},
		{"mail", "30 mails wait for dead servers: its latency p99"},
		{"start", "start with an empty store"},
		{"gate", "server CPU of a check"},
		{"cluster", "resolve on an edge"}, {"cluster", "first start of an edge"}, {"cluster", "durable writes at the authority"},
		{"cluster", "2 edges: write → visible on all, p99"},
		{"client", "a hit in Go"},
		{"scale", "the same names asked at 2000 domains"},
	} {
		rep := r.report(want.command)
		if rep == nil {
			continue // said above
		}
		i := slices.IndexFunc(rep.Rows, func(w row) bool { return w.Name == want.row })
		switch {
		case i < 0 || rep.Rows[i].Goal == nil:
			t.Errorf("%s has no goal on %q", want.command, want.row)
		case rep.Rows[i].Unit == "count" && rep.Rows[i].Figure.Median > 0, rep.Rows[i].Unit != "count" && rep.Rows[i].Figure.Median <= 0:
			t.Errorf("%s: %+v; notes %q", want.command, rep.Rows[i], rep.Notes)
		}
	}
	const light = "3 followers that keep hashes: write → has come to all, p99" // is reported without a goal
	if rep := r.report("cluster"); rep != nil && !slices.ContainsFunc(rep.Rows, func(w row) bool { return w.Name == light && w.Figure.Median > 0 }) {
		t.Errorf("cluster does not say %q", light)
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
		{name: "second", run: func(context.Context, *bench) (*report, error) {
			return &report{Rows: []row{measured("x", "ms", 1)}}, nil
		}},
	}
	r.runAll(t.Context(), list, b.options, io.Discard)
	var text bytes.Buffer
	if err := r.writeText(&text); err != nil {
		t.Fatal(err)
	}
	says(t, text.String(), "FAILED: first: the disk is gone", "second, in")
	if r.report("second") == nil || r.exitCode() != 3 {
		t.Errorf("exit code %d, %+v", r.exitCode(), r)
	}
}

// A floor that is given another key is no baseline: its refusals must not count as answers.
func TestWrongKey(t *testing.T) {
	b := smallBench(t)
	c := smallCorpus(t, b)
	other := newCorpus("", b.corpus)
	other.key = "another"
	f, err := b.floor(t.Context(), other, 500)
	if err != nil {
		t.Fatal(err)
	}
	_, err = load{side: resolves(f, c, c.names()), workers: 2, count: 4}.run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "status 401") {
		t.Errorf("asked a floor with another key: %v", err)
	}
}

func TestUsage(t *testing.T) {
	f := func(want int, args ...string) {
		t.Helper()
		var out, errs bytes.Buffer
		if got := run(t.Context(), args, &out, &errs); got != want {
			t.Errorf("run(%q) = %d, want %d: %s", args, got, want, errs.String())
		}
		if out.Len() > 0 || errs.Len() == 0 {
			t.Errorf("run(%q): stdout %q, stderr %q", args, out.String(), errs.String())
		}
	}
	f(2)
	f(2, "nonsense")
	f(0, "resolve", "-h")
	f(2, "resolve", "-connections", "0")
	f(2, "resolve", "-domains", "100001")
	f(2, "resolve", "-nonsense")
	f(2, "resolve", "extra")
	f(2, "scale", "-sizes", "1,0")
	f(2, "resolve", "-sizes", "1000")
	f(2, "scale", "-sizes", "1001")
	f(2, "scale", "-sizes", "990")
	f(2, "all", "-rounds", "0")
	f(2, "report", "extra")
	f(0, "help")
	f(2, "write", "-projects", "63", "-domains", "63")
	f(2, "mail", "-waiting", "0")
	f(2, "mail", "-listed", "2000001")
	f(3, "resolve", "-work", t.TempDir(), "-projects", "2", "-domains", "2", "-binary", "/nonexistent/fingerpost")
}
