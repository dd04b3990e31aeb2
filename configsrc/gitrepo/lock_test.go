package gitrepo_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fingerpost/configsrc/gitrepo"
)

// leaveLock puts git's lock into the clone as a service of an earlier version has it after a power cut: a second name of
// the service's mark, whose content was never synced.
func leaveLock(t *testing.T, clone, content string) (lock string) {
	t.Helper()
	mark, lock := filepath.Join(clone, ".git", "fingerpost-mark"), filepath.Join(clone, ".git", "index.lock")
	if err := os.Remove(mark); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	save(t, clone, ".git/fingerpost-mark", content)
	if err := os.Link(mark, lock); err != nil {
		t.Fatal(err)
	}
	return lock
}

// The lock that a service has left behind is known as its own, whatever a power cut has made of the content, and goes
// when the next service starts. It is git's again then.
func TestOwnLockAfterCrash(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{"killed": "fingerpost\n", "power cut": "", "power cut on XFS": strings.Repeat("\x00", 11)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clone := newClone(t)
			lock := leaveLock(t, clone, content)
			r := start(t, clone, nil)
			if _, err := os.Lstat(lock); !os.IsNotExist(err) {
				t.Fatalf("the lock is still there: %v", err)
			}
			if got := r.mustWrite(key("ci", "r1"), "acme", "One"); got.Commit == "" {
				t.Error("the write is not committed")
			}
			if got := read(t, filepath.Join(clone, ".git", "fingerpost-mark")); got != "fingerpost\n" {
				t.Errorf("the mark has %q", got)
			}
			r.clean()
		})
	}
}

// If a person removes the service's lock, as git advises, and another git takes it, the service leaves that lock alone.
func TestLockOfAnotherStays(t *testing.T) {
	t.Parallel()
	clone := newClone(t)
	lock := filepath.Join(clone, ".git", "index.lock")
	save(t, clone, ".git/hooks/reference-transaction", "#!/bin/sh\n[ \"$1\" = committed ] || exit 0\n"+
		"rm "+lock+"\necho other >"+lock+"\n")
	if err := os.Chmod(filepath.Join(clone, ".git/hooks/reference-transaction"), 0o755); err != nil {
		t.Fatal(err)
	}
	r := start(t, clone, func(o *gitrepo.Options) { o.Hooks = true })
	if got := r.mustWrite(key("ci", "r1"), "acme", "One"); got.Commit == "" {
		t.Error("the write is not committed")
	}
	r.end()
	if got := read(t, lock); got != "other\n" {
		t.Errorf("the lock has %q", got)
	}
}
