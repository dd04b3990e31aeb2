package api_test

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/atomicfile"
	"fingerpost/resolver/catalog"
)

// A faultDisk is the disk, with steps that fail.
type faultDisk struct {
	atomicfile.OSDisk
	mu    sync.Mutex                     // guards what follows
	fails func(step string, n int) error // n counts the steps from 0; nil: none
	steps []string
}

// begin resets the count of steps.
func (d *faultDisk) begin(fails func(step string, n int) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fails, d.steps = fails, nil
}

func (d *faultDisk) step(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.steps = append(d.steps, name)
	if d.fails == nil {
		return nil
	}
	return d.fails(name, len(d.steps)-1)
}

func pathError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

func (d *faultDisk) CreateTemp(dir, pattern string, perm fs.FileMode) (atomicfile.TempFile, error) {
	if err := d.step("create"); err != nil {
		return nil, pathError("open", dir, err)
	}
	f, err := d.OSDisk.CreateTemp(dir, pattern, perm)
	return &faultTemp{f, d}, err
}

func (d *faultDisk) Stat(name string) (fs.FileInfo, error) {
	if err := d.step("stat"); err != nil {
		return nil, pathError("stat", name, err)
	}
	return d.OSDisk.Stat(name)
}

func (d *faultDisk) ReadFile(name string) ([]byte, error) {
	if err := d.step("read back"); err != nil {
		return nil, pathError("open", name, err)
	}
	return d.OSDisk.ReadFile(name)
}

func (d *faultDisk) Rename(from, to string) error {
	if err := d.step("rename"); err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return d.OSDisk.Rename(from, to)
}

func (d *faultDisk) Exchange(a, b string) error {
	if err := d.step("exchange"); err != nil {
		return err
	}
	return d.OSDisk.Exchange(a, b)
}

func (d *faultDisk) Link(from, to string) error {
	if err := d.step("link"); err != nil {
		return &os.LinkError{Op: "link", Old: from, New: to, Err: err}
	}
	return d.OSDisk.Link(from, to)
}

func (d *faultDisk) Remove(name string) error {
	if err := d.step("remove"); err != nil {
		return pathError("remove", name, err)
	}
	return d.OSDisk.Remove(name)
}

func (d *faultDisk) SyncFolder(dir string) error {
	if err := d.step("sync folder"); err != nil {
		return pathError("sync", dir, err)
	}
	return d.OSDisk.SyncFolder(dir)
}

// A faultTemp is a temporary file of a faultDisk.
type faultTemp struct {
	atomicfile.TempFile
	d *faultDisk
}

func (f *faultTemp) Chown(uid, gid int) error {
	if err := f.d.step("chown"); err != nil {
		return pathError("chown", f.Name(), err)
	}
	return f.TempFile.Chown(uid, gid)
}

func (f *faultTemp) Chmod(mode fs.FileMode) error {
	if err := f.d.step("chmod"); err != nil {
		return pathError("chmod", f.Name(), err)
	}
	return f.TempFile.Chmod(mode)
}

// Write writes a part, like a full disk.
func (f *faultTemp) Write(b []byte) (int, error) {
	if err := f.d.step("write"); err != nil {
		n, _ := f.TempFile.Write(b[:len(b)/2])
		return n, pathError("write", f.Name(), err)
	}
	return f.TempFile.Write(b)
}

func (f *faultTemp) Sync() error {
	if err := f.d.step("sync"); err != nil {
		return pathError("sync", f.Name(), err)
	}
	return f.TempFile.Sync()
}

func (f *faultTemp) Close() error {
	err := f.TempFile.Close()
	if fault := f.d.step("close"); fault != nil {
		return pathError("close", f.Name(), fault)
	}
	return err
}

// faultWrites are writes of each kind.
var faultWrites = map[string]exchange{
	"a change":            {method: "PUT", path: "/api/platform/projects/@acme", body: `{"name":"Changed"}`},
	"a new project":       {method: "POST", path: "/api/platform/projects", body: `{"name":"New"}`},
	"a removed file":      {method: "DELETE", path: "/api/platform/projects/@large"},
	"one of two projects": {method: "DELETE", path: "/api/platform/projects/@one"},
	"behind a link":       {method: "PUT", path: "/api/platform/projects/@linked", body: `{"name":"Changed"}`},
}

// How long a fault lasts, beginning at step number from.
type faultLength string

const (
	once     faultLength = "once"
	forEver  faultLength = "for ever"
	allSteps faultLength = "for ever in all steps"
)

