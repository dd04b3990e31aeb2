package catalog

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"unicode"
	"unicode/utf8"
)

// A Label is a name and a value that a team gives to a project, for its gateways and its own tools.
type Label struct {
	_           struct{} `cbor:",toarray"`
	Name, Value string
}

// Limits on labels.
const (
	MaxLabels        = 32
	MaxLabelValueLen = 256 // characters
)

var labelName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,30}$`)

// SortLabels sorts labels by name, which is the order everywhere.
func SortLabels(labels []Label) {
	slices.SortFunc(labels, func(a, b Label) int { return cmp.Compare(a.Name, b.Name) })
}

// CheckLabelName returns what is wrong with a label's name, or "".
func CheckLabelName(name string) string {
	if !labelName.MatchString(name) {
		return "a label's name has 1 to 31 of a-z, 0-9 and underscores, and begins with a letter"
	}
	return ""
}

// CheckLabelValue returns what is wrong with a label's value, or "".
func CheckLabelValue(value string) string {
	if n := utf8.RuneCountInString(value); n > MaxLabelValueLen {
		return fmt.Sprintf("has %d characters, %d are allowed", n, MaxLabelValueLen)
	}
	for _, r := range value {
		if !unicode.IsPrint(r) {
			return "must hold printable characters only"
		}
	}
	return ""
}

// ValidateLabels checks sorted labels. The problems are on "labels" and "labels.<name>".
func ValidateLabels(labels []Label) Problems {
	var ps Problems
	if len(labels) > MaxLabels {
		ps.Addf("labels", "has %d labels, %d are allowed", len(labels), MaxLabels)
	}
	for i, l := range labels {
		field := "labels." + l.Name
		if msg := CheckLabelName(l.Name); msg != "" {
			ps.Addf(field, "%s", msg)
		}
		if i > 0 && labels[i-1].Name == l.Name {
			ps.Addf(field, "is there twice")
		}
		if msg := CheckLabelValue(l.Value); msg != "" {
			ps.Addf(field, "%s", msg)
		}
	}
	return ps
}
