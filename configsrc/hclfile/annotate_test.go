package hclfile

import (
	"bytes"
	encoding "encoding/json" // json is the syntax of the files
	"testing"
)

func TestValidateFormats(t *testing.T) {
	t.Parallel()
	ds := Diagnostics{
		{Severity: Error, Summary: "100% wrong\nhere", Detail: "did you mean x?", File: "projects.d/a,b%41 c.hcl", Start: Pos{Line: 3, Column: 5}, End: Pos{Line: 4, Column: 1}},
		{Severity: Warning, Rule: RuleClearTextSecret, Summary: "odd", File: "c.hcl"},
	}
	var out bytes.Buffer
	if err := ds.WriteGitHub(&out); err != nil {
		t.Fatal(err)
	}
	want := "::error file=projects.d/a%2Cb%2541 c.hcl,line=3,endLine=4,col=5::100%25 wrong%0Ahere%0Adid you mean x?\n::warning file=c.hcl::odd\n"
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	out.Reset()
	if err := encoding.NewEncoder(&out).Encode(ds.SARIF("devel")); err != nil {
		t.Fatal(err)
	}
	// By the names of the standard, not by our types.
	var log map[string]any
	if err := encoding.Unmarshal(out.Bytes(), &log); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	run := log["runs"].([]any)[0].(map[string]any)
	driver := run["tool"].(map[string]any)["driver"].(map[string]any)
	got, err := encoding.Marshal([]any{log["version"], driver["name"], driver["rules"], run["columnKind"], run["results"]})
	if err != nil {
		t.Fatal(err)
	}
	const sarif = `["2.1.0","fingerpost",[{"id":"config"},{"id":"clear-text-secret"}],"unicodeCodePoints",[` +
		`{"level":"error","locations":[{"physicalLocation":{"artifactLocation":{"uri":"projects.d/a,b%2541%20c.hcl"},` +
		`"region":{"endColumn":1,"endLine":4,"startColumn":5,"startLine":3}}}],"message":{"text":"100% wrong\nhere\ndid you mean x?"},"ruleId":"config"},` +
		`{"level":"warning","locations":[{"physicalLocation":{"artifactLocation":{"uri":"c.hcl"}}}],"message":{"text":"odd"},"ruleId":"clear-text-secret"}]]`
	if string(got) != sarif {
		t.Errorf("got\n%s\nwant\n%s", got, sarif)
	}
}
