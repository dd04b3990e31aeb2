package sender_test

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/mailer/sender"
)

// ours are the cases in which the judges say something else, and why.
var ours = map[string]string{
	"a short ed25519 key":           "dkimpy needs another package for it",
	"two keys at a selector":        "dkimpy takes one of them",
	"a key in the other form":       "both forms are taken, here and there",
	"sha1 alone":                    "dkimpy reads the key, and judges the hash by the signature",
	"not for mail":                  "dkimpy looks at the service when it verifies a report of TLS",
	"three hosts that do not exist": "pyspf counts no look-ups of mx",
}

// TestJudges: pyspf and dkimpy, by which receivers judge, find the errors of SPF and the keys that cannot be used in the
// same zones.
func TestJudges(t *testing.T) {
	t.Parallel()
	python := "/usr/bin/python3" // that of the system, which has its packages; another one may come first in PATH
	if _, err := os.Stat(python); err != nil {
		python = testrig.Need(t, "python3")[0]
	}
	if exec.Command(python, "-c", "import spf, dkim").Run() != nil {
		testrig.Missing(t, "python3-spf", "the packages python3-spf and python3-dkim")
	}
	var input strings.Builder
	var cases []zoneCase
	var found [][]sender.Line
	for _, c := range zoneCases() {
		if c.change["spf"] == "" && c.change["dkim"] == "" || c.fault != "" || ours[c.name] != "" {
			continue // it has nothing to do with either, or no record of them
		}
		dns, s, port := c.start(t)
		domain, err := s.Domain()
		if err != nil {
			t.Fatal(err)
		}
		cases, found = append(cases, c), append(found, sender.Examine(dns, s))
		fmt.Fprintln(&input, port, "203.0.113.77", domain, strings.Join(s.Selectors, " "))
	}
	command := exec.Command(python, "testdata/judge.py")
	command.Stdin = strings.NewReader(input.String())
	out, err := command.CombinedOutput()
	said := strings.Split(strings.TrimSpace(string(out)), "\n")
	if err != nil || len(said) != len(cases) || len(cases) < 40 {
		t.Fatalf("%v: %d cases, and %s", err, len(cases), out)
	}
	for i, c := range cases {
		verdicts := strings.Fields(said[i])
		if want := spfVerdict(found[i]); want != "" && verdicts[0] != want {
			t.Errorf("%s: SPF is %s, and here %s: %v", c.name, verdicts[0], want, found[i])
		}
		for n, verdict := range verdicts[1:] {
			if want := keyVerdict(found[i], []string{"s1", "s2"}[n]); verdict != want {
				t.Errorf("%s: the key is %s, and here %s: %v", c.name, verdict, want, found[i])
			}
		}
	}
}

// spfVerdict returns the verdict on an address that no record has; "": it is one of those that let it pass or fail.
func spfVerdict(lines []sender.Line) string {
	for _, l := range lines {
		switch {
		case l.Check != sender.CheckSPF:
		case strings.Contains(l.Message, "has no SPF record: it needs"):
			return "none"
		case strings.Contains(l.Message, "error to receivers"), strings.Contains(l.Message, "it is an error"),
			strings.Contains(l.Message, "to receivers it has none"), strings.Contains(l.Message, "that do not exist"):
			return "permerror"
		case strings.Contains(l.Message, "everybody may send"):
			return "pass"
		}
	}
	return ""
}

// keyVerdict returns the verdict on a key.
func keyVerdict(lines []sender.Line, selector string) string {
	i := slices.IndexFunc(lines, func(l sender.Line) bool {
		return l.Check == sender.CheckDKIM && l.Level == sender.Warning && strings.Contains(l.Message, selector)
	})
	switch {
	case i < 0:
		return "good"
	case strings.Contains(lines[i].Message, "bits"):
		return "short"
	}
	return "bad"
}
