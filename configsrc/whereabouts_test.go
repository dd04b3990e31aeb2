package configsrc

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// TestWhereabouts: a folder that a link leads to is remembered for no longer than the link leads there.
func TestWhereabouts(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(top, "current")
	w := &whereabouts{dir: link}
	for _, release := range []string{"one", "two"} {
		want := filepath.Join(top, release)
		if err := os.Mkdir(want, 0o755); err != nil {
			t.Fatal(err)
		}
		_ = os.Remove(link)
		if err := os.Symlink(want, link); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			root, above, err := w.find()
			if err != nil || root != want || above[0] != filepath.Join(want, ".git") || above[1] != filepath.Join(top, ".git") {
				t.Errorf("%q %q, %v; want %s", root, above, err, want)
			}
		}
	}
}

// TestReadPlain: what a link leads to, or has two names, is not taken for a file that can be replaced by its path.
func TestReadPlain(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the system does not tell whether a path leads through links")
	}
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(top, name) }
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ok(os.Mkdir(at("team"), 0o755))
	ok(os.WriteFile(at("team/a.hcl"), []byte("text"), 0o644))
	if _, _, can := readPlain(at("team/a.hcl"), 4); !can {
		t.Skip("the kernel is older than openat2")
	}
	ok(os.Symlink("team", at("linked")))
	ok(os.Symlink("a.hcl", at("team/linked.hcl")))
	for name, limit := range map[string]int64{"linked/a.hcl": 100, "team/linked.hcl": 100, "team": 100, "none.hcl": 100, "team/a.hcl": 3} {
		if b, _, can := readPlain(at(name), limit); can {
			t.Errorf("%s with limit %d: read %q", name, limit, b)
		}
	}
	ok(os.Link(at("team/a.hcl"), at("second.hcl")))
	if _, _, can := readPlain(at("team/a.hcl"), 100); can {
		t.Error("a file with two names was read")
	}
}
