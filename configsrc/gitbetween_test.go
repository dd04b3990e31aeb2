package configsrc_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc"
	"fingerpost/configsrc/atomicfile"
	"fingerpost/resolver/catalog"
)

// A gitDisk runs a function right after the step that puts a write in place, when the write has checked for git's lock
// and found none.
type gitDisk struct {
	atomicfile.OSDisk
	then atomic.Pointer[func()] // once
}

func (d *gitDisk) after(file string, err error) error {
	if strings.HasSuffix(file, ".hcl") && err == nil {
		if then := d.then.Swap(nil); then != nil {
			(*then)()
		}
	}
	return err
}

func (d *gitDisk) Exchange(a, b string) error { return d.after(b, d.OSDisk.Exchange(a, b)) }

func (d *gitDisk) Link(from, to string) error { return d.after(to, d.OSDisk.Link(from, to)) }

func (d *gitDisk) Rename(from, to string) error { return d.after(from, d.OSDisk.Rename(from, to)) }

// TestWriteAsGitBegins: git locks its index and reads the files before a write, and writes into the tree after it. So a
// lock or an index that is new since takes the write back: it is repeated on git's result, or refused.
func TestWriteAsGitBegins(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	v1 := named("a", "v1", "a.example")
	gits := named("a", "git's", "a.example", "git.example")
	newProject := &catalog.Project{UUID: catalog.NewUUID(), Slug: "new", Name: "New", Status: catalog.StatusDraft}
	writes := []struct {
		name string
		do   func(ctx context.Context, s *configsrc.Source) error
		want string // in a.hcl, after git has written it
		made bool   // there is a new.hcl
	}{
		{"update", func(ctx context.Context, s *configsrc.Source) error { return rename(ctx, s, "a", "v2") },
			strings.Replace(gits, "git's", "v2", 1), false},
		{"delete", func(ctx context.Context, s *configsrc.Source) error {
			return deleteProject(ctx, s, catalog.DeriveProjectUUID("a"), func(*catalog.ProjectConfig) error { return nil })
		}, "", false},
		{"create", func(ctx context.Context, s *configsrc.Source) error { return createProject(ctx, s, newProject) }, gits, true},
	}
	for _, linked := range []bool{false, true} {
		for _, w := range writes {
			t.Run(fmt.Sprintf("%s, linked %v", w.name, linked), func(t *testing.T) {
				top := t.TempDir()
				dir, served := filepath.Join(top, "projects.d"), filepath.Join(top, "projects.d")
				file := write(t, filepath.Join(dir, "a.hcl"), v1)
				other := write(t, filepath.Join(dir, "b.hcl"), named("b", "b", "b.example"))
				index := write(t, filepath.Join(top, ".git/index"), "as it was")
				if linked {
					served = filepath.Join(t.TempDir(), "link")
					must(t, os.Symlink(dir, served))
				}
				disk := &gitDisk{}
				n := newNode(t, served, nodeOptions{disk: disk})

				// Git begins, and takes longer than the client waits.
				hasty, cancel := context.WithCancel(t.Context())
				defer cancel()
				begins := func() { write(t, index+".lock", ""); cancel() }
				disk.then.Store(&begins)
				var refused *catalog.Error
				if err := w.do(hasty, n.source); !errors.As(err, &refused) || refused.Code != catalog.CodeUnavailable {
					t.Errorf("beside git: %v", err)
				}
				if disk.then.Load() != nil {
					t.Fatal("nothing came in between")
				}
				sameTree(t, dir, map[string]string{"a.hcl": v1, "b.hcl": read(t, other)})
				must(t, os.Remove(index+".lock"))

				// Git begins, writes its result, and ends.
				works := func() {
					write(t, index+".lock", "as it is now")
					if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
						t.Error(err)
					}
					write(t, file, gits)
					must(t, os.Rename(index+".lock", index))
				}
				disk.then.Store(&works)
				if err := w.do(t.Context(), n.source); err != nil {
					t.Errorf("after git: %v", err)
				}
				if disk.then.Load() != nil {
					t.Fatal("nothing came in between")
				}
				got := tree(t, dir)
				if got["a.hcl"] != w.want || (got["new.hcl"] != "") != w.made {
					t.Errorf("a.hcl holds %q, want %q; new.hcl %q", got["a.hcl"], w.want, got["new.hcl"])
				}
				for name := range got {
					if filepath.Ext(name) != ".hcl" {
						t.Errorf("%s was left behind", name)
					}
				}
			})
		}
	}
}
