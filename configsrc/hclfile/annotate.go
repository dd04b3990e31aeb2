package hclfile

import (
	"cmp"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

// WriteGitHub writes the diagnostics as workflow commands, which GitHub Actions shows at the lines of a pull request.
func (ds Diagnostics) WriteGitHub(w io.Writer) error {
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	message := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	for _, d := range ds {
		kind := "error"
		if d.Severity != Error {
			kind = "warning"
		}
		text := d.Summary
		if d.Detail != "" {
			text += "\n" + d.Detail
		}
		at := ""
		if d.Start.Line > 0 {
			at = fmt.Sprintf(",line=%d,endLine=%d,col=%d", d.Start.Line, max(d.End.Line, d.Start.Line), d.Start.Column)
		}
		if _, err := fmt.Fprintf(w, "::%s file=%s%s::%s\n", kind, property.Replace(filepath.ToSlash(d.File)), at,
			message.Replace(text)); err != nil {
			return err
		}
	}
	return nil
}

// The parts of SARIF 2.1.0 (OASIS) that are used here.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool       sarifTool     `json:"tool"`
		ColumnKind string        `json:"columnKind"`
		Results    []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver struct {
			Name    string      `json:"name"`
			Version string      `json:"version"`
			Rules   []sarifRule `json:"rules"`
		} `json:"driver"`
	}
	sarifRule struct {
		ID string `json:"id"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		Level     string          `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations"`
	}
	sarifLocation struct {
		Physical struct {
			Artifact struct {
				URI string `json:"uri"`
			} `json:"artifactLocation"`
			Region *sarifRegion `json:"region,omitempty"`
		} `json:"physicalLocation"`
	}
	sarifRegion struct {
		StartLine   int `json:"startLine"`
		StartColumn int `json:"startColumn,omitempty"`
		EndLine     int `json:"endLine,omitempty"`
		EndColumn   int `json:"endColumn,omitempty"` // exclusive
	}
)

// SARIF returns the diagnostics as a SARIF log, to be encoded as JSON, which code scanning reads. version is that of
// fingerpost.
func (ds Diagnostics) SARIF(version string) any {
	run := sarifRun{ColumnKind: "unicodeCodePoints", Results: []sarifResult{}}
	run.Tool.Driver.Rules = []sarifRule{}
	run.Tool.Driver.Name, run.Tool.Driver.Version = "fingerpost", version
	for _, d := range ds {
		result := sarifResult{RuleID: cmp.Or(d.Rule, "config"), Level: "error", Message: sarifText{d.Summary},
			Locations: make([]sarifLocation, 1)}
		if d.Severity != Error {
			result.Level = "warning"
		}
		if d.Detail != "" {
			result.Message.Text += "\n" + d.Detail
		}
		at := &result.Locations[0].Physical
		at.Artifact.URI = (&url.URL{Path: filepath.ToSlash(d.File)}).EscapedPath()
		if d.Start.Line > 0 {
			at.Region = &sarifRegion{StartLine: d.Start.Line, StartColumn: d.Start.Column}
			if d.End.Line > 0 {
				at.Region.EndLine, at.Region.EndColumn = d.End.Line, d.End.Column
			}
		}
		if rule := (sarifRule{result.RuleID}); !slices.Contains(run.Tool.Driver.Rules, rule) {
			run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, rule)
		}
		run.Results = append(run.Results, result)
	}
	return sarifLog{Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0",
		Runs: []sarifRun{run}}
}