func (l faultLength) fails(first string, from int, err error) func(step string, n int) error {
	return func(step string, n int) error {
		switch {
		case l == once && n == from, l == forEver && step == first && n >= from, l == allSteps && n >= from:
			return err
		}
		return nil
	}
}

var faults = []struct {
	err    syscall.Errno
	status int
	code   catalog.Code
	length faultLength
}{
	{syscall.EIO, http.StatusServiceUnavailable, catalog.CodeUnavailable, once},
	{syscall.EIO, http.StatusServiceUnavailable, catalog.CodeUnavailable, forEver},
	{syscall.EIO, http.StatusServiceUnavailable, catalog.CodeUnavailable, allSteps},
	{syscall.ENOSPC, http.StatusServiceUnavailable, catalog.CodeUnavailable, once},
	{syscall.EROFS, http.StatusConflict, catalog.CodeReadOnly, forEver},
	{syscall.EACCES, http.StatusConflict, catalog.CodeReadOnly, once},
}

// faultDesk serves the files of the crash tests from a disk that may fail.
func faultDesk(t *testing.T) (*desk, *faultDisk) {
	t.Helper()
	disk := new(faultDisk)
	d := &desk{dir: t.TempDir(), disk: disk}
	for name, target := range crashLinks {
		if err := os.Symlink(target, filepath.Join(d.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	d.open(t, crashFiles)
	return d, disk
}

// try makes a request and returns the answer.
func (d *desk) try(t testing.TB, e exchange) (status int, header http.Header, body string) {
	t.Helper()
	req, err := http.NewRequest(e.method, "http://"+d.addr+d.path(t, e.path), strings.NewReader(e.body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-PLATFORM-KEY", d.key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Header, string(b)
}

// TestFaults makes each step of each kind of write fail, once and forever. The write is refused with the reason and the
// files are as they were; reads go on; and when the disk works again, so does everything else.
func TestFaults(t *testing.T) {
	every := testrig.Size(t, 1, 0)
	for name, w := range faultWrites {
		t.Run(name, func(t *testing.T) {
			if name != "a change" && name != "a removed file" {
				testrig.Thorough(t)
			}
			t.Parallel()
			d, disk := faultDesk(t)
			disk.begin(nil)
			if status, _, body := d.try(t, w); status > 201 {
				t.Fatalf("without a fault: %d %s", status, body)
			}
			disk.mu.Lock()
			steps := slices.Clone(disk.steps)
			disk.mu.Unlock()
			if len(steps) < 7 {
				t.Errorf("only %d steps: %v", len(steps), steps)
			}
			for from, step := range steps {
				for _, f := range faults {
					if every == 0 && (f.err != syscall.EIO || f.length != once) && step != "create" && step != "exchange" {
						continue
					}
					t.Run(fmt.Sprintf("%v %s from %d %s", f.err, f.length, from, step), func(t *testing.T) {
						d, disk := faultDesk(t)
						before := readTree(t, d.dir)
						disk.begin(f.length.fails(step, from, f.err))
						status, header, body := d.try(t, w)
						done := status < 300 && (step == "chown" || step == "remove") // what the write does not rest on
						refused := status == f.status && strings.Contains(body, `"code":"`+string(f.code)+`"`) && strings.Contains(body, f.err.Error())
						if !done && !refused {
							t.Errorf("it answers %d %s", status, body)
						}
						if status == http.StatusServiceUnavailable && header.Get("Retry-After") == "" {
							t.Error("no Retry-After")
						}
						now := readTree(t, d.dir)
						after := withoutTemps(now)
						if len(after) < len(now) && refused && f.length == once {
							t.Errorf("something is left behind: %s", show(now))
						}
						same := fold(after) == fold(before)
						if refused && !same && f.length != allSteps { // with that, it cannot be undone
							t.Errorf("it is refused, and the files are\n%s", show(after))
						}
						if done && same {
							t.Error("it is answered, and the files are as they were")
						}
						if got, _, body := d.try(t, exchange{method: "GET", path: "/api/platform/projects/by-slug/two"}); got != http.StatusOK {
							t.Errorf("a read answers %d %s", got, body)
						}
						disk.begin(nil)
						if err := d.source.Reload(t.Context()); err != nil {
							t.Error(err)
						}
						if refused && same {
							if again, _, body := d.try(t, w); again > 201 {
								t.Errorf("when the disk is well again: %d %s", again, body)
							}
						}
						if left := readTree(t, d.dir); len(withoutTemps(left)) != len(left) {
							t.Errorf("there is something left: %s", show(left))
						}
						d.compareFresh(t)
					})
				}
			}
		})
	}
}

// withoutTemps returns a tree without the temporary files that a sweep removes.
func withoutTemps(tree map[string]string) map[string]string {
	kept := maps.Clone(tree)
	maps.DeleteFunc(kept, func(name, _ string) bool { return strings.HasPrefix(filepath.Base(name), ".fingerpost-") })
	return kept
}

// TestFaultInCompany: of concurrent writes one fails alone if the fault is its own, and all that depend on a folder's
// sync fail with it.
func TestFaultInCompany(t *testing.T) {
	testrig.Thorough(t)
	if testing.Short() {
		t.Skip("left out with -short: it takes seconds")
	}
	for _, step := range []string{"exchange", "read back", "sync folder"} {
		t.Run(step, func(t *testing.T) {
			d, disk := faultDesk(t)
			slugs := []string{"one", "acme", "large"} // each in a file of its own
			for range 20 {
				var hit bool
				disk.begin(func(s string, _ int) error {
					if s == step && !hit {
						hit = true
						return syscall.EIO
					}
					return nil
				})
				var all sync.WaitGroup
				status := make([]int, len(slugs))
				before := make([]string, len(slugs))
				for i, slug := range slugs {
					before[i] = d.projectName(t, slug)
					w := exchange{method: "PUT", path: d.path(t, "/api/platform/projects/@"+slug), body: fmt.Sprintf(`{"name":%q}`, before[i]+"+")}
					all.Go(func() { status[i], _, _ = d.try(t, w) })
				}
				all.Wait()
				failed := 0
				for i, slug := range slugs {
					want := before[i]
					switch status[i] {
					case http.StatusOK:
						want += "+"
					case http.StatusServiceUnavailable:
						failed++
					default:
						t.Errorf("%s: %d", slug, status[i])
					}
					if got := d.projectName(t, slug); got != want {
						t.Errorf("%s, answered %d, is called %q, want %q", slug, status[i], got, want)
					}
				}
				if failed == 0 || failed > 1 && step != "sync folder" {
					t.Errorf("%d of the writes failed", failed)
				}
			}
			d.compareFresh(t)
		})
	}
}

func (d *desk) projectName(t testing.TB, slug string) string {
	t.Helper()
	p, err := d.resolver.ProjectBySlug(slug)
	if err != nil {
		t.Fatal(err)
	}
	return p.Name
}

// TestStrandedSave: a person's save that a write has replaced and cannot put back, because the disk fails at that
// moment, comes back by itself.
func TestStrandedSave(t *testing.T) {
	for name, w := range map[string]exchange{"a change": faultWrites["a change"], "a removed file": {method: "DELETE", path: "/api/platform/projects/@acme"}} {
		t.Run(name, func(t *testing.T) {
			if t.Parallel(); testrig.Size(t, 1, 0) == 0 {
				t.Skip("it waits 45 s, until the kernel breaks a lease")
			}
			d, disk := faultDesk(t)
			saved, swapped := false, false
			disk.begin(func(step string, _ int) error {
				switch {
				case !saved && (step == "exchange" || step == "rename" && strings.Count(strings.Join(disk.steps, " "), "rename") == 2):
					saved = true
					if err := os.WriteFile(filepath.Join(d.dir, "acme.hcl"), []byte(byHand(1)), 0o644); err != nil {
						t.Error(err)
					}
				case saved && (step == "exchange" || step == "link"):
					swapped = true
					return syscall.EIO
				}
				return nil
			})
			status, _, body := d.try(t, w)
			disk.mu.Lock()
			done := saved && swapped
			disk.mu.Unlock()
			if status != http.StatusServiceUnavailable || !done {
				t.Errorf("%d %s; saved, and could not be put back: %v", status, body, done)
			}
			if strings.Contains(body, d.dir) {
				t.Errorf("the answer tells where the files are: %s", body)
			}
			disk.begin(nil)
			if err := d.source.Reload(t.Context()); err != nil {
				t.Error(err)
			}
			want := maps.Clone(crashFiles)
			want["acme.hcl"] = byHand(1)
			left := readTree(t, d.dir)
			delete(left, storyKeyFile)
			if fold(left) != fold(want) {
				t.Errorf("the files are\n%s", show(left))
			}
			testrig.Eventually(t, "the save to be served", func() bool { return d.projectName(t, "acme") == "By hand 1" })
		})
	}
}
