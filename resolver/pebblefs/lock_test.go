//go:build unix

package pebblefs_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"fingerpost/resolver/pebblefs"
)

// A lock that a child of the former holder still has is waited for, and one that somebody keeps is refused.
func TestLockOfAChild(t *testing.T) {
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
	if _, err := pebblefs.LockFile(name); !errors.Is(err, pebblefs.ErrLocked) {
		t.Errorf("while it is kept: %v", err)
	}
	taken := make(chan error, 1)
	go func() {
		next, err := pebblefs.LockFile(name)
		if err == nil {
			err = next.Close()
		}
		taken <- err
	}()
	in.Close()
	if err := child.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := <-taken; err != nil {
		t.Errorf("once the child has ended: %v", err)
	}
}
