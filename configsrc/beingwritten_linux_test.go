package configsrc_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/atomicfile"
)

// An editor that writes in place may be between two system calls: its file must not be exchanged.
func TestEditFileWaitsForWriters(t *testing.T) {
	dir := t.TempDir()
	name := write(t, filepath.Join(dir, "a.hcl"), "one\n")
	editor, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Edit(dir, "a.hcl", appendText("two\n")); !errors.Is(err, atomicfile.ErrChanged) {
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
	if err := atomicfile.Edit(dir, "a.hcl", appendText("two\n")); err != nil {
		t.Fatal(err)
	}
	if got := read(t, name); got != "one\ntheirs\ntwo\n" {
		t.Errorf("afterwards %q", got)
	}
	onlyFiles(t, dir, "a.hcl")
}

// While the folder is locked nothing is written; a short lock is waited for.
func TestLockedFolder(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	dir := t.TempDir()
	name := write(t, filepath.Join(dir, "a.hcl"), "one\n")
	lock := func() *os.File {
		f, err := os.Open(dir)
		must(t, err)
		must(t, syscall.Flock(int(f.Fd()), syscall.LOCK_EX))
		return f
	}
	f := lock()
	if err := atomicfile.Edit(dir, "a.hcl", appendText("two\n")); err == nil || !strings.Contains(err.Error(), "locked") {
		t.Errorf("an edit of a locked folder: %v", err)
	}
	if err := atomicfile.Create(dir, "b.hcl", []byte("b\n")); err == nil || !strings.Contains(err.Error(), "locked") {
		t.Errorf("a new file in a locked folder: %v", err)
	}
	onlyFiles(t, dir, "a.hcl")
	must(t, f.Close())
	f = lock()
	time.AfterFunc(20*time.Millisecond, func() { f.Close() })
	must(t, atomicfile.Edit(dir, "a.hcl", appendText("two\n")))
	if got := read(t, name); got != "one\ntwo\n" {
		t.Errorf("it holds %q", got)
	}
}

// A leftover that an editor still writes to is a person's, whatever it contains so far.
func TestStrayBeingWritten(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "acme.hcl"), strayNew)
	temp := write(t, filepath.Join(dir, strayName("acme.hcl", strayOld, strayNew)), strayOld)
	editor, err := os.OpenFile(temp, os.O_WRONLY|os.O_APPEND, 0)
	must(t, err)
	newNode(t, dir, nodeOptions{loadOnly: true})
	_, err = editor.WriteString("# theirs\n")
	must(t, err)
	must(t, editor.Close())
	sameTree(t, dir, map[string]string{"acme.hcl": strayOld + "# theirs\n"})
}

// A leftover's name on something that is not a file stays, and blocks nothing.
func TestStrayFIFO(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "acme.hcl"), strayNew)
	must(t, syscall.Mkfifo(filepath.Join(dir, strayName("acme.hcl", strayOld, strayNew)), 0o644))
	n := newNode(t, dir, nodeOptions{loadOnly: true})
	if got := n.name("acme.example"); got != "new" {
		t.Errorf("it serves %q", got)
	}
	if len(tree(t, dir)) != 2 {
		t.Errorf("the FIFO is gone: %v", tree(t, dir))
	}
}
