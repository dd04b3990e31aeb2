package configsrc_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc"
	"fingerpost/configsrc/atomicfile"
	"fingerpost/resolver/catalog"
)

// A stickyDisk fails to remove files, as often as fails says.
type stickyDisk struct {
	atomicfile.OSDisk
	fails *atomic.Int32
}

func (d stickyDisk) Remove(name string) error {
	if d.fails.Add(-1) >= 0 {
		return &fs.PathError{Op: "remove", Path: name, Err: syscall.EIO}
	}
	return d.OSDisk.Remove(name)
}

// A temporary file that cannot be removed at once is removed later, while the service runs, and nothing else changes.
func TestFailedUnlink(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	acme := catalog.DeriveProjectUUID("acme")
	for name, f := range map[string]func(s *configsrc.Source) error{
		"create": func(s *configsrc.Source) error {
			return createProject(t.Context(), s, &catalog.Project{UUID: catalog.NewUUID(), Slug: "second", Name: "S", Status: catalog.StatusDraft})
		},
		"update": func(s *configsrc.Source) error {
			return updateProject(t.Context(), s, acme, func(p *catalog.ProjectConfig) error { p.Project.Name = "B"; return nil })
		},
		"delete": func(s *configsrc.Source) error {
			return deleteProject(t.Context(), s, acme, func(*catalog.ProjectConfig) error { return nil })
		},
		"rename": func(s *configsrc.Source) error {
			return updateProject(t.Context(), s, acme, func(p *catalog.ProjectConfig) error { p.Project.Slug = "shop"; return nil })
		},
	} {
		for fails := range int32(2) {
			t.Run(fmt.Sprint(name, fails), func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				write(t, filepath.Join(dir, "acme.hcl"), project("acme", "acme.example"))
				write(t, filepath.Join(dir, "keys.hcl"), keyOf("first1", `["acme"]`))
				var left atomic.Int32
				_, s, end := openDying(t, dir, stickyDisk{fails: &left})
				defer end()
				left.Store(fails + 1)
				_ = f(s)
				testrig.Eventually(t, "no temporary file is left", func() bool {
					entries, err := os.ReadDir(dir) // names alone: a file may go before it could be read
					must(t, err)
					for _, e := range entries {
						if atomicfile.IsTemp(e.Name()) {
							return false
						}
					}
					return true
				})
			})
		}
	}
}
