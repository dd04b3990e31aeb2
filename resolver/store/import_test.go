package store_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/store"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

func same(t *testing.T, what string, a, b *store.Store) {
	t.Helper()
	if x, y := dump(t, a), dump(t, b); !slices.Equal(x, y) {
		t.Errorf("%s:\n%s\nand\n%s", what, strings.Join(x, "\n"), strings.Join(y, "\n"))
	}
}

func full(t *testing.T, s *store.Store, now time.Time, n int) {
	t.Helper()
	var files []catalog.FileChange
	for i := range n {
		p := block(fmt.Sprintf("p%d", i), fmt.Sprintf("p%d.example", i), fmt.Sprintf("*.p%d.example", i))
		p.Templates = []catalog.Template{template(&p, "WELCOME")}
		files = append(files, file(fmt.Sprintf("p%d.hcl", i), declare(p)))
	}
	d := declare()
	d.Keys = []catalog.Key{{Name: "k", ID: "abcdef"}}
	d.Defaults, d.Sealing = &catalog.Defaults{Service: &catalog.ServiceSettings{}}, &catalog.Sealing{Require: true}
	apply(t, s, now, append(files, file("keys.hcl", d))...)
}

func TestImport(t *testing.T) {
	t.Parallel()
	from := open(t, "", store.Options{})
	full(t, from, noon, 50)
	if err := from.SetDecoderRevision(9); err != nil {
		t.Fatal(err)
	}
	dir := newDir(t)
	to := open(t, dir, store.Options{})
	if err := to.Import(from); err != nil {
		t.Fatal(err)
	}
	same(t, "into an empty store", from, to)
	if v, err := to.DecoderRevision(); v != 9 || err != nil || to.Generation() != from.Generation() {
		t.Errorf("revision %d, generation %d, %v", v, to.Generation(), err)
	}

	// Now the two differ: the imported store has more, less and other objects, and a higher generation.
	full(t, to, noon.Add(time.Hour), 40)
	apply(t, to, noon, gone("p41.hcl"), file("extra.hcl", declare(block("extra", "extra.example"))))
	if err := to.Import(from); err != nil {
		t.Fatal(err)
	}
	same(t, "into a store that differs", from, to)
	if to.Generation() != 3 {
		t.Errorf("generation %d, want 3: it must not go back", to.Generation())
	}
	if e := apply(t, to, noon, gone("p1.hcl")); e.Generation != 4 {
		t.Errorf("next generation %d, want 4", e.Generation)
	}
	before := dump(t, to)
	to.Close()
	if after := dump(t, open(t, dir, store.Options{})); !slices.Equal(before, after) {
		t.Error("the import was not all on disk")
	}
}

// TestImportKeepsOlderTimes: to the store in memory of a start without a disk, everything is new.
func TestImportKeepsOlderTimes(t *testing.T) {
	t.Parallel()
	disk, mem := open(t, newDir(t), store.Options{}), open(t, "", store.Options{})
	a, b := block("a", "a.example"), block("b", "b.example")
	apply(t, disk, noon, file("a.hcl", declare(a)), file("b.hcl", declare(b)))
	later := noon.Add(time.Hour)
	b.Project.Name = "Changed"
	b.Domains[0].Primary = true
	apply(t, mem, later, file("a.hcl", declare(a)), file("b.hcl", declare(b)))
	if err := disk.Import(mem); err != nil {
		t.Fatal(err)
	}
	noon := noon.Truncate(time.Microsecond)
	later = later.Truncate(time.Microsecond)
	if p := getProject(t, disk, "a").Project; !p.CreatedAt.Equal(noon) || !p.UpdatedAt.Equal(noon) {
		t.Errorf("unchanged: %+v", p)
	}
	if p := getProject(t, disk, "b").Project; p.Name != "Changed" || !p.CreatedAt.Equal(noon) || !p.UpdatedAt.Equal(later) {
		t.Errorf("changed: %+v", p)
	}
	if d := getDomain(t, disk, "b.example"); !d.Primary || !d.CreatedAt.Equal(noon) || !d.UpdatedAt.Equal(later) {
		t.Errorf("changed domain: %+v", d)
	}
}

