package cli

import (
	"fmt"
	"strings"

	"fingerpost/resolver/catalog"
)

// Exit codes (cmd/fingerpost/README.md).
const (
	ExitOK     = 0
	ExitNot    = 1 // the answer is "no"
	ExitUsage  = 2
	ExitFailed = 3 // could not run
)

// An ExitError carries the process's exit code; any other error of a command is ExitFailed. Its text goes to stderr
// unless it is empty.
type ExitError struct {
	Code int
	error
}

func (e *ExitError) Unwrap() error { return e.error }

// ErrNot ends a command whose answer is "no" and already on stdout.
var ErrNot = No("")

// No ends a command with exit code 1 and a message.
func No(format string, args ...any) error {
	return &ExitError{ExitNot, fmt.Errorf(format, args...)}
}

// Usage ends a command with exit code 2.
func Usage(format string, args ...any) error {
	return &ExitError{ExitUsage, fmt.Errorf(format, args...)}
}

// UsageAll is usage with all problems at once; nil if there are none.
func UsageAll(problems []string) error {
	if len(problems) == 0 {
		return nil
	}
	return Usage("%s", strings.Join(problems, "; "))
}

// EndWithProblems ends a command that has done nothing because of problems, which its JSON document has, too. done is
// what it would have done, such as "sent".
func EndWithProblems(t Terminal, asJSON bool, document any, problems []string, done string) error {
	if asJSON {
		if err := PrintJSON(t.Out, document); err != nil {
			return err
		}
	}
	for _, p := range problems {
		fmt.Fprintln(t.Err, p)
	}
	return No("%s: nothing was %s", catalog.Count(len(problems), "problem"), done)
}
