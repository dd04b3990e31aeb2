package hclfile

import (
	"cmp"
	"slices"
)

// Severity decides whether a file with such a Diagnostic can be served.
type Severity string

// The severities, as in JSON.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
)

// RuleClearTextSecret marks the warning about a secret in clear text in the file. Under sealing { require = true }
// configsrc turns it into an error.
const RuleClearTextSecret = "clear-text-secret" //nolint:gosec // the name of a rule

// A Pos is a position in a file. The zero Pos means none.
type Pos struct {
	Line   int `json:"line"`   // 1-based
	Column int `json:"column"` // 1-based, in characters (grapheme clusters), as editors count
	Byte   int `json:"byte"`   // 0-based
}

// A Diagnostic is one problem of a file. It contains no secret and no control character, so it can be printed, logged
// and sent unchanged.
type Diagnostic struct {
	Severity Severity `json:"severity"`
	Rule     string   `json:"rule,omitempty"` // names what can be switched to an error; mostly empty
	Summary  string   `json:"summary"`        // what is wrong, lower case
	Detail   string   `json:"detail"`         // what would be right; may be empty or have several lines
	File     string   `json:"file"`           // as it was given to Decode
	Start    Pos      `json:"start"`
	End      Pos      `json:"end"`     // exclusive
	Snippet  string   `json:"snippet"` // the source line of Start, shortened, escaped, secrets taken out; may be empty

	mark [2]int // bytes of Snippet that the range covers
}

// Diagnostics are the problems of one or several files.
type Diagnostics []Diagnostic

// HasErrors reports whether one of them is more than a warning.
func (ds Diagnostics) HasErrors() bool {
	return slices.ContainsFunc(ds, func(d Diagnostic) bool { return d.Severity == Error })
}

// Sort orders by file, position, errors before warnings, and text, so that equal files give equal lists.
func (ds Diagnostics) Sort() {
	slices.SortStableFunc(ds, func(a, b Diagnostic) int {
		return cmp.Or(
			cmp.Compare(a.File, b.File),
			cmp.Compare(a.Start.Byte, b.Start.Byte),
			cmp.Compare(a.Start.Line, b.Start.Line),
			cmp.Compare(a.Severity, b.Severity),
			cmp.Compare(a.Summary, b.Summary),
			cmp.Compare(a.Detail, b.Detail),
		)
	})
}

// FileProblem returns an error about a file as a whole, such as one that cannot be read: without position and snippet.
func FileProblem(path, summary, detail string) Diagnostic {
	return Diagnostic{Severity: Error, Summary: printable(summary), Detail: printable(detail), File: path}
}

// maxDiagnostics bounds the problems reported for one file. More would help no reader.
const maxDiagnostics = 100

// maxCollected bounds the problems that the decoder collects, and so the work for one file.
const maxCollected = 2 * maxDiagnostics

// capped sorts ds and truncates it to maxDiagnostics and one line with the number of the others.
func (ds Diagnostics) capped() Diagnostics {
	ds.Sort()
	if len(ds) <= maxDiagnostics {
		return ds
	}
	rest := ds[maxDiagnostics:]
	last := Diagnostic{
		Severity: Warning,
		Summary:  plural(len(rest), "more problem is not shown", "more problems are not shown"),
		Detail:   "put right the first ones and look again",
		File:     ds[0].File, Start: rest[0].Start, End: rest[0].End, Snippet: rest[0].Snippet, mark: rest[0].mark,
	}
	if rest.HasErrors() {
		last.Severity = Error
	}
	return append(ds[:maxDiagnostics:maxDiagnostics], last)
}
