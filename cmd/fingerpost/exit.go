package main

import (
	"fmt"
	"strings"
)

// Exit codes (cmd/fingerpost/README.md).
const (
	exitOK     = 0
	exitNot    = 1 // the answer is "no"
	exitUsage  = 2
	exitFailed = 3 // could not run
)

// An exitError carries the process's exit code; any other error of a command is exitFailed. Its text goes to stderr
// unless it is empty.
type exitError struct {
	code int
	error
}

func (e *exitError) Unwrap() error { return e.error }

// errNot ends a command whose answer is "no" and already on stdout.
var errNot = no("")

// no ends a command with exit code 1 and a message.
func no(format string, args ...any) error {
	return &exitError{exitNot, fmt.Errorf(format, args...)}
}

// usage ends a command with exit code 2.
func usage(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// usageAll is usage with all problems at once; nil if there are none.
func usageAll(problems []string) error {
	if len(problems) == 0 {
		return nil
	}
	return usage("%s", strings.Join(problems, "; "))
}

// endWithProblems ends a command that has done nothing because of problems, which its JSON document has, too. done is
// what it would have done, such as "sent".
func endWithProblems(t terminal, asJSON bool, document any, problems []string, done string) error {
	if asJSON {
		if err := printJSON(t.out, document); err != nil {
			return err
		}
	}
	for _, p := range problems {
		fmt.Fprintln(t.err, p)
	}
	return no("%s: nothing was %s", count(len(problems), "problem"), done)
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
