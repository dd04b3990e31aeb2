package gitrepo_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/gitrepo"
)

// lockedClone names the clone for the process that TestRefLockAfterCrash starts.
const lockedClone = "GITREPO_TEST_LOCKED"

// killGit lets the next git that holds the locks of refs be killed, and with it the process whose id is in a file.
const killGit = `#!/bin/sh
[ "$1" = prepared ] && [ -e .git/kill-me ] || exit 0
service=$(cat .git/kill-me)
rm .git/kill-me
[ "$service" = 0 ] || kill -9 "$service"
kill -9 "$PPID"
`

// diesInUpdateRef makes a hook that kills git while it holds the locks of refs.
func diesInUpdateRef(t *testing.T, clone string) (kill string) {
	t.Helper()
	save(t, clone, ".git/hooks/reference-transaction", killGit)
	if err := os.Chmod(filepath.Join(clone, ".git/hooks/reference-transaction"), 0o755); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(clone, ".git", "kill-me")
}

// TestLockedChild is the service that TestRefLockAfterCrash kills.
func TestLockedChild(t *testing.T) {
	clone := os.Getenv(lockedClone)
	if clone == "" {
		t.Skip("runs in a process of TestRefLockAfterCrash only")
	}
	r := start(t, clone, func(o *gitrepo.Options) { o.Hooks = true })
	save(t, clone, ".git/kill-me", strconv.Itoa(os.Getpid()))
	r.mustWrite(key("ci", "r1"), "acme", "One")
	t.Error("it lives")
}

var refLocks = []string{"HEAD.lock", "refs/heads/main.lock"}

// The locks of refs that git leaves when it ends with the service, as at a power cut, go at the next start.
func TestRefLockAfterCrash(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	clone := newClone(t)
	diesInUpdateRef(t, clone)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^TestLockedChild$")
	cmd.Env = append(os.Environ(), lockedClone+"="+clone)
	if out, err := cmd.CombinedOutput(); err == nil || cmd.ProcessState.ExitCode() >= 0 {
		t.Fatalf("it was not killed: %v\n%s", err, out)
	}
	for _, name := range refLocks {
		if _, err := os.Lstat(filepath.Join(clone, ".git", name)); err != nil {
			t.Fatal(err)
		}
	}
	r := start(t, clone, nil)
	testrig.Eventually(t, "the write is committed", func() bool { return r.repo.Status().Pending == 0 })
	if got := testrig.Git(t, clone, "log", "-1", "--format=%(trailers:key=Fingerpost-Request,valueonly)"); got != "r1" {
		t.Errorf("HEAD has the request %q", got)
	}
	r.clean()
}

// The locks that a killed git leaves while the service lives go within seconds, and the commit is made.
func TestRefLockOfAKilledGit(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	clone := newClone(t)
	kill := diesInUpdateRef(t, clone)
	r := start(t, clone, func(o *gitrepo.Options) { o.Hooks = true })
	save(t, clone, ".git/kill-me", "0")
	if got := r.mustWrite(key("ci", "r1"), "acme", "One"); got.Commit == "" {
		t.Error("the write is not committed")
	}
	if _, err := os.Lstat(kill); err == nil {
		t.Error("no git was killed")
	}
	r.clean()
}

// A lock of somebody else stays, also at a start. The status names it with its age while it holds commits up.
func TestForeignLockIsNamed(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"index.lock", "HEAD.lock", "refs/heads/main.lock"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clone := newClone(t)
			r := start(t, clone, nil)
			r.mustWrite(key("ci", "r1"), "acme", "One")
			r.end()
			lock := filepath.Join(clone, ".git", name)
			save(t, clone, filepath.Join(".git", name), "")
			hourAgo := time.Now().Add(-time.Hour)
			if err := os.Chtimes(lock, hourAgo, hourAgo); err != nil {
				t.Fatal(err)
			}
			r = start(t, clone, func(o *gitrepo.Options) { o.Ack = gitrepo.AckFile })
			if name != "index.lock" { // which refuses writes: a person's git may be about to overwrite the file
				r.mustWrite(key("ci", "r2"), "acme", "Two")
			}
			st := r.repo.Status()
			if len(st.Locks) != 1 || st.Locks[0].Path != ".git/"+name || st.Locks[0].AgeSeconds < 3600 ||
				!strings.Contains(strings.Join(st.Errors(), "\n"), ".git/"+name+" is there for 1h0m") {
				t.Errorf("%+v\n%q", st.Locks, st.Errors())
			}
			if _, err := os.Lstat(lock); err != nil {
				t.Fatalf("somebody else's lock is gone: %v", err)
			}
			if err := os.Remove(lock); err != nil {
				t.Fatal(err)
			}
			testrig.Eventually(t, "all is committed", func() bool {
				st := r.repo.Status()
				return st.Pending == 0 && len(st.Locks) == 0 && len(st.Errors()) == 0
			})
			r.clean()
		})
	}
}

// What a git of ours has left of the locks for a fetch or a push does not stop the next ones.
func TestRemoteLockAfterCrash(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	clone, person := withRemote(t)
	kill := diesInUpdateRef(t, clone)
	edit(t, person, "projects.d/acme.hcl", `"Acme"`, `"Pulled"`, "rename")
	testrig.Git(t, person, "push", "-q")
	save(t, clone, ".git/kill-me", "0")
	r := start(t, clone, func(o *gitrepo.Options) { syncing(o); o.Hooks = true })
	testrig.Eventually(t, "the pull is live", func() bool { r.repo.Sync(); return r.named("acme") == "Pulled" })
	if _, err := os.Lstat(kill); err == nil {
		t.Error("no git was killed")
	}
	r.clean()
}
