package main

import (
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/cmd/testrig"
)

// private checks that only the owner can read what the patterns name: folders are 0700, files 0600.
func (r *rig) private(when string, patterns ...string) {
	r.t.Helper()
	for _, pattern := range patterns {
		roots, err := filepath.Glob(filepath.Join(r.dir, pattern))
		must(r.t, err)
		if len(roots) == 0 {
			r.t.Errorf("%s: there is no %s", when, pattern)
		}
		for _, root := range roots {
			err := filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
				if err != nil {
					return err
				}
				info, err := e.Info()
				if err != nil {
					return nil //nolint:nilerr // a table that a merge has removed
				}
				want := fs.FileMode(0o600)
				if e.IsDir() {
					want = 0o700
				}
				if info.Mode().Perm() != want {
					r.t.Errorf("%s: %s has mode %o, want %o", when, strings.TrimPrefix(name, r.dir), info.Mode().Perm(), want)
				}
				return nil
			})
			must(r.t, err)
		}
	}
}

// TestStoreIsPrivate: the store, what is moved aside, backups and what they are restored to, whatever the umask is.
func TestStoreIsPrivate(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	for _, umask := range []string{"000", "022", "177"} {
		t.Run(umask, func(t *testing.T) {
			t.Parallel()
			r := idleRig(t, t.TempDir(), nil)
			r.umask = umask
			r.start()
			run := func(args ...string) {
				t.Helper()
				if printed, code := r.run(args...); code != cli.ExitOK {
					t.Errorf("%v ends with %d: %s", args, code, printed)
				}
			}
			if status, _ := r.send("PUT", fmt.Sprintf("/%d", r.idOf("other")), `{"name":"Another"}`); status != http.StatusOK {
				t.Errorf("PUT: %d", status)
			}
			run("backup", "running.tgz", "--ops-url", r.ops)
			r.private("running", ".fingerpost", "running.tgz")
			r.halt()
			run("backup", "stopped.tgz", "--data", ".fingerpost")
			r.private("stopped", ".fingerpost", "stopped.tgz")
			run("restore", "stopped.tgz", "--force")
			r.private("restored", ".fingerpost", ".fingerpost.before-restore-*")
			run("restore", "stopped.tgz", "--data", "new")
			r.private("restored to a new place", "new")
			markers, err := filepath.Glob(filepath.Join(r.dir, ".fingerpost/marker.manifest.*"))
			must(t, err)
			must(t, os.Remove(markers[0]))
			r.start()
			r.private("damaged", ".fingerpost", ".fingerpost.damaged-*")
			if strings.Contains(r.logged(), `"mode":"0700"`) {
				t.Errorf("a warning without a reason: %s", r.logged())
			}
		})
	}
}

// TestWideStoreIsNarrowed: a store of an earlier release, with what it has moved aside.
func TestWideStoreIsNarrowed(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	widen := func(r *rig, dir string) {
		t.Helper()
		must(t, filepath.WalkDir(filepath.Join(r.dir, dir), func(name string, e fs.DirEntry, err error) error {
			if err == nil && e.IsDir() {
				return os.Chmod(name, 0o755)
			} else if err == nil {
				return os.Chmod(name, 0o644)
			}
			return err
		}))
	}
	r := newRig(t, nil)
	r.halt()
	aside := ".fingerpost.damaged-20260101T000000Z"
	must(t, os.CopyFS(filepath.Join(r.dir, aside), os.DirFS(filepath.Join(r.dir, ".fingerpost"))))
	widen(r, aside)
	widen(r, ".fingerpost")
	r.start()
	r.private("after a start", ".fingerpost", aside)
	for _, dir := range []string{".fingerpost", aside} {
		want := fmt.Sprintf(`"folder":%q,"mode":"0755"`, dir)
		if log := r.logged(); strings.Count(log, want) != 1 || !strings.Contains(log, `"level":"WARN"`) {
			t.Errorf("want one warning with %s: %s", want, log)
		}
	}
	r.halt()
	must(t, os.Chmod(filepath.Join(r.dir, ".fingerpost/LOCK"), 0o640)) // a file alone
	r.start()
	r.private("with a wide file", ".fingerpost")
	if !strings.Contains(r.logged(), `"folder":".fingerpost","mode":"0700","files":1`) {
		t.Errorf("no warning of the file: %s", r.logged())
	}
}
