package configsrc_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc"
	"fingerpost/configsrc/atomicfile"
)

// strayName returns the name of a temporary file that was to be exchanged with target.
func strayName(target, before, after string) string {
	a, b := sha256.Sum256([]byte(before)), sha256.Sum256([]byte(after))
	return fmt.Sprintf(".fingerpost-4711-%x-%x-%s.tmp", a[:8], b[:8], target)
}

// tree reads all files of a folder, hidden ones too.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(dir, name)
		found[filepath.ToSlash(rel)] = "(" + e.Type().String() + ")"
		if e.Type().IsRegular() {
			found[filepath.ToSlash(rel)] = read(t, name)
		}
		return nil
	})
	must(t, err)
	return found
}

func sameTree(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	got := tree(t, dir)
	for name, content := range got {
		if want[name] != content {
			t.Errorf("%s holds %q, want %q", name, content, want[name])
		}
	}
	for name := range want {
		if _, ok := got[name]; !ok {
			t.Errorf("%s is gone", name)
		}
	}
}

var (
	strayOld   = named("acme", "old", "acme.example")
	strayNew   = named("acme", "new", "acme.example")
	strayHuman = named("acme", "human", "acme.example")
	strayLater = named("acme", "later", "acme.example")
)

// strayCases are what an interrupted write may leave: the files after it, and after the next start.
var strayCases = map[string]struct{ cut, want map[string]string }{
	"cut while it was written": {
		map[string]string{"acme.hcl": strayOld, ".fingerpost-4711.tmp": strayNew[:20]},
		map[string]string{"acme.hcl": strayOld},
	},
	"before the exchange": {
		map[string]string{"acme.hcl": strayOld, strayName("acme.hcl", strayOld, strayNew): strayNew},
		map[string]string{"acme.hcl": strayOld},
	},
	"after the exchange": {
		map[string]string{"acme.hcl": strayNew, strayName("acme.hcl", strayOld, strayNew): strayOld},
		map[string]string{"acme.hcl": strayNew},
	},
	"after the exchange, saved since": {
		map[string]string{"acme.hcl": strayLater, strayName("acme.hcl", strayOld, strayNew): strayOld},
		map[string]string{"acme.hcl": strayLater},
	},
	"a save came in before the exchange": {
		map[string]string{"acme.hcl": strayNew, strayName("acme.hcl", strayOld, strayNew): strayHuman},
		map[string]string{"acme.hcl": strayHuman},
	},
	"a save came in before the exchange, another since": {
		map[string]string{"acme.hcl": strayLater, strayName("acme.hcl", strayOld, strayNew): strayHuman},
		map[string]string{"acme.hcl": strayLater, "acme.hcl.4711~": strayHuman},
	},
	"before a removal": {
		map[string]string{"acme.hcl": strayOld, strayName("acme.hcl", strayOld, ""): ""},
		map[string]string{"acme.hcl": strayOld},
	},
	"after a removal": {
		map[string]string{"other.hcl": project("other"), strayName("acme.hcl", strayOld, ""): strayOld},
		map[string]string{"other.hcl": project("other")},
	},
	"a save came in before a removal": {
		map[string]string{strayName("acme.hcl", strayOld, ""): strayHuman},
		map[string]string{"acme.hcl": strayHuman},
	},
	"a save came in before a removal, another since": {
		map[string]string{"acme.hcl": strayLater, strayName("acme.hcl", strayOld, ""): strayHuman},
		map[string]string{"acme.hcl": strayLater, "acme.hcl.4711~": strayHuman},
	},
	"in a sub-folder": {
		map[string]string{"sub/acme.hcl": strayNew, "sub/" + strayName("acme.hcl", strayOld, strayNew): strayHuman, "sub/deep/.fingerpost-1.tmp": ""},
		map[string]string{"sub/acme.hcl": strayHuman},
	},
	"somebody else's": {
		map[string]string{"acme.hcl": strayOld, ".fingerpost-mine.tmp": "x", ".fingerpost-1-2-acme.hcl.tmp": "y", ".other-1.tmp": "z"},
		map[string]string{"acme.hcl": strayOld, ".fingerpost-mine.tmp": "x", ".fingerpost-1-2-acme.hcl.tmp": "y", ".other-1.tmp": "z"},
	},
}

