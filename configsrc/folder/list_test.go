package folder

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
)

// TestListFindsEachName lists a folder of many names, in CI of thousands, including other files, links and names of
// maximum length.
func TestListFindsEachName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	want := map[string]bool{} // path → it can be read
	names := testrig.Size(t, 3000, 500)
	for i := range names {
		name := fmt.Sprintf("%s%04d.hcl", strings.Repeat("x", i%200), i)
		want[name] = true
	}
	want[strings.Repeat("y", 251)+".hcl"], want["sub/deep/a.hcl"], want["ü b.hcl"] = true, true, true
	err := os.MkdirAll(filepath.Join(dir, "sub", "deep"), 0o755)
	for name := range want {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(name), 0o644))
	}
	want["link.hcl"], want["lost.hcl"], want["folder.hcl"] = true, false, false
	err = errors.Join(err,
		os.Symlink("sub/deep/a.hcl", filepath.Join(dir, "link.hcl")),
		os.Symlink("nothing", filepath.Join(dir, "lost.hcl")),
		os.Symlink("sub", filepath.Join(dir, "linked")), // not followed
		os.Mkdir(filepath.Join(dir, "folder.hcl"), 0o755),
		os.Mkdir(filepath.Join(dir, ".git"), 0o755),
		os.WriteFile(filepath.Join(dir, ".git", "a.hcl"), nil, 0o644),
		os.WriteFile(filepath.Join(dir, "readme.md"), nil, 0o644))
	if err != nil {
		t.Fatal(err)
	}
	tr, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	got := map[string]bool{}
	err = tr.List(nil, func(e Entry) {
		if _, twice := got[e.Path]; twice {
			t.Errorf("%s comes twice", e.Path)
		}
		got[e.Path] = e.Err == nil
		same, _, _ := tr.Stat(e.Path)
		if e.Err == nil && !e.Stat.SameStat(same.Stat) {
			t.Errorf("%s is listed as %+v, and is %+v", e.Path, e, same)
		}
	})
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("%d names, want %d, %v", len(got), len(want), err)
		for _, name := range slices.Sorted(maps.Keys(want)) {
			if ok, there := got[name]; !there || ok != want[name] {
				t.Errorf("%s: there %v, to be read %v", name, there, ok)
			}
		}
	}
}
