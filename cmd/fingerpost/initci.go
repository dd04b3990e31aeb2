package main

import (
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/configsrc/folder"
)

// The files that init --ci writes at the top of the repository, each named by its word. In their content, {sh} is the
// config folder as a word of a shell, and {path} as a text in YAML, both relative to that top; {install} is the shell of
// ci/install, which leaves the program in the folder $bin.
//
//go:embed ci
var ciContents embed.FS

var ciFiles = []struct {
	word, name string
	next       string // what is left to do
}{
	{"hook", ".githooks/pre-commit", "git config core.hooksPath .githooks"},
	{"github", ".github/workflows/fingerpost.yml",
		"set FINGERPOST_ARCHIVE or FINGERPOST_SOURCE in .github/workflows/fingerpost.yml"},
	{"gitlab", ".gitlab-ci.fingerpost.yml",
		"set FINGERPOST_ARCHIVE or FINGERPOST_SOURCE in .gitlab-ci.fingerpost.yml, and include it in .gitlab-ci.yml"},
}

// installLine is a line of its own for {install}, whose indentation the whole step gets.
var installLine = regexp.MustCompile(`(?m)^ *\{install\}$`)

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
			return nil, nil, cli.Usage("--ci %q: it takes %s; for a new folder of that name write ./%s", args[0],
				strings.Join(ciWords(), ", "), args[0])
		}
	}
	if wrong != "" {
		return nil, nil, cli.Usage("--ci %q: it takes %s", wrong, strings.Join(ciWords(), ", "))
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
func initCI(t cli.Terminal, dir string, words []string) error {
	top, below, err := repositoryOf(dir)
	if err != nil {
		return err
	}
	under := strings.ReplaceAll(below, "'", "''") + "/"
	if below == "." {
		under = ""
	}
	install, err := ciContents.ReadFile("ci/install")
	if err != nil {
		return err
	}
	fill := strings.NewReplacer("{sh}", shellWord(below), "{path}/", under)
	for _, f := range ciFiles {
		if !slices.Contains(words, f.word) {
			continue
		}
		path := filepath.Join(top, f.name)
		_, missing := os.Lstat(path)
		content, err := ciContents.ReadFile("ci/" + f.word)
		if err != nil {
			return err
		}
		text := installLine.ReplaceAllStringFunc(fill.Replace(string(content)), func(line string) string {
			indent := strings.TrimSuffix(line, "{install}")
			return indent + strings.ReplaceAll(strings.TrimSpace(string(install)), "\n", "\n"+indent)
		})
		if err := writeNew(t, filepath.Dir(path), filepath.Base(path), []byte(text)); err != nil {
			return err
		}
		if f.word == "hook" && os.IsNotExist(missing) {
			if err := os.Chmod(path, 0o755); err != nil {
				return err
			}
		}
		fmt.Fprintf(t.Err, "next: %s\n", f.next)
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
