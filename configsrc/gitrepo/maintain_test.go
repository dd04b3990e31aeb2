package gitrepo_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/gitrepo"
)

// Loose objects are packed without a remote, too: at once where there are many, and else when nothing was committed for
// a while. Writes go on meanwhile.
func TestMaintenance(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]gitrepo.Maintenance{
		"many":  {Every: 10 * time.Millisecond, Quiet: time.Hour, Loose: 20},
		"quiet": {Every: 10 * time.Millisecond, Quiet: 100 * time.Millisecond, Loose: 1_000_000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clone := newClone(t)
			var logged testrig.Log
			r := start(t, clone, func(o *gitrepo.Options) {
				o.Maintenance, o.Logger = m, slog.New(slog.NewTextHandler(&logged, nil))
			})
			loose := func() int {
				list, err := filepath.Glob(filepath.Join(clone, ".git/objects/[0-9a-f][0-9a-f]/*"))
				if err != nil {
					t.Fatal(err)
				}
				return len(list)
			}
			for i := range 12 {
				r.mustWrite(key("ci", fmt.Sprint("r", i)), "acme", numbered(i))
			}
			testrig.Eventually(t, "the objects are packed", func() bool { return loose() <= 20 })
			packs, err := filepath.Glob(filepath.Join(clone, ".git/objects/pack/*.pack"))
			if err != nil || len(packs) == 0 {
				t.Errorf("%q, %v", packs, err)
			}
			if got := r.mustWrite(key("ci", "last"), "other", "Last"); got.Commit == "" {
				t.Error("the last write is not committed")
			}
			r.end()
			r.clean()
			if text := logged.String(); strings.Contains(text, "maintenance has failed") { // the first one finds no pack
				t.Error(text)
			}
		})
	}
}

// A maintenance that is killed while it joins packs leaves an index that names packs which are gone. The next start drops
// it, and nothing is missing.
func TestMaintenanceIsKilled(t *testing.T) {
	t.Parallel()
	clone := newClone(t)
	for i := range 3 {
		save(t, clone, "README", fmt.Sprint(i))
		testrig.Git(t, clone, "commit", "-qam", "more")
		testrig.Git(t, clone, "maintenance", "run", "--quiet", "--task=loose-objects")
	}
	testrig.Git(t, clone, "multi-pack-index", "write")
	testrig.Git(t, clone, "multi-pack-index", "repack", "--batch-size=0")
	packs, err := filepath.Glob(filepath.Join(clone, ".git/objects/pack/loose-*"))
	if err != nil || len(packs) < 3 {
		t.Fatalf("%q, %v", packs, err)
	}
	for _, path := range packs { // as git does it, before it writes the index anew
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	save(t, clone, ".git/fingerpost-locks", "objects/maintenance.lock\nobjects/pack/multi-pack-index.lock\n")
	if _, err := testrig.TryGit(clone, "fsck", "--strict", "--no-dangling"); err == nil {
		t.Fatal("git finds nothing broken")
	}
	r := start(t, clone, nil)
	r.mustWrite(key("ci", "r1"), "acme", "One")
	r.end()
	r.clean()
}
