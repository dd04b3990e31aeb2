package configsrc_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"fingerpost/configsrc/atomicfile"
	"fingerpost/resolver/catalog"
)

// TestBulkDies: a write of several projects in several files takes effect as a whole after a crash at any step, or not at
// all, and leaves nothing behind.
func TestBulkDies(t *testing.T) {
	t.Parallel()
	text := func(slug, status string) string {
		return fmt.Sprintf("# %s\nproject %q {\n  name   = \"P\"\n  status = %q # kept\n}\n", slug, slug, status)
	}
	files := func(status string) map[string]string {
		return map[string]string{"a.hcl": text("a", status), "b.hcl": text("b", status), "c.hcl": text("c", status)}
	}
	before, after := files("ACTIVE"), files("SUSPENDED")
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
		e := new(catalog.Edit)
		for _, slug := range []string{"c", "a", "b"} {
			e.Projects = append(e.Projects, catalog.ProjectEdit{UUID: catalog.DeriveProjectUUID(slug), Change: func(p *catalog.ProjectConfig) error {
				p.Project.Status = catalog.StatusSuspended
				return nil
			}})
		}
		_, err := s.Write(context.Background(), e)
		alive := left.Load() >= 0
		end()

		fresh, _, end := openDying(t, dir, atomicfile.OSDisk{})
		got, want := filesIn(t, dir), catalog.StatusSuspended
		switch fmt.Sprint(got) {
		case fmt.Sprint(after):
			whole++
		case fmt.Sprint(before):
			if none++; err == nil {
				t.Errorf("after %d steps: the write was answered and is not there", steps)
			}
			want = catalog.StatusActive
		default:
			t.Errorf("after %d steps (%v): %q", steps, err, got)
		}
		for _, slug := range []string{"a", "b", "c"} {
			if p, perr := fresh.ProjectBySlug(slug); perr != nil || p.Status != want {
				t.Errorf("after %d steps the store says %+v of %s, %v", steps, p, slug, perr)
			}
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
		t.Errorf("%d times whole, %d times not: were the steps counted?", whole, none)
	}
}
