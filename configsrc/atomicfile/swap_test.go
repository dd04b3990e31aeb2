package atomicfile_test

import (
	"crypto/sha256"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"fingerpost/configsrc/atomicfile"
)

// TestSwap takes a file from one state to the next: put and taken back, put and left, saved by an editor in between.
func TestSwap(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the system does not tell whether somebody is writing a file")
	}
	dir := t.TempDir()
	folder := &atomicfile.Folder{Dir: dir, Disk: atomicfile.OSDisk{}, Log: slog.New(slog.DiscardHandler)}
	name := filepath.Join(dir, "a.hcl")
	swap := func(content string) *atomicfile.Swap {
		w := &atomicfile.Swap{Folder: folder, Name: "a.hcl", Target: name, Content: []byte(content)}
		switch info, err := os.Stat(name); {
		case errors.Is(err, fs.ErrNotExist):
			w.Creates = true
		case err != nil:
			t.Fatal(err)
		case content == "":
			w.Removes, w.Content = true, nil
			fallthrough
		default:
			w.Like, w.Old = info, sha256.Sum256([]byte(read(t, name)))
			if w.Removes {
				w.Like = nil
			}
		}
		if err := w.Stage(); err != nil {
			t.Fatal(err)
		}
		return w
	}
	is := func(want string) {
		t.Helper()
		got, err := os.ReadFile(name)
		if string(got) != want || errors.Is(err, fs.ErrNotExist) != (want == "") {
			t.Errorf("the file has %q, %v; want %q", got, err, want)
		}
	}
	put := func(w *atomicfile.Swap, want error) {
		t.Helper()
		if err := w.Put(); !errors.Is(err, want) {
			t.Errorf("put: %v, want %v", err, want)
		}
	}
	before := ""
	for _, next := range []string{"one\n", "two\n", ""} { // created, replaced, removed
		w := swap(next)
		is(before)
		put(w, nil)
		is(next)
		w.TakeBack()
		w.Discard()
		is(before)

		w = swap(next)
		write(t, name, "a person's\n")
		want := atomicfile.ErrChanged
		if before == "" {
			want = fs.ErrExist
		}
		put(w, want)
		w.Discard()
		is("a person's\n")
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
		if before != "" {
			write(t, name, before)
		}

		w = swap(next)
		put(w, nil)
		w.Discard()
		is(next)
		before = next
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v are left, %v", left, err)
	}
}
