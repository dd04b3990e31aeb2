package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"fingerpost/configsrc/hclfile"
)

// writeGitHub prints diagnostics as workflow commands, which GitHub Actions shows at the lines of a pull request.
func writeGitHub(w io.Writer, ds hclfile.Diagnostics) error {
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	message := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	for _, d := range ds {
		kind := "error"
		if d.Severity != hclfile.Error {
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
		if _, err := fmt.Fprintf(w, "::%s file=%s%s::%s\n", kind, property.Replace(filepath.ToSlash(d.File)), at, message.Replace(text)); err != nil {
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
		Tool    sarifTool     `json:"tool"`
		Results []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver struct {
			Name    string `json:"name"`
			Version string `json:"version"`
		} `json:"driver"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifResult struct {
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
	}
)

// writeSARIF prints diagnostics as a SARIF log, which code scanning reads.
func writeSARIF(w io.Writer, ds hclfile.Diagnostics) error {
	run := sarifRun{Results: []sarifResult{}}
	run.Tool.Driver.Name, run.Tool.Driver.Version = "fingerpost", builtAs().version
	for _, d := range ds {
		result := sarifResult{Level: "error", Message: sarifText{d.Summary}, Locations: make([]sarifLocation, 1)}
		if d.Severity != hclfile.Error {
			result.Level = "warning"
		}
		if d.Detail != "" {
			result.Message.Text += "\n" + d.Detail
		}
		at := &result.Locations[0].Physical
		at.Artifact.URI = filepath.ToSlash(d.File)
		if d.Start.Line > 0 {
			at.Region = &sarifRegion{d.Start.Line, d.Start.Column}
		}
		run.Results = append(run.Results, result)
	}
	return printJSON(w, sarifLog{Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: []sarifRun{run}})
}
