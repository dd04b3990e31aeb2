package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"fingerpost/cmd/testrig"
)

// TestConfigDiskFull fills the config folder's disk, by bytes and by inodes: writes are refused and the files stay as
// they are, reads and resolve go on, and writes go through again once there is room.
func TestConfigDiskFull(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	if !canMount() {
		t.Skip("needs root, to mount a small file system")
	}
	r := newRig(t, nil)
	r.halt()
	names, err := filepath.Glob(r.path("*"))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(name)] = string(b)
	}
	if err := syscall.Mount("tmpfs", r.path("."), "tmpfs", 0, "size=8m,nr_inodes=400"); err != nil {
		t.Fatalf("mount a tmpfs, which needs root: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(r.path("."), syscall.MNT_DETACH) })
	for name, text := range files {
		r.put(name, text)
	}
	r.start()
	target := "/api/platform/projects/" + idOf(r.get("/api/platform/projects/by-slug/other"))
	write := func(name string) reply {
		t.Helper()
		return r.ask(http.MethodPut, target, r.keys["write"], fmt.Sprintf(`{"name":%q}`, name))
	}
	lowDisk := func(want bool) error {
		res, err := http.Get(r.ops + "/status")
		if err != nil {
			return err
		}
		defer res.Body.Close()
		var text strings.Builder
		if err := res.Write(&text); err != nil {
			return err
		}
		if strings.Contains(text.String(), `"lowDisk": "`) != want {
			return errors.New("status: " + text.String())
		}
		return nil
	}
	full := func(what, says string) {
		t.Helper()
		before := r.footprint()
		// No write is needed for it to be noticed.
		if err := poll(testrig.Patience, func() error { return lowDisk(true) }); err != nil {
			t.Error(err)
		}
		got := write("never")
		refused(t, what, got, http.StatusServiceUnavailable, "UNAVAILABLE")
		if got.header.Get("Retry-After") == "" || !strings.Contains(got.body, says) {
			t.Errorf("%s: Retry-After %q, %s", what, got.header.Get("Retry-After"), got.body)
		}
		refused(t, what+", a new one", r.ask(http.MethodPost, "/api/platform/projects", r.keys["write"], `{"name":"New"}`), http.StatusServiceUnavailable, "UNAVAILABLE")
		r.unchanged(before)
	}
	room := func(name string) {
		t.Helper()
		if got := write(name); got.status != http.StatusOK {
			t.Errorf("with room again: %d %s", got.status, got.body)
		}
		if err := lowDisk(false); err != nil {
			t.Error(err)
		}
	}
	room("Before")
	ballast := filepath.Join(r.path("."), ".ballast")
	if err := fillUp(ballast); err != nil {
		t.Fatal(err)
	}
	full("no bytes", "kB free")
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	room("Between")
	if err := os.Mkdir(ballast, 0o755); err != nil {
		t.Fatal(err)
	}
	for n := 0; ; n++ {
		err := os.WriteFile(filepath.Join(ballast, fmt.Sprint(n)), nil, 0o644)
		if errors.Is(err, syscall.ENOSPC) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	full("no inodes", "inodes free")
	if err := os.RemoveAll(ballast); err != nil {
		t.Fatal(err)
	}
	room("After")
}
