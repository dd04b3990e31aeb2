package catalog

import (
	"fmt"
	"strings"
)

// A Problem is one rule that a value breaks. Path is the API's name of the field ("registrationMode", "domain"), empty
// when the whole object is meant. Message is lower case, says what is wrong and what would be right, and never
// quotes a secret.
type Problem struct {
	Path    string
	Message string
	Warning bool // it is served all the same

	// Start and End are the bytes of the value that are meant; both are 0 where that is all of it. Where they are not,
	// Message begins with their line and column in the value: "line 3, column 14: ".
	Start, End int
}

// Problems gathers what Validate finds.
type Problems []Problem

// Addf appends an error on the field path.
func (p *Problems) Addf(path, format string, args ...any) {
	*p = append(*p, Problem{Path: path, Message: fmt.Sprintf(format, args...)})
}

// Warnf appends a warning on the field path.
func (p *Problems) Warnf(path, format string, args ...any) {
	*p = append(*p, Problem{Path: path, Message: fmt.Sprintf(format, args...), Warning: true})
}

// Snake turns an API field name into the attribute name that files use: "authEnabled" to "auth_enabled".
func Snake(camel string) string {
	var b strings.Builder
	for _, r := range camel {
		if r >= 'A' && r <= 'Z' {
			b.WriteByte('_')
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}
