package atomicfile

import (
	"errors"
	"os/exec"
	"testing"

	"fingerpost/cmd/testrig"
)

// TestHoldNextToForks: a program that the service starts has the service's open files until its exec. That must not make
// a file that was just written look as if somebody were writing it.
func TestHoldNextToForks(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	dir := t.TempDir()
	stop, stopped := make(chan struct{}), make(chan struct{})
	const forks = 4
	for range forks {
		go func() {
			defer func() { stopped <- struct{}{} }()
			for {
				select {
				case <-stop:
					return
				default:
					_ = exec.Command("/bin/true").Run()
				}
			}
		}()
	}
	defer func() {
		close(stop)
		for range forks {
			<-stopped
		}
	}()
	var d OSDisk
	refused := 0
	for range 1000 {
		f, err := d.CreateTemp(dir, "*.hcl", 0o644)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		h, err := holdStill(f.Name())
		if errors.Is(err, ErrChanged) {
			refused++
		} else if err != nil {
			t.Fatal(err)
		} else {
			h.Close()
		}
		if err := d.Remove(f.Name()); err != nil {
			t.Fatal(err)
		}
	}
	// About 40 are refused where the file stays open for writing until its Close. Now and then the kernel itself counts a
	// writer for a moment after its close has returned.
	if refused > 5 {
		t.Errorf("%d of 1,000 files look as if somebody were writing them", refused)
	}
}
