package atomicfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fingerpost/configsrc/atomicfile"
)

func write(t *testing.T, name, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// onlyFiles fails if dir holds anything else, such as a leftover temporary file.
func onlyFiles(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(names, " ") {
		t.Errorf("%s holds %v, want %v", dir, got, names)
	}
}

func appendText(text string) func([]byte) ([]byte, error) {
	return func(src []byte) ([]byte, error) { return append(src, text...), nil }
}

func TestEditKeepsModeAndLinks(t *testing.T) {
	dir := t.TempDir()
	name := write(t, filepath.Join(dir, "a.hcl"), "one\n")
	if err := os.Chmod(name, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a.hcl", filepath.Join(dir, "link.hcl")); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Edit(dir, "link.hcl", appendText("two\n")); err != nil {
		t.Fatal(err)
	}
	if got := read(t, name); got != "one\ntwo\n" {
		t.Errorf("content is %q", got)
	}
	if info, _ := os.Lstat(name); info.Mode().Perm() != 0o640 {
		t.Errorf("mode is %v", info.Mode())
	}
	if target, err := os.Readlink(filepath.Join(dir, "link.hcl")); err != nil || target != "a.hcl" {
		t.Errorf("the link is gone: %q, %v", target, err)
	}
	onlyFiles(t, dir, "a.hcl", "link.hcl")
}

func TestEditPeopleWin(t *testing.T) {
	dir := t.TempDir()
	name := write(t, filepath.Join(dir, "a.hcl"), "base\n")
	saves := []string{"person one\n", "person two\n"}
	edit := func(src []byte) ([]byte, error) {
		if len(saves) > 0 { // an editor saves during the edit
			write(t, name, saves[0])
			saves = saves[1:]
		}
		return append(src, "edit\n"...), nil
	}
	if err := atomicfile.Edit(dir, "a.hcl", edit); !errors.Is(err, atomicfile.ErrChanged) {
		t.Fatalf("two saves in between: %v", err)
	}
	if got := read(t, name); got != "person two\n" {
		t.Errorf("a human save was lost: %q", got)
	}
	saves = []string{"person three\n"}
	if err := atomicfile.Edit(dir, "a.hcl", edit); err != nil {
		t.Fatalf("one save in between: %v", err)
	}
	if got := read(t, name); got != "person three\nedit\n" {
		t.Errorf("the edit is not on top of the save: %q", got)
	}
	onlyFiles(t, dir, "a.hcl")
}

func TestEditRefuses(t *testing.T) {
	dir := t.TempDir()
	outside := write(t, filepath.Join(t.TempDir(), "outside.hcl"), "x\n")
	if err := os.Symlink(outside, filepath.Join(dir, "out.hcl")); err != nil {
		t.Fatal(err)
	}
	hard := write(t, filepath.Join(dir, "hard.hcl"), "x\n")
	if err := os.Link(hard, filepath.Join(dir, "twin.hcl")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "folder.hcl"), 0o755); err != nil {
		t.Fatal(err)
	}
	never := func([]byte) ([]byte, error) { t.Error("edit was called"); return nil, nil }
	for path, want := range map[string]string{
		"out.hcl": "leads out", "hard.hcl": "hard links", "folder.hcl": "no regular file", "absent.hcl": "no such file",
	} {
		if err := atomicfile.Edit(dir, path, never); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error about %q", path, err, want)
		}
	}
	refused := errors.New("refused")
	name := write(t, filepath.Join(dir, "a.hcl"), "one\n")
	if err := atomicfile.Edit(dir, "a.hcl", func([]byte) ([]byte, error) { return nil, refused }); !errors.Is(err, refused) {
		t.Errorf("the edit's own error: %v", err)
	}
	if read(t, name) != "one\n" || read(t, outside) != "x\n" {
		t.Error("something was written")
	}
}

func TestCreateNeverReplaces(t *testing.T) {
	dir := t.TempDir()
	if err := atomicfile.Create(dir, "a.hcl", []byte("one\n")); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Create(dir, "a.hcl", []byte("two\n")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("creating it again: %v", err)
	}
	if got := read(t, filepath.Join(dir, "a.hcl")); got != "one\n" {
		t.Errorf("content is %q", got)
	}
	onlyFiles(t, dir, "a.hcl")
}
