package catalog

import (
	"fmt"
	"strings"
)

// A Problem is one rule that a value breaks. Path is the API's name of the field ("registrationMode", "domain"), empty
// for the whole object. Message is lower case, says what is wrong and what would be right, and never quotes a secret.
type Problem struct {
	Path    string
	Message string
	Warning bool // the value is served nevertheless

	// Start and End are the byte range of the value; both are 0 for all of it. Otherwise Message begins with the line and
	// column in the value: "line 3, column 14: ".
	Start, End int

	Records []byte // JSON: DNS records that would help, as answers about domains have them; nil: none
}

// Problems collects the findings of Validate.
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
