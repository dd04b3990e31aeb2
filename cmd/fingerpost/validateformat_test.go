package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"fingerpost/configsrc/hclfile"
)

func TestValidateFormats(t *testing.T) {
	t.Parallel()
	ds := hclfile.Diagnostics{
		{Severity: hclfile.Error, Summary: "100% wrong\nhere", Detail: "did you mean x?", File: "projects.d/a,b.hcl", Start: hclfile.Pos{Line: 3, Column: 5}, End: hclfile.Pos{Line: 4, Column: 1}},
		{Severity: hclfile.Warning, Summary: "odd", File: "c.hcl"},
	}
	var out bytes.Buffer
	if err := writeGitHub(&out, ds); err != nil {
		t.Fatal(err)
	}
	want := "::error file=projects.d/a%2Cb.hcl,line=3,endLine=4,col=5::100%25 wrong%0Ahere%0Adid you mean x?\n::warning file=c.hcl::odd\n"
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	out.Reset()
	if err := writeSARIF(&out, ds); err != nil {
		t.Fatal(err)
	}
	var log sarifLog
	if err := json.Unmarshal(out.Bytes(), &log); err != nil || len(log.Runs) != 1 || len(log.Runs[0].Results) != 2 {
		t.Fatalf("%v: %s", err, out.String())
	}
	first, second := log.Runs[0].Results[0], log.Runs[0].Results[1]
	if first.Level != "error" || first.Locations[0].Physical.Region.StartLine != 3 || second.Level != "warning" || second.Locations[0].Physical.Region != nil {
		t.Errorf("%s", out.String())
	}
}

// What init --ci writes names the folder, and the hook can be run.
func TestInitCI(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	dir := filepath.Join(t.TempDir(), "files.d")
	if err := initCI(terminal{out: &out, err: &errs}, dir); err != nil {
		t.Fatal(err)
	}
	hook := filepath.Join(filepath.Dir(dir), ".githooks/pre-commit")
	info, err := os.Stat(hook)
	if err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("%v, %v", info, err)
	}
	for _, f := range ciFiles {
		b, err := os.ReadFile(filepath.Join(filepath.Dir(dir), f.name))
		if err != nil || !bytes.Contains(b, []byte("--config files.d\n")) || bytes.Contains(b, []byte("%!")) {
			t.Errorf("%s: %v\n%s", f.name, err, b)
		}
	}
}
