package configsrc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc"
	"fingerpost/configsrc/atomicfile"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// A dyingDisk works for a number of steps and then fails all others, like the disk of a killed process.
type dyingDisk struct {
	atomicfile.OSDisk
	left *atomic.Int64
}

var errDead = errors.New("the process is dead")

func (d dyingDisk) step() error {
	if d.left.Add(-1) < 0 {
		return errDead
	}
	return nil
}

func (d dyingDisk) CreateTemp(dir, pattern string, perm fs.FileMode) (atomicfile.TempFile, error) {
	if err := d.step(); err != nil {
		return nil, err
	}
	f, err := d.OSDisk.CreateTemp(dir, pattern, perm)
	return dyingFile{f, d}, err
}

func (d dyingDisk) Rename(from, to string) error {
	return errors.Join(d.step(), d.alive(func() error { return d.OSDisk.Rename(from, to) }))
}

func (d dyingDisk) Exchange(a, b string) error {
	return errors.Join(d.step(), d.alive(func() error { return d.OSDisk.Exchange(a, b) }))
}

func (d dyingDisk) Link(from, to string) error {
	return errors.Join(d.step(), d.alive(func() error { return d.OSDisk.Link(from, to) }))
}

func (d dyingDisk) Remove(name string) error {
	return errors.Join(d.step(), d.alive(func() error { return d.OSDisk.Remove(name) }))
}

func (d dyingDisk) SyncFolder(dir string) error { return d.step() }

func (d dyingDisk) alive(f func() error) error {
	if d.left.Load() < 0 {
		return nil // step has returned the error
	}
	return f()
}

// A dyingFile writes half of its content where it dies.
type dyingFile struct {
	atomicfile.TempFile
	disk dyingDisk
}

func (f dyingFile) Write(b []byte) (int, error) {
	if err := f.disk.step(); err != nil {
		_, _ = f.TempFile.Write(b[:len(b)/2])
		return len(b) / 2, err
	}
	return f.TempFile.Write(b)
}

// A write that changes a config file and the files of two bodies takes effect as a whole after a crash at any step, or
// not at all, and leaves nothing behind.
func TestWriteOfSeveralFilesDies(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	const config = `project "acme" {
  name = "Acme"
  template "A" {
    name             = "%s"
    subject_template = "s"
    body_html        = file("mail/a.html")
    body_text        = file("text/a.txt")
  }
}
`
	before := map[string]string{"acme.hcl": fmt.Sprintf(config, "old"), "mail/a.html": "<p>old\n", "text/a.txt": "old\n"}
	after := map[string]string{"acme.hcl": fmt.Sprintf(config, "new"), "mail/a.html": "<p>new\n", "text/a.txt": "new\n"}
	for _, bodiesOnly := range []bool{false, true} {
		whole, none := 0, 0
		for steps := int64(0); ; steps++ {
			dir := t.TempDir()
			for name, text := range before {
				put(t, filepath.Join(dir, name), text)
			}
			left := new(atomic.Int64)
			left.Store(1 << 40)
			_, s, end := openDying(t, dir, dyingDisk{left: left})
			left.Store(steps)
			err := updateProject(context.Background(), s, catalog.DeriveProjectUUID("acme"), func(p *catalog.ProjectConfig) error {
				a := &p.Templates[0]
				if a.BodyHTML, a.BodyText = "<p>new\n", "new\n"; !bodiesOnly {
					a.Name = "new"
				}
				return nil
			})
			alive := left.Load() >= 0
			end()

			fresh, _, end := openDying(t, dir, atomicfile.OSDisk{})
			want := after
			if bodiesOnly {
				want = map[string]string{"acme.hcl": before["acme.hcl"], "mail/a.html": after["mail/a.html"], "text/a.txt": after["text/a.txt"]}
			}
			got := filesIn(t, dir)
			switch fmt.Sprint(got) {
			case fmt.Sprint(want):
				whole++
			case fmt.Sprint(before):
				if none++; err == nil {
					t.Errorf("after %d steps: the write was answered and is not there", steps)
				}
			default:
				t.Errorf("bodies only: %v, after %d steps (%v): %q", bodiesOnly, steps, err, got)
			}
			p, perr := fresh.ProjectBySlug("acme")
			if perr != nil {
				t.Fatal(perr)
			}
			if x, xerr := fresh.OwnTemplate(p.ID, "A"); xerr != nil || x.BodyText != got["text/a.txt"] || x.BodyHTML != got["mail/a.html"] {
				t.Errorf("after %d steps the store says %+v, %v", steps, x, xerr)
			}
			end()
			if alive {
				if err != nil {
					t.Errorf("with %d steps: %v", steps, err)
				}
				break
			}
		}
		if whole < 2 || none < 5 {
			t.Errorf("bodies only: %v: %d times whole, %d times not: were the steps counted?", bodiesOnly, whole, none)
		}
	}
}

