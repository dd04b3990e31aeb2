package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestReadmeCalls: curl -d sends a form by default, and a form gets 415.
func TestReadmeCalls(t *testing.T) {
	for _, file := range []string{"../../README.md", "../../mailer/README.md", "../../api/README.md"} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		calls := 0
		for call := range strings.SplitSeq(strings.ReplaceAll(string(b), "\\\n", " "), "\n") {
			if !strings.HasPrefix(call, "$ curl ") || !strings.Contains(call, " -d ") {
				continue
			}
			if calls++; !strings.Contains(call, "-H 'Content-Type: application/json'") {
				t.Errorf("%s: this is answered 415: %s", file, call)
			}
		}
		if calls == 0 && file != "../../api/README.md" {
			t.Errorf("%s shows no call with a body", file)
		}
	}
}

// TestReadmeFlags: the document of the binary names every flag of serve and every command, and no flag that no command
// has.
func TestReadmeFlags(t *testing.T) {
	b, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	text, flags := string(b), map[string]bool{}
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		note := func(f *pflag.Flag) {
			flags[f.Name] = true
			if cmd.Name() == "serve" && !strings.Contains(text, "--"+f.Name) {
				t.Errorf("cmd/fingerpost/README.md does not name --%s of serve", f.Name)
			}
		}
		cmd.Flags().VisitAll(note)
		cmd.PersistentFlags().VisitAll(note)
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() && !strings.Contains(text, c.Name()) {
				t.Errorf("cmd/fingerpost/README.md does not name the command %s", c.Name())
			}
			walk(c)
		}
	}
	walk(newRoot(terminal{}))
	for _, m := range regexp.MustCompile(`--([a-z][a-z-]*[a-z])`).FindAllStringSubmatch(text, -1) {
		if !flags[m[1]] {
			t.Errorf("cmd/fingerpost/README.md names --%s, which no command has", m[1])
		}
	}
}

// TestReadmeShort: README.md is an introduction, so it has to be short.
func TestReadmeShort(t *testing.T) {
	b, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if words := len(strings.Fields(string(b))); words >= 900 {
		t.Errorf("README.md has %d words, it should have fewer than 900: details go to the rooms' documents", words)
	}
}
