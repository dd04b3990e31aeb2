package configsrc_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/offline"
)

// TestUnreadable loads as a user who may not read some of the folder: its served content stays, nothing counts as
// deleted, and the other files are loaded.
func TestUnreadable(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	dir := t.TempDir()
	must(t, os.Chmod(filepath.Dir(dir), 0o755))
	write(t, filepath.Join(dir, "a.hcl"), named("a", "a1", "a.example"))
	write(t, filepath.Join(dir, "closed/b.hcl"), named("b", "b1", "b.example"))
	n := newNode(t, dir, nodeOptions{loadOnly: true})

	write(t, filepath.Join(dir, "a.hcl"), named("a", "a2", "a.example"))
	must(t, os.Chmod(filepath.Join(dir, "closed"), 0))
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(dir, "closed"), 0o755) })
	if os.Geteuid() == 0 {
		// root may list everything; so this thread becomes another user to the file system.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		must(t, syscall.Setfsuid(65534))
		defer func() { must(t, syscall.Setfsuid(0)) }()
	}
	want := filepath.Join(dir, "closed") + ": the folder cannot be listed: permission denied"
	c, err := offline.Check(dir)
	must(t, err)
	if len(c.Problems) != 1 || c.Problems[0].File+": "+c.Problems[0].Summary != want {
		t.Errorf("validate says %+v, want %q", c.Problems, want)
	}
	must(t, n.source.Load(context.Background()))
	st := n.source.Status()
	if len(st.Problems) != 1 || st.Problems[0].File+": "+st.Problems[0].Summary != want {
		t.Errorf("the status says %+v, want %q", st.Problems, want)
	}
	if got := n.name("a.example") + " " + n.name("b.example"); got != "a2 b1" {
		t.Errorf("served is %s", got)
	}
}
