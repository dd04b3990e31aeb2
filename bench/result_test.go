package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const emptyReadme = "# bench\n<!-- figures: go -C bench run . report -->\nold\n<!-- end of figures -->\nend\n"

// writeUpOf runs report on results and returns the README.
func writeUpOf(t *testing.T, code int, readme string, results ...*result) (text, stderr string) {
	t.Helper()
	dir := t.TempDir()
	folder, path := filepath.Join(dir, "results"), filepath.Join(dir, "README.md")
	if err := os.WriteFile(path, []byte(readme), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if _, err := r.save(folder); err != nil {
			t.Fatal(err)
		}
	}
	var out, errs bytes.Buffer
	for range 2 { // what is there already changes nothing
		if got := run(t.Context(), []string{"report", "-results", folder, "-readme", path}, &out, &errs); got != code {
			t.Errorf("report = %d, want %d: %s", got, code, errs.String())
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b), errs.String()
}

func TestReport(t *testing.T) {
	first, second := sampleResult(), sampleResult()
	second.Began, second.Source.Release = second.Began.Add(24*time.Hour), "v2"
	second.Reports[0].Rows[0].Figure.Median = 12345
	second.Reports[0].note("A note of the second.")
	text, _ := writeUpOf(t, 0, emptyReadme, first, second)
	says(t, text, "# bench\n", "\nend\n", "| resolve: resolve, requests/s | 12345", "### resolve", "2026-01-03, v2, on X, 2 cores",
		"- A note of the second.", "projects 100")
	if strings.Contains(text, "old\n") || strings.Count(text, "### resolve") != 1 {
		t.Errorf("figures of the older result:\n%s", text)
	}
}

func TestReportWithout(t *testing.T) {
	text, _ := writeUpOf(t, 0, emptyReadme)
	says(t, text, "There are no results yet")
	_, errs := writeUpOf(t, 2, "# no markers\n", sampleResult())
	says(t, errs, "figures: go -C bench run")
	_, errs = writeUpOf(t, 2, strings.Replace(emptyReadme, "<!-- end of figures -->", "", 1))
	says(t, errs, "end of figures")
	odd := sampleResult()
	odd.Version = 7
	text, errs = writeUpOf(t, 2, emptyReadme, sampleResult(), odd)
	says(t, errs, "has version 7")
	if text != emptyReadme {
		t.Errorf("the README was changed: %s", text)
	}
}

// The figures in the README of this folder are those of the results.
func TestReadmeIsUpToDate(t *testing.T) {
	b, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "README.md")
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"report", "-results", "results", "-readme", path}, &out, &errs); code != 0 {
		t.Fatalf("report = %d %s", code, errs.String())
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, b) {
		t.Errorf("go -C bench run . report changes the README: %v", err)
	}
}

// No result takes the place of another.
func TestSave(t *testing.T) {
	dir, r := t.TempDir(), sampleResult()
	f := func(want string) {
		t.Helper()
		path, err := r.save(dir)
		if err != nil || filepath.Base(path) != want {
			t.Errorf("save: %s, %v; want %s", path, err, want)
		}
		back, err := readResult(path)
		if err != nil || back.Source != r.Source || back.Machine != r.Machine || !back.Began.Equal(r.Began) || back.report("resolve") == nil {
			t.Errorf("read back: %+v, %v", back, err)
		}
	}
	f("2026-01-02-abc-resolve.json")
	f("2026-01-02-abc-resolve-2.json")
	r.Command = allCommand
	f("2026-01-02-abc.json")
	r.Source.Dirty = true
	f("2026-01-02-abc-dirty.json")
}
