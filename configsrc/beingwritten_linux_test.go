package configsrc_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"fingerpost/configsrc"
)

// An editor that writes in place may be between two system calls: its file is not swapped away under it.
func TestEditFileWaitsForWriters(t *testing.T) {
	dir := t.TempDir()
	name := write(t, filepath.Join(dir, "a.hcl"), "one\n")
	editor, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := configsrc.EditFile(dir, "a.hcl", appendText("two\n")); !errors.Is(err, configsrc.ErrChanged) {
		t.Errorf("while somebody writes: %v, want ErrChanged", err)
	}
	if _, err := editor.WriteString("theirs\n"); err != nil {
		t.Fatal(err)
	}
	if err := editor.Close(); err != nil {
		t.Fatal(err)
	}
	if got := read(t, name); got != "one\ntheirs\n" {
		t.Errorf("their text is gone: %q", got)
	}
	if err := configsrc.EditFile(dir, "a.hcl", appendText("two\n")); err != nil {
		t.Fatal(err)
	}
	if got := read(t, name); got != "one\ntheirs\ntwo\n" {
		t.Errorf("afterwards %q", got)
	}
	onlyFiles(t, dir, "a.hcl")
}
