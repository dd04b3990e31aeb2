package catalog

import (
	"regexp"
	"strings"
)

// ProposalNameRule says how the name of a proposal must be, after "must".
const ProposalNameRule = "be 1 to 63 of a-z, 0-9, '.', '_' and '-', begin with a letter or digit, have no '..', " +
	"and not end in '.' or '.lock'"

var proposalName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)

// ValidProposalName reports whether a proposal may have the name: it is that of a branch, and part of a path.
func ValidProposalName(name string) bool {
	return proposalName.MatchString(name) && !strings.Contains(name, "..") && !strings.HasSuffix(name, ".") &&
		!strings.HasSuffix(name, ".lock")
}
