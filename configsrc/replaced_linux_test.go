package configsrc_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/atomicfile"
	"fingerpost/resolver/catalog"
)

// A meddlingDisk runs a function that changes the files right before one step of a write, and counts the exchanges.
type meddlingDisk struct {
	atomicfile.OSDisk
	before    string
	meddle    func()
	exchanges atomic.Int32
}

func (d *meddlingDisk) step(name string) {
	if f := d.meddle; f != nil && name == d.before {
		d.meddle = nil
		f()
	}
}

func (d *meddlingDisk) CreateTemp(dir, pattern string, perm fs.FileMode) (atomicfile.TempFile, error) {
	d.step("create")
	return d.OSDisk.CreateTemp(dir, pattern, perm)
}

func (d *meddlingDisk) Rename(from, to string) error {
	d.step("rename")
	return d.OSDisk.Rename(from, to)
}

func (d *meddlingDisk) Exchange(a, b string) error {
	d.step("exchange")
	d.exchanges.Add(1)
	return d.OSDisk.Exchange(a, b)
}

// Whatever replaces the file in the middle of a write, the write follows it or is refused, without an internal error;
// the replacement stays.
func TestReplacedInTheMiddleOfAWrite(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	for what, c := range map[string]struct {
		replace func(file string) error
		want    catalog.Code // "": the write succeeds
	}{
		"link inside": {func(file string) error {
			return errors.Join(os.Rename(file, file+".moved"), os.Symlink(filepath.Base(file)+".moved", file))
		}, ""},
		"absolute link inside": {func(file string) error {
			return errors.Join(os.Rename(file, file+".moved"), os.Symlink(file+".moved", file))
		}, ""},
		"link to itself": {func(file string) error {
			return errors.Join(os.Remove(file), os.Symlink(filepath.Base(file), file))
		}, catalog.CodeReadOnly},
		"link to nothing": {func(file string) error {
			return errors.Join(os.Remove(file), os.Symlink("nothing", file))
		}, catalog.CodeFileChanged},
		"link out": {func(file string) error {
			return errors.Join(os.Remove(file), os.Symlink("/etc/hostname", file))
		}, catalog.CodeReadOnly},
		"FIFO": {func(file string) error {
			return errors.Join(os.Remove(file), syscall.Mkfifo(file, 0o644))
		}, catalog.CodeReadOnly},
		"folder": {func(file string) error {
			return errors.Join(os.Remove(file), os.Mkdir(file, 0o755))
		}, catalog.CodeReadOnly},
		"nothing": {os.Remove, catalog.CodeFileChanged},
	} {
		for _, step := range []string{"create", "rename", "exchange"} {
			t.Run(what+" before "+step, func(t *testing.T) {
				dir := t.TempDir()
				file := write(t, filepath.Join(dir, "acme.hcl"), project("acme", "acme.example"))
				d := &meddlingDisk{before: step}
				d.meddle = func() { must(t, c.replace(file)) }
				_, s, end := openDying(t, dir, d)
				defer end()
				err := updateProject(context.Background(), s, catalog.DeriveProjectUUID("acme"), func(p *catalog.ProjectConfig) error {
					p.Project.Name = "new"
					return nil
				})
				var refused *catalog.Error
				if err != nil && !errors.As(err, &refused) {
					t.Fatalf("a fault: %v", err)
				}
				if got := code(refused); got != c.want {
					t.Errorf("it says %q (%v), want %q", got, err, c.want)
				}
				if d.meddle != nil {
					t.Error("nothing was replaced")
				}
			})
		}
	}
}

func code(e *catalog.Error) catalog.Code {
	if e == nil {
		return ""
	}
	return e.Code
}

// A file that is being written, or was saved since it was read, is not exchanged at all: no reader misses the save.
func TestChangedFileIsNotSwappedOut(t *testing.T) {
	for _, c := range []struct {
		what string
		save func(t *testing.T, file string)
	}{
		{"being written", func(t *testing.T, file string) {
			f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0)
			must(t, err)
			t.Cleanup(func() { f.Close() })
		}},
		{"saved in place", func(t *testing.T, file string) { write(t, file, "# saved\n"+project("acme", "acme.example")) }},
		{"saved as another file", func(t *testing.T, file string) {
			must(t, os.Rename(write(t, file+".new", "# saved\n"+project("acme", "acme.example")), file))
		}},
	} {
		t.Run(c.what, func(t *testing.T) {
			dir := t.TempDir()
			file := write(t, filepath.Join(dir, "acme.hcl"), project("acme", "acme.example"))
			d := &meddlingDisk{before: "rename"}
			swaps := int32(-1)
			d.meddle = func() {
				c.save(t, file)
				d.before, d.meddle = "create", func() { swaps = d.exchanges.Load() } // the second try
			}
			_, s, end := openDying(t, dir, d)
			defer end()
			_ = updateProject(context.Background(), s, catalog.DeriveProjectUUID("acme"), func(p *catalog.ProjectConfig) error {
				p.Project.Name = "new"
				return nil
			})
			if swaps != 0 {
				t.Errorf("%d exchanges before the second try, want none", swaps)
			}
		})
	}
}
