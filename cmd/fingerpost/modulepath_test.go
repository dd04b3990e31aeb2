package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
)

// TestModulePath: .ci/module-path renames the module in a copy so that every import is found, and back to the same bytes.
// A campaign also builds and tests under the other name.
func TestModulePath(t *testing.T) {
	testrig.Thorough(t) // it lists the packages of a copy of the tree
	if _, err := os.Stat(filepath.Join("..", "..", ".git")); err != nil {
		t.Skip("the tree is not a git checkout: which files belong to it is not known")
	}
	t.Parallel()
	top := filepath.Join("..", "..")
	copied := t.TempDir()
	tracked := run(t, top, "git", "ls-files", "-z")
	before := map[string][]byte{}
	for name := range strings.SplitSeq(strings.TrimRight(tracked, "\x00"), "\x00") {
		content, err := os.ReadFile(filepath.Join(top, name))
		if err != nil {
			continue // removed, and not yet committed
		}
		before[name] = content
		path := filepath.Join(copied, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o644)
		if bytes.HasPrefix(content, []byte("#!")) {
			mode = 0o755
		}
		if err := os.WriteFile(path, content, mode); err != nil {
			t.Fatal(err)
		}
	}
	const other = "example.org/team/fingerpost"
	was := strings.TrimSpace(run(t, copied, "go", "list", "-m"))
	run(t, copied, "./.ci/module-path", other)
	for _, module := range []string{".", "bench"} {
		list := run(t, filepath.Join(copied, module), "go", "list", "-mod=mod", "-test", "-deps", "./...") // fails for an import that is nowhere
		if strings.Contains("\n"+list, "\n"+was+"/") {
			t.Errorf("these packages have the old path:\n%s", list)
		}
	}
	for name := range before {
		if strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(name, ".ci/") {
			for _, text := range textsWith(t, filepath.Join(copied, name), other+"/") {
				t.Errorf("%s: %s was renamed, but does not import anything: build it of the program's name and a slash", name, text)
			}
		}
	}
	if testrig.Full() {
		run(t, copied, "go", "build", "./...")
		run(t, copied, "go", "test", "-short", "./...")
	}
	run(t, copied, "./.ci/module-path", was)
	for name, content := range before {
		if now, err := os.ReadFile(filepath.Join(copied, name)); err != nil || !bytes.Equal(now, content) {
			t.Errorf("%s has other bytes after a rename and back (%v)", name, err)
		}
	}
}

// run runs a program in a folder and returns what it prints.
func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	var out, problems bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "FINGERPOST_") })
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &problems
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out.String(), problems.String())
	}
	return out.String()
}

// textsWith lists the texts of a Go file that begin with prefix, but for imports.
func textsWith(t *testing.T, path, prefix string) (texts []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	must(t, err)
	ast.Inspect(file, func(n ast.Node) bool {
		if _, is := n.(*ast.ImportSpec); is {
			return false
		}
		if text, is := n.(*ast.BasicLit); is && text.Kind == token.STRING && strings.HasPrefix(text.Value[1:], prefix) {
			texts = append(texts, text.Value)
		}
		return true
	})
	return texts
}