// TestImportBesideAChange: a change that the failed disk interrupted may still land while the store in memory takes
// over.
func TestImportBesideAChange(t *testing.T) {
	t.Parallel()
	from := open(t, "", store.Options{})
	full(t, from, noon, 200)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for n := 0; ; n++ {
			i := n % 500 // changes as well as new projects
			p := block(fmt.Sprintf("a%d", i), fmt.Sprintf("a%d.example", i))
			p.Project.Name = fmt.Sprint("A", n)
			p.Templates = []catalog.Template{template(&p, "WELCOME")}
			if _, err := from.Apply(&catalog.Change{Files: []catalog.FileChange{file(fmt.Sprintf("a%d.hcl", i), declare(p))}}, 1, noon, func(*store.Effect) error { return nil }); err != nil {
				t.Error(err)
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	defer func() { close(stop); <-stopped }()
	for range testrig.Size(t, 20, 5) {
		to := open(t, "", store.Options{})
		if err := to.Import(from); err != nil {
			t.Fatal(err)
		}
		var ids []int64
		if err := to.EachProjectID(func(id int64) bool { ids = append(ids, id); return true }); err != nil {
			t.Fatal(err)
		}
		domains := 0
		err := to.View(func(v *store.View) error {
			for _, id := range ids {
				if err := v.Domains(id, func(*catalog.Domain) bool { domains++; return true }); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if c := to.Counts(); c.Projects != len(ids) || c.Domains != domains || c.Domains != c.Projects+200 {
			t.Fatalf("%d projects, %d domains, counted %+v", len(ids), domains, c)
		}
	}
}

func TestImportFromAFailedStore(t *testing.T) {
	t.Parallel()
	disk := newBrokenDisk(vfs.NewMem(), failWrites(syscall.ENOSPC))
	failed := open(t, "data", store.Options{FS: disk})
	full(t, failed, noon, 20)
	disk.broken.Store(true)
	fill(t, failed)
	waitFailed(t, failed)
	to := open(t, "", store.Options{})
	within(t, "Import", func() {
		if err := to.Import(failed); err != nil {
			t.Error(err)
		}
	})
	same(t, "out of a failed store", failed, to)
	if err := failed.Import(to); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("into a failed store: %v", err)
	}
}

// TestImportFromADeletedDirectory: the tables are gone from the folder, and Pebble had not opened them yet.
func TestImportFromADeletedDirectory(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("64 MB of files")
	}
	const files = 64 // of 1 MiB: more than one table
	dir := newDir(t)
	s := open(t, dir, store.Options{})
	for n := range files {
		apply(t, s, noon, bulky(n))
	}
	s.Close()
	for range 2 { // the first turns the log into tables, the second finds them
		s = openFree(t, dir)
		if tables, _ := filepath.Glob(filepath.Join(dir, "*.sst")); len(tables) < 2 {
			t.Fatalf("%d tables are too few", len(tables))
		}
		copied := newDir(t)
		if err := os.Rename(dir, copied); err != nil {
			t.Fatal(err)
		}
		if err := s.Check(); err == nil {
			t.Error("the loss is not noticed")
		}
		to := open(t, "", store.Options{})
		if err := to.Import(s); err != nil {
			t.Fatal(err)
		}
		if c := to.Counts(); c.Projects != files {
			t.Errorf("%+v", c)
		}
		s.Close()
		if _, err := s.LastGood("bulk1.hcl"); !errors.Is(err, store.ErrClosed) {
			t.Errorf("read after Close: %v", err)
		}
		dir = copied
	}
}

// TestInterruptedImport interrupts an import after each number of writes, with all earlier writes on disk: half an
// import must not be served.
func TestInterruptedImport(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("ten stores of 12 MB")
	}
	from := open(t, "", store.Options{})
	for n := range 12 { // several batches
		apply(t, from, noon, bulky(n))
	}
	outcomes := make(map[int]int)
	for _, limit := range []int64{0, 1, 2, 3, 5, 10, 50, 100, 200, 1 << 20} {
		mem := vfs.NewCrashableMem()
		s := open(t, "data", store.Options{FS: mem})
		full(t, s, noon, 20)
		s.Close()
		var writes atomic.Int64
		disk := newBrokenDisk(mem, func(op errorfs.Op) error {
			if op.Kind == errorfs.OpFileWrite && writes.Add(1) > limit {
				return syscall.EIO
			}
			return nil
		})
		s = open(t, "data", store.Options{FS: disk})
		disk.broken.Store(true)
		switch err := s.Import(from); {
		case err == nil && limit < 1000:
			waitFailed(t, s) // the log is written behind
		case err == nil:
			s.Close()
		}
		crashed := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 2))})
		s.Close()
		s = open(t, "data", store.Options{FS: crashed})
		n := s.Counts().Projects
		outcomes[n]++
		if lines := dump(t, s); n == 0 && len(lines) != 2 { // sealing <nil> and the counts
			t.Errorf("after %d writes the store is not empty: %s", limit, strings.Join(lines, "\n"))
		}
	}
	for n := range outcomes {
		if n != 0 && n != 12 && n != 20 {
			t.Errorf("half an import is served: %d projects", n)
		}
	}
	if outcomes[0] == 0 || outcomes[12] == 0 {
		t.Errorf("the cuts did not do their work: %v", outcomes)
	}
}
