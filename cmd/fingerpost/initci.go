package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"fingerpost/configsrc/folder"
)

// A ciFile is a file that init --ci writes at the top of the repository. In its content, {sh} is the config folder as a
// word of a shell, and {path} as a text in YAML, both relative to that top.
type ciFile struct {
	word, name, content string
	next                string // what is left to do; "": nothing
}

var ciFiles = []ciFile{
	{"hook", ".githooks/pre-commit", `#!/bin/sh
# Refuses a commit whose config files serve would refuse. It looks at what is staged, not at the work tree.
# Switch it on: git config core.hooksPath .githooks
set -e
staged=$(mktemp -d)
trap 'rm -rf "$staged"' EXIT
mkdir -p "$staged"/{sh}
git ls-files -z -- {sh} | git checkout-index -z --stdin --prefix="$staged"/
cd "$staged"
bad=
fingerpost fmt --check --config {sh} || bad="run 'fingerpost fmt'"
fingerpost validate --config {sh} || bad="${bad:+$bad and }mend what validate says"
[ -z "$bad" ] || { echo "Not committed: $bad, stage the files with git add, and commit again." >&2; exit 1; }
`, "git config core.hooksPath .githooks"},
	{"github", ".github/workflows/fingerpost.yml", `# Checks the config files of each pull request, shows problems at their lines, and what the request changes.
name: fingerpost
on:
  pull_request:
    paths: ['{path}/**']
jobs:
  validate:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
        with: {fetch-depth: 0} # plan compares with the branch that the request goes to
      # Install the fingerpost binary here.
      - run: fingerpost fmt --check --config {sh}
      - run: fingerpost validate --format github --config {sh}
      - run: fingerpost plan --base "origin/$GITHUB_BASE_REF" --config {sh} || [ $? -eq 1 ] # 1: there are changes
`, "install the binary in .github/workflows/fingerpost.yml, where it says so"},
	{"gitlab", ".gitlab-ci.fingerpost.yml", `# Include it in .gitlab-ci.yml: include: { local: .gitlab-ci.fingerpost.yml }
fingerpost:
  # Use an image with the fingerpost binary.
  variables: {GIT_DEPTH: 0}
  script:
    - |
      fingerpost fmt --check --config {sh}
      fingerpost validate --config {sh}
      fingerpost plan --base "$CI_MERGE_REQUEST_DIFF_BASE_SHA" --config {sh} || [ $? -eq 1 ] # 1: there are changes
  rules:
    - if: $CI_PIPELINE_SOURCE == "merge_request_event"
      changes: ['{path}/**/*']
`, "include .gitlab-ci.fingerpost.yml in .gitlab-ci.yml"},
}

// ciWords are what --ci takes.
func ciWords() (words []string) {
	for _, f := range ciFiles {
		words = append(words, f.word)
	}
	return words
}

// allCI is the value of --ci without one.
const allCI = "all"

// ciArgs returns the words of --ci, and the other arguments. The words may stand behind it as an argument of their own:
// "--ci hook config".
func ciArgs(ci, args []string) (words, rest []string, err error) {
	alone := slices.Equal(ci, []string{allCI})
	if alone {
		ci = nil
		for _, arg := range args {
			if list := strings.Split(arg, ","); ci == nil && wrongWord(list) == "" {
				ci = list
			} else {
				rest = append(rest, arg)
			}
		}
		args = rest
	}
	wrong := wrongWord(ci)
	if wrong == "" && len(args) > 1 {
		wrong = args[1]
	}
	if wrong == "" && alone && ci == nil && len(args) == 1 && !strings.ContainsRune(args[0], filepath.Separator) {
		if info, err := os.Stat(args[0]); err != nil || !info.IsDir() { // more likely a wrong word
			return nil, nil, usage("--ci %q: it takes %s; for a new folder of that name write ./%s", args[0],
				strings.Join(ciWords(), ", "), args[0])
		}
	}
	if wrong != "" {
		return nil, nil, usage("--ci %q: it takes %s", wrong, strings.Join(ciWords(), ", "))
	}
	if alone && ci == nil {
		ci = ciWords()
	}
	return ci, args, nil
}

// wrongWord returns the first word that --ci does not take, "" for none.
func wrongWord(list []string) string {
	for _, word := range list {
		if !slices.Contains(ciWords(), word) {
			return word
		}
	}
	return ""
}

// initCI writes what the words name.
func initCI(t terminal, dir string, words []string) error {
	top, below, err := repositoryOf(dir)
	if err != nil {
		return err
	}
	under := strings.ReplaceAll(below, "'", "''") + "/"
	if below == "." {
		under = ""
	}
	fill := strings.NewReplacer("{sh}", shellWord(below), "{path}/", under)
	for _, f := range ciFiles {
		if !slices.Contains(words, f.word) {
			continue
		}
		path := filepath.Join(top, f.name)
		_, missing := os.Lstat(path)
		if err := writeNew(t, filepath.Dir(path), filepath.Base(path), []byte(fill.Replace(f.content))); err != nil {
			return err
		}
		if f.word == "hook" && os.IsNotExist(missing) {
			if err := os.Chmod(path, 0o755); err != nil {
				return err
			}
		}
		fmt.Fprintf(t.err, "next: %s\n", f.next)
	}
	return nil
}

// repositoryOf returns the top of the git repository around a folder, and the folder's path in it. Outside of one the
// folder next to it is to become the top.
func repositoryOf(dir string) (top, below string, err error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", "", err
	}
	top, found := folder.GitTop(abs)
	if !found {
		top = filepath.Dir(abs)
	}
	below, err = filepath.Rel(top, abs)
	return top, filepath.ToSlash(below), err
}

// shellWord quotes a text for a POSIX shell, if it needs quotes.
func shellWord(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-", r))
	}) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
