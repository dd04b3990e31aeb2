package main

import (
	"bytes"
	"encoding/json"
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
