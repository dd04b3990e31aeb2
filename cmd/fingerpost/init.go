package main

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"fingerpost/configsrc/atomicfile"
)

// The folder that init writes: commented, valid, formatted, and without a key, because each installation makes its own.
//
//go:embed example
var example embed.FS

func newInit(t terminal) *cobra.Command {
	ci := false
	cmd := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Write a commented example folder",
		Long: "Writes an example config folder (projects.d when DIR is left out), .gitattributes and .gitignore. What exists is left alone.\n" +
			"With --ci also a pre-commit hook, and jobs for GitHub and GitLab that check each pull request.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := configDir(cmd)
			if len(args) == 1 {
				dir = args[0]
			}
			if err := initDir(t, dir); err != nil || !ci {
				return err
			}
			return initCI(t, dir)
		},
	}
	cmd.Flags().BoolVar(&ci, "ci", false, "also write a pre-commit hook and CI jobs for GitHub and GitLab")
	return cmd
}

// gitFiles are written next to the config folder, for git.
var gitFiles = []struct{ name, content string }{
	{".gitattributes", "# The same commit must have the same bytes on every node.\n*.hcl text eol=lf\n# Mail bodies are sent as they are.\nmail/** -text\n"},
	{".gitignore", "# The store, derived from the files, and what must never be committed.\n/.fingerpost/\nseal.key\n.fingerpost-*.tmp\n"},
}

// ciFiles are written next to the config folder with --ci. %s is the folder's name.
var ciFiles = []struct {
	name, content string
	runs          bool // is a program
}{
	{".githooks/pre-commit", `#!/bin/sh
# Refuses a commit of files that serve would refuse. Switch it on: git config core.hooksPath .githooks
set -e
fingerpost fmt --check --config %[1]s
fingerpost validate --config %[1]s
`, true},
	{".github/workflows/fingerpost.yml", `# Checks the config files of each pull request, and shows problems at their lines.
name: fingerpost
on:
  pull_request:
    paths: ["%[1]s/**"]
jobs:
  validate:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      # Install the fingerpost binary here.
      - run: fingerpost fmt --check --config %[1]s
      - run: fingerpost validate --format github --config %[1]s
`, false},
	{".gitlab-ci.fingerpost.yml", `# Include it in .gitlab-ci.yml: include: { local: .gitlab-ci.fingerpost.yml }
fingerpost:
  # Use an image with the fingerpost binary.
  script:
    - fingerpost fmt --check --config %[1]s
    - fingerpost validate --config %[1]s
  rules:
    - if: $CI_PIPELINE_SOURCE == "merge_request_event"
      changes: ["%[1]s/**/*"]
`, false},
}

func initCI(t terminal, dir string) error {
	top, name := filepath.Split(filepath.Clean(dir))
	for _, f := range ciFiles {
		path := filepath.Join(top, f.name)
		_, err := os.Lstat(path)
		if err := writeNew(t, filepath.Dir(path), filepath.Base(path), fmt.Appendf(nil, f.content, name)); err != nil {
			return err
		}
		if f.runs && os.IsNotExist(err) {
			if err := os.Chmod(path, 0o755); err != nil {
				return err
			}
		}
	}
	return nil
}

func initDir(t terminal, dir string) error {
	if entries, err := os.ReadDir(dir); err == nil {
		for _, e := range entries {
			if filepath.Ext(e.Name()) == ".hcl" {
				return no("%s has config files already (%s): nothing was written", dir, e.Name())
			}
		}
	}
	err := fs.WalkDir(example, "example", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := example.ReadFile(name)
		if err != nil {
			return err
		}
		return writeNew(t, dir, strings.TrimPrefix(name, "example/"), b)
	})
	if err != nil {
		return err
	}
	for _, f := range gitFiles {
		if err := writeNew(t, filepath.Dir(filepath.Clean(dir)), f.name, []byte(f.content)); err != nil {
			return err
		}
	}
	fmt.Fprintf(t.err, "next: fingerpost keys create my-service --allow resolve --config %s, then fingerpost serve --config %s\n", dir, dir)
	return nil
}

// writeNew writes a file that does not exist yet, with its folder, and prints its name.
func writeNew(t terminal, dir, name string, content []byte) error {
	path := filepath.Join(dir, name)
	if _, err := os.Lstat(path); err == nil {
		fmt.Fprintf(t.err, "%s exists and was left alone\n", path)
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := atomicfile.Create(dir, name, content); err != nil {
		return err
	}
	_, err := fmt.Fprintln(t.out, path)
	return err
}
