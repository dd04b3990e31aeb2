//go:build unix

package pebblefs_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/pebblefs"
)

// A lock that a child of the former holder still has is waited for, and one that somebody keeps is refused.
func TestLockOfAChild(t *testing.T) {
	testrig.Slow(t)
	name := filepath.Join(t.TempDir(), "lock")
	held, err := pebblefs.LockFile(name)
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command("cat")
	child.ExtraFiles = []*os.File{held.(*os.File)}
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	held.Close()
	begun := time.Now()
	if _, err := pebblefs.LockFile(name); !errors.Is(err, pebblefs.ErrLocked) || time.Since(begun) < time.Second {
		t.Errorf("while it is kept: %v after %v", err, time.Since(begun))
	}
	in.Close()
	if err := child.Wait(); err != nil {
		t.Fatal(err)
	}
	next, err := pebblefs.LockFile(name)
	if err != nil {
		t.Fatalf("once the child has ended: %v", err)
	}
	next.Close()
}
