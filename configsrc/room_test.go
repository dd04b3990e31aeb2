package configsrc_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"fingerpost/configsrc"
	"fingerpost/configsrc/atomicfile"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// A safeBuffer takes a log.
type safeBuffer struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// TestRoom: every kind of write is refused while there is too little room, and succeeds as soon as there is enough.
func TestRoom(t *testing.T) {
	const large, enough = 1 << 40, 16 << 20
	var room atomic.Pointer[atomicfile.Room] // nil: the file system does not report it
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "a.hcl"), named("a", "v1", "a.example"))
	log := new(safeBuffer)
	logger := slog.New(slog.NewTextHandler(log, nil))
	r, err := resolver.Open(resolver.Options{CacheBytes: 1 << 20, Logger: logger})
	must(t, err)
	s := configsrc.New(configsrc.Options{Dir: dir, Sink: r, Logger: logger, MaxDelete: 1, Room: func(at string) (atomicfile.Room, error) {
		if now := room.Load(); now != nil && at == dir {
			return *now, nil
		}
		return atomicfile.Room{}, errors.ErrUnsupported
	}})
	must(t, s.Load(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = s.Run(ctx) })
	defer func() {
		cancel()
		running.Wait()
		must(t, r.Close())
	}()
	refused := func(is atomicfile.Room, says string) {
		t.Helper()
		room.Store(&is)
		before := read(t, file)
		p := catalog.Project{UUID: catalog.NewUUID(), Slug: "new", Name: "New", Status: catalog.StatusDraft}
		for what, err := range map[string]error{
			"update": rename(t.Context(), s, "a", "never"),
			"create": createProject(t.Context(), s, &p),
			"delete": deleteProject(t.Context(), s, catalog.DeriveProjectUUID("a"), func(*catalog.ProjectConfig) error { return nil }),
		} {
			var e *catalog.Error
			if !errors.As(err, &e) || e.Code != catalog.CodeUnavailable || !strings.Contains(e.Message, says) {
				t.Errorf("%s with %+v: %v", what, is, err)
			}
		}
		if low := s.Status().LowDisk; !strings.Contains(low, says) {
			t.Errorf("status with %+v: %q", is, low)
		}
		if read(t, file) != before {
			t.Errorf("%+v: the file has changed", is)
		}
		onlyFiles(t, dir, "a.hcl")
	}
	n := 0
	goes := func(is *atomicfile.Room) {
		t.Helper()
		room.Store(is)
		n++
		if err := rename(t.Context(), s, "a", strings.Repeat("v", n)); err != nil || s.Status().LowDisk != "" {
			t.Errorf("with %+v: %v, status %q", is, err, s.Status().LowDisk)
		}
	}
	goes(nil)
	goes(&atomicfile.Room{Bytes: large, FreeBytes: enough, Inodes: 1 << 20, FreeInodes: 64})
	goes(&atomicfile.Room{Bytes: large, FreeBytes: enough}) // no inodes are counted
	goes(&atomicfile.Room{Bytes: 1 << 20, FreeBytes: 1<<20/10 + 1, Inodes: 100, FreeInodes: 10})
	refused(atomicfile.Room{Bytes: large, FreeBytes: enough - 1}, "16777 kB free, 16777 kB are kept")
	refused(atomicfile.Room{Bytes: large, FreeBytes: 3_000_000}, "3000 kB free")
	goes(&atomicfile.Room{Bytes: large, FreeBytes: large})
	refused(atomicfile.Room{Bytes: large, FreeBytes: large, Inodes: 1 << 20, FreeInodes: 63}, "63 inodes free, 64 are kept")
	refused(atomicfile.Room{Bytes: 1 << 20, FreeBytes: 1<<20/10 - 1}, "104 kB free, 104 kB are kept")
	refused(atomicfile.Room{Bytes: large, FreeBytes: large, Inodes: 100, FreeInodes: 9}, "9 inodes free, 10 are kept")
	goes(nil)
	if err := rename(t.Context(), s, "nobody", "x"); err == nil {
		t.Error("a project that does not exist was renamed")
	}
	if err := rename(t.Context(), s, "a", strings.Repeat("v", n)); err != nil { // it has that name
		t.Error(err)
	}
	counts := map[string]uint64{}
	s.EachWrite(func(result string, count uint64) { counts[result] = count })
	if want := map[string]uint64{"written": uint64(n), "refused": 1, "failed": 5 * 3}; !maps.Equal(counts, want) {
		t.Errorf("writes %v, want %v", counts, want)
	}
	if text := log.String(); strings.Count(text, "too little room") != 2 || strings.Count(text, "has room again") != 2 {
		t.Errorf("log:\n%s", text)
	}
}
