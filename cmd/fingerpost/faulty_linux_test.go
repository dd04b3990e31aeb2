package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"fingerpost/cmd/testrig"
)

// refusedWrite makes a write that must fail: it gets status and code, the files are unchanged, and reads go on.
func (r *rig) refusedWrite(what, slug string, status int, code string) {
	r.t.Helper()
	before := r.tree()
	got := r.ask("PUT", fmt.Sprintf("/api/platform/projects/%d", r.idOf(slug)), r.keys["write"], `{"name":"Never"}`, "Content-Type: application/json")
	refused(r.t, what, got, status, code)
	if status == http.StatusServiceUnavailable && got.header.Get("Retry-After") == "" {
		r.t.Errorf("%s: no Retry-After", what)
	}
	if after := r.tree(); fmt.Sprint(after) != fmt.Sprint(before) {
		r.t.Errorf("%s: the files are\n%q\nand were\n%q", what, after, before)
	}
	granted(r.t, what+": resolve", r.get(resolvePath+"shop.acme.example"))
	granted(r.t, what+": a read", r.get("/api/platform/projects/by-slug/"+slug))
}

// well checks that writes work again by themselves, and that everything agrees.
func (r *rig) well(what, slug, name string) {
	r.t.Helper()
	err := poll(testrig.Patience, func() error {
		got := r.ask("PUT", fmt.Sprintf("/api/platform/projects/%d", r.idOf(slug)), r.keys["write"], fmt.Sprintf(`{"name":%q}`, name), "Content-Type: application/json")
		if got.status != http.StatusOK {
			return fmt.Errorf("%d %s", got.status, got.body)
		}
		return nil
	})
	if err == nil {
		err = poll(testrig.Patience, r.agrees)
	}
	if err != nil {
		r.t.Errorf("%s: %v", what, err)
	}
}

// TestFolderFullOrReadOnly has the config folder on a disk of its own that runs out of room, runs out of files, and
// becomes read-only.
func TestFolderFullOrReadOnly(t *testing.T) {
	if t.Parallel(); !canMount() {
		t.Skip("mounting a disk needs root")
	}
	dir := t.TempDir()
	folder := filepath.Join(dir, "projects.d")
	must(t, os.Mkdir(folder, 0o755))
	mount := func(flags uintptr, options string) {
		t.Helper()
		must(t, syscall.Mount("tmpfs", folder, "tmpfs", flags, options))
	}
	mount(0, "size=1m,nr_inodes=40")
	t.Cleanup(func() { _ = syscall.Unmount(folder, syscall.MNT_DETACH) })
	r := idleRig(t, dir, nil)
	r.start()

	must(t, fillUp(r.path("ballast")))
	r.refusedWrite("without room", "other", http.StatusServiceUnavailable, "UNAVAILABLE")
	must(t, os.Remove(r.path("ballast")))
	r.well("with room again", "other", "Room")

	var files []string
	for {
		name := r.path(fmt.Sprintf("f%d", len(files)))
		f, err := os.Create(name)
		if err != nil {
			break
		}
		f.Close()
		files = append(files, name)
	}
	r.refusedWrite("without a file left", "other", http.StatusServiceUnavailable, "UNAVAILABLE")
	for _, name := range files {
		must(t, os.Remove(name))
	}
	r.well("with files again", "other", "Files")

	mount(syscall.MS_REMOUNT|syscall.MS_RDONLY, "")
	r.refusedWrite("read-only", "other", http.StatusConflict, "CONFIG_READ_ONLY")
	mount(syscall.MS_REMOUNT, "")
	r.well("writable again", "other", "Writable")
}

// TestFolderWithoutPermission needs a user other than root, whom permissions do not stop.
func TestFolderWithoutPermission(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write anywhere")
	}
	r := newRig(t, nil)
	must(t, os.Chmod(r.path("."), 0o555))
	defer os.Chmod(r.path("."), 0o755)
	r.refusedWrite("without permission", "other", http.StatusConflict, "CONFIG_READ_ONLY")
	must(t, os.Chmod(r.path("."), 0o755))
	r.well("with permission again", "other", "Permitted")
}

