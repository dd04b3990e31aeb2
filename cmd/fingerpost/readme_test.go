package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fingerpost/cmd/fingerpost/cli"
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
			if c.IsAvailableCommand() && !regexp.MustCompile("`[^`\n]*\\b"+c.Name()+"\\b").MatchString(text) {
				t.Errorf("cmd/fingerpost/README.md does not name the command %s", c.Name())
			}
			walk(c)
		}
	}
	walk(newRoot(cli.Terminal{}))
	for _, m := range regexp.MustCompile(`--([a-z][a-z-]*[a-z])`).FindAllStringSubmatch(text, -1) {
		if !flags[m[1]] {
			t.Errorf("cmd/fingerpost/README.md names --%s, which no command has", m[1])
		}
	}
}

// TestReadmeRuns runs the commands of README.md as they are printed, in one shell, on a copy of what a fresh clone has,
// but for "go test": the server in the background, and "go run ./cmd/fingerpost" with the binary of the tests.
func TestReadmeRuns(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short")
	}
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	shim := "#!/bin/sh\n[ \"$1 $2\" = 'run ./cmd/fingerpost' ] && shift 2 && exec fingerpost \"$@\"\n"
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "bin", "go"), []byte(shim), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(dir, "work", "projects.d"), os.DirFS("../../projects.d")); err != nil {
		t.Fatal(err)
	}
	steps := slices.DeleteFunc(guideSteps(t, string(text)), func(s guideStep) bool { return strings.HasPrefix(s.command, "go test") })
	for i := range steps {
		command, _, _ := strings.Cut(steps[i].command, "  #")
		if strings.Contains(command, "fingerpost serve") {
			command = strings.TrimSpace(command) + " 2> serve.log &\n"
		}
		steps[i].command = command
		steps[i].prints = strings.TrimSpace(steps[i].prints) + "\n"
	}
	if len(steps) < 5 {
		t.Errorf("README.md has only %d commands", len(steps))
	}
	// A reader looks for the server's line and copies the key before the next command.
	after := func(prefix string, step guideStep) {
		at := slices.IndexFunc(steps, func(s guideStep) bool { return strings.Contains(s.command, prefix) })
		steps = slices.Insert(steps, at+1, step)
	}
	after("fingerpost serve", guideStep{"curl -sf --retry 30 --retry-delay 1 --retry-connrefused http://127.0.0.1:9090/readyz\n", "ok\n"})
	after("keys create", guideStep{command: "fingerpost reload --ops-url http://127.0.0.1:9090 > reload.json\n"})
	runGuide(t, append([]guideStep{{command: "export FINGERPOST_URL=http://127.0.0.1:8080\n"}}, steps...), dir)
}

// TestReadmeShort: README.md is an introduction, so it has to be short.
func TestReadmeShort(t *testing.T) {
	b, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if words := len(strings.Fields(string(b))); words >= 700 {
		t.Errorf("README.md has %d words, it should have fewer than 700: details go to the rooms' documents", words)
	}
	_, rooms, _ := strings.Cut(string(b), "| room | does |\n|---|---|\n")
	table, _, _ := strings.Cut(rooms, "\n\n")
	if rows := strings.Split(table, "\n"); len(rows) > 10 || len(rows) < 5 {
		t.Errorf("README.md has %d rooms, it should have ten at most", len(rows))
	}
}