// A write that moves a body to a new file leaves no file behind if it dies at any step before its end.
func TestWriteOfNewBodyDies(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	const config = "project \"acme\" {\n  name = \"Acme\"\n  template \"A\" {\n    name             = \"n\"\n" +
		"    subject_template = \"s\"\n    body_text        = %s\n  }\n}\n"
	large := strings.Repeat("x", 64<<10) + "\n"
	before := map[string]string{"acme.hcl": fmt.Sprintf(config, `"old"`)}
	after := map[string]string{"acme.hcl": fmt.Sprintf(config, `file("acme.A.txt")`), "acme.A.txt": large}
	whole, none, undone := 0, 0, 0
	for steps := int64(0); ; steps++ {
		dir := t.TempDir()
		put(t, filepath.Join(dir, "acme.hcl"), before["acme.hcl"])
		left := new(atomic.Int64)
		left.Store(1 << 40)
		_, s, end := openDying(t, dir, dyingDisk{left: left})
		left.Store(steps)
		err := updateProject(context.Background(), s, catalog.DeriveProjectUUID("acme"), func(p *catalog.ProjectConfig) error {
			p.Templates[0].BodyText = large
			return nil
		})
		alive := left.Load() >= 0
		end()
		if dead := filesIn(t, dir); dead["acme.A.txt"] != "" && dead["acme.hcl"] == before["acme.hcl"] {
			undone++
		}
		_, _, end = openDying(t, dir, atomicfile.OSDisk{})
		end()
		switch got := filesIn(t, dir); fmt.Sprint(got) {
		case fmt.Sprint(after):
			whole++
		case fmt.Sprint(before):
			if none++; err == nil {
				t.Errorf("after %d steps: the write was answered and is not there", steps)
			}
		default:
			t.Errorf("after %d steps (%v): %.300q", steps, err, got)
		}
		if alive {
			if err != nil {
				t.Errorf("with %d steps: %v", steps, err)
			}
			break
		}
	}
	if whole < 2 || none < 5 || undone < 1 {
		t.Errorf("%d times whole, %d times not, %d times a new file had to be removed: were the steps counted?", whole, none, undone)
	}
}

// A person who saves one of the files after the crash wins.
func TestSavedAfterWriteDied(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "acme.hcl"), "project \"acme\" {\n  name = \"Acme\"\n  template \"A\" {\n    name = \"old\"\n    subject_template = \"s\"\n    body_text = file(\"a.txt\")\n  }\n}\n")
	put(t, filepath.Join(dir, "a.txt"), "old\n")
	for steps := int64(0); ; steps++ {
		if steps == 100 {
			t.Fatal("the body is never exchanged alone")
		}
		left := new(atomic.Int64)
		left.Store(1 << 40)
		_, s, end := openDying(t, dir, dyingDisk{left: left})
		left.Store(steps)
		_ = updateProject(context.Background(), s, catalog.DeriveProjectUUID("acme"), func(p *catalog.ProjectConfig) error {
			p.Templates[0].Name, p.Templates[0].BodyText = "new", "new\n"
			return nil
		})
		end()
		if filesIn(t, dir)["a.txt"] == "new\n" {
			break
		}
	}
	put(t, filepath.Join(dir, "a.txt"), "by hand\n")
	r, _, end := openDying(t, dir, atomicfile.OSDisk{})
	defer end()
	p, err := r.ProjectBySlug("acme")
	if err != nil {
		t.Fatal(err)
	}
	if x, err := r.OwnTemplate(p.ID, "A"); err != nil || x.BodyText != "by hand\n" || x.Name != "old" {
		t.Errorf("%+v %v", x, err)
	}
}

func openDying(t *testing.T, dir string, disk atomicfile.Disk) (*resolver.Resolver, *configsrc.Source, func()) {
	t.Helper()
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	r, err := resolver.Open(resolver.Options{CacheBytes: 1 << 20, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	s := configsrc.New(configsrc.Options{Dir: dir, Sink: r, Logger: log, MaxDelete: 1, Disk: disk,
		StatEvery: 50 * time.Millisecond})
	ctx, cancel := context.WithCancel(context.Background())
	if err := s.Load(ctx); err != nil || s.Status().Errors > 0 {
		t.Fatalf("load: %v %v", err, s.Status().Problems)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Run(ctx)
	}()
	return r, s, func() {
		cancel()
		<-done
		r.Close()
	}
}

func put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// filesIn reads all files, leftovers included.
func filesIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(name)
		all[strings.TrimPrefix(name, dir+"/")] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