// A tracer makes system calls of a running server fail.
type tracer struct {
	cmd *exec.Cmd
}

// inject attaches strace to the server. fault is the value of its option inject; on is a path that the calls must
// concern, "" for any. It returns when the fault is active.
func (r *rig) inject(fault, on string) *tracer {
	r.t.Helper()
	log := filepath.Join(r.t.TempDir(), "strace.log")
	args := []string{"-f", "-o", log, "-e", "inject=" + fault, "-e", "trace=" + fault[:strings.Index(fault, ":")]}
	if on != "" {
		below, err := filepath.Rel(r.dir, on) // as the server itself names it
		must(r.t, err)
		args = append(args, "-P", on, "-P", below)
	}
	x := &tracer{exec.Command("strace", append(args, "-p", fmt.Sprint(r.pid))...)}
	var said server // as a buffer
	x.cmd.Stderr = &said
	if err := x.cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	if err := poll(testrig.Patience, func() error { return r.traced(x, &said) }); err != nil {
		_ = x.cmd.Process.Kill()
		r.t.Fatal(err)
	}
	return x
}

// traced reports whether all threads of the server are traced.
func (r *rig) traced(x *tracer, said *server) error {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", r.pid))
	if err != nil || len(tasks) == 0 {
		return fmt.Errorf("no threads to trace, %v", err)
	}
	for _, name := range tasks {
		b, err := os.ReadFile(name)
		if err == nil && !strings.Contains(string(b), fmt.Sprintf("TracerPid:\t%d\n", x.cmd.Process.Pid)) {
			return fmt.Errorf("%s is not traced: %s", name, said.logged())
		}
	}
	return nil
}

// end removes the fault.
func (x *tracer) end() {
	_ = x.cmd.Process.Signal(syscall.SIGINT) // strace detaches
	_ = x.cmd.Wait()
}

// TestSystemCallsFail makes the system calls of a write fail in the real binary, once and forever.
func TestSystemCallsFail(t *testing.T) {
	t.Parallel()
	testrig.Thorough(t)
	testrig.Need(t, "strace")
	r := newRig(t, map[string]string{
		"other.hcl": strings.TrimSuffix(rigFiles["other.hcl"], "}\n") + `
  template "WELCOME" {
    name             = "Welcome"
    subject_template = "Welcome"
    body_html        = file("other.html")
    body_text        = "Welcome."
  }
}
`, "other.html": "<p>Welcome.</p>\n"})
	file, body, folder := r.path("other.hcl"), r.path("other.html"), r.path(".")
	must(t, os.Chmod(file, 0o666)) // more than the umask lets a new file have: each write has to set it
	name := "Other"
	for _, f := range []struct{ fault, on string }{
		{"openat:error=EIO", folder},
		{"read:error=EIO", file},
		{"read:error=ESTALE", file}, // as NFS says it
		{"read:error=EIO", body},
		{"openat:error=EMFILE", folder},
		{"renameat2:error=EIO", ""},
		{"renameat2:error=EIO:when=1", ""},
		{"renameat:error=EIO", ""},
		{"renameat:error=ENOSPC:when=1", ""},
		{"fchmod:error=EIO", ""},
		{"fsync:error=EIO", folder},
		{"fsync:error=EIO:when=1", folder},
		{"fsync:error=ENOSPC", folder},
		{"fsync:error=EIO", ""}, // of the new file, and of the store if it comes to that
	} {
		what := f.fault + " on " + f.on
		x := r.inject(f.fault, f.on)
		r.refusedWrite(what, "other", http.StatusServiceUnavailable, "UNAVAILABLE")
		x.end()
		name += "+"
		r.well(what+", over", "other", name)
		if t.Failed() {
			return
		}
	}
}