// TestStrays restarts on the leftovers of an interrupted write, with the store that knew the old files and without.
func TestStrays(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	for name, c := range strayCases {
		for _, kept := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, store %v", name, kept), func(t *testing.T) {
				t.Parallel()
				dir, data := t.TempDir(), filepath.Join(t.TempDir(), "store")
				if kept {
					write(t, filepath.Join(dir, "acme.hcl"), strayOld)
					newNode(t, dir, nodeOptions{data: data, loadOnly: true}).stop()
					must(t, os.Remove(filepath.Join(dir, "acme.hcl")))
				}
				for file, content := range c.cut {
					write(t, filepath.Join(dir, file), content)
				}
				newNode(t, dir, nodeOptions{data: data, readOnly: true, loadOnly: true}).stop()
				sameTree(t, dir, c.cut) // a reader changes nothing

				n := newNode(t, dir, nodeOptions{data: data, loadOnly: true, accept: true})
				sameTree(t, dir, c.want)
				for file, want := range map[string]string{strayOld: "old", strayNew: "new", strayHuman: "human", strayLater: "later"} {
					if c.want["acme.hcl"]+c.want["sub/acme.hcl"] == file && n.name("acme.example") != want {
						t.Errorf("it serves %q, want %q", n.name("acme.example"), want)
					}
				}
			})
		}
	}
}

// TestStraysWhileRunning: the next look clears what another process left, unless that process is still at work.
func TestStraysWhileRunning(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "acme.hcl"), strayNew)
	n := newNode(t, dir, nodeOptions{})
	unlock, err := atomicfile.Lock(dir) // as a write does
	must(t, err)
	write(t, filepath.Join(dir, ".fingerpost-1.tmp"), "half")
	write(t, filepath.Join(dir, strayName("acme.hcl", strayOld, strayNew)), strayHuman)
	before := tree(t, dir)
	must(t, n.source.Reload(context.Background()))
	sameTree(t, dir, before)
	must(t, unlock.Close())
	// A sweep would find it; the test does not wait for one.
	must(t, n.source.Reload(context.Background()))
	sameTree(t, dir, map[string]string{"acme.hcl": strayHuman})
	n.untilName("acme.example", "human")
	n.untilState(configsrc.StateOK)
}

// TestStraysBySweep waits for a sweep by the timer.
func TestStraysBySweep(t *testing.T) {
	testrig.Thorough(t)
	testrig.Slow(t)
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "acme.hcl"), strayNew)
	n := newNode(t, dir, nodeOptions{})
	write(t, filepath.Join(dir, strayName("acme.hcl", strayOld, strayNew)), strayHuman)
	n.untilName("acme.example", "human")
	sameTree(t, dir, map[string]string{"acme.hcl": strayHuman})
}

// TestStraysBehindLinks: a link may lead into a folder that is not listed.
func TestStraysBehindLinks(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "..v1/acme.hcl"), strayNew)
	write(t, filepath.Join(dir, "..v1", strayName("acme.hcl", strayOld, strayNew)), strayHuman)
	must(t, os.Symlink("..v1", filepath.Join(dir, "..data")))
	must(t, os.Symlink("..data/acme.hcl", filepath.Join(dir, "acme.hcl")))
	n := newNode(t, dir, nodeOptions{loadOnly: true})
	if got := n.name("acme.example"); got != "human" {
		t.Errorf("it serves %q", got)
	}
	onlyFiles(t, filepath.Join(dir, "..v1"), "acme.hcl")
}

// TestLongName: a name that leaves no room for the temporary one is refused, and nothing is left.
func TestLongName(t *testing.T) {
	dir := t.TempDir()
	long := strings.Repeat("x", 191) // and .hcl
	for name, ok := range map[string]bool{long[1:] + ".hcl": true, long + ".hcl": false} {
		write(t, filepath.Join(dir, name), "one\n")
		err := atomicfile.Edit(dir, name, appendText("two\n"))
		if ok && err != nil || !ok && (err == nil || !strings.Contains(err.Error(), "rename it")) {
			t.Errorf("%d bytes: %v", len(name), err)
		}
		if want := map[bool]string{true: "one\ntwo\n", false: "one\n"}[ok]; read(t, filepath.Join(dir, name)) != want {
			t.Errorf("%d bytes: %q", len(name), read(t, filepath.Join(dir, name)))
		}
	}
	names := []string{long[1:] + ".hcl", long + ".hcl"}
	slices.Sort(names)
	onlyFiles(t, dir, names...)
}
