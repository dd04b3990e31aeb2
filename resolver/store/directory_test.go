package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/store"

	"github.com/cockroachdb/pebble/v2"
)

const helperDir = "FINGERPOST_STORE_TEST_DIR"

// TestOpenInHelper is the second process of TestSecondProcess.
func TestOpenInHelper(t *testing.T) {
	t.Parallel()
	dir := os.Getenv(helperDir)
	if dir == "" {
		t.Skip("runs as a second process only")
	}
	_, err := store.Open(dir, store.Options{})
	var locked *store.LockedError
	fmt.Printf("locked=%v is=%v text=%v\n", errors.As(err, &locked), errors.Is(err, store.ErrLocked), err)
}

func TestSecondProcess(t *testing.T) {
	t.Parallel()
	testrig.Slow(t)
	dir := newDir(t)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	// The lock file of a dead process means nothing.
	if err := os.WriteFile(filepath.Join(dir, "LOCK"), []byte("999999\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir, store.Options{})
	cmd := exec.Command(os.Args[0], "-test.run=^TestOpenInHelper$", "-test.v")
	cmd.Env = append(os.Environ(), helperDir+"="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want := fmt.Sprintf("locked=true is=true text=open %s: process %d has it", dir, os.Getpid())
	if !strings.Contains(string(out), want) {
		t.Errorf("got %s\nwant %s", out, want)
	}
	var locked *store.LockedError
	if _, err := store.Open(dir, store.Options{}); !errors.As(err, &locked) || locked.PID != os.Getpid() {
		t.Errorf("in the same process: %v", err)
	}
	apply(t, s, noon, file("a.hcl", declare(block("a")))) // the first store is unharmed
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, dir, store.Options{})
}

// soundStore makes a store with tables on disk and returns its directory.
func soundStore(t *testing.T) string {
	t.Helper()
	dir := newDir(t)
	s := open(t, dir, store.Options{})
	for n := range 3 {
		f := bulky(n)
		f.Bytes = f.Bytes[:3000] // Pebble looks for a flipped bit in a bad block in quadratic time
		apply(t, s, noon, f)
	}
	s.Close()
	s = open(t, dir, store.Options{}) // replays the log into a table
	s.Close()
	return dir
}

// only returns the file that matches a pattern, the largest if there are several.
func only(t *testing.T, dir, pattern string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(names) == 0 {
		t.Fatalf("no %s: %v", pattern, err)
	}
	var best string
	var size int64 = -1
	for _, name := range names {
		if info, err := os.Stat(name); err == nil && info.Size() > size {
			best, size = name, info.Size()
		}
	}
	return best
}

func edit(t *testing.T, name string, f func([]byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, f(b), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestDamagedDirectory(t *testing.T) {
	t.Parallel()
	flip := func(b []byte) []byte { b[12] ^= 0x40; return b }
	for name, strike := range map[string]func(t *testing.T, dir string){
		"table removed": func(t *testing.T, dir string) { os.Remove(only(t, dir, "*.sst")) },
		"table cut": func(t *testing.T, dir string) {
			edit(t, only(t, dir, "*.sst"), func(b []byte) []byte { return b[:len(b)/2] })
		},
		"manifest flipped": func(t *testing.T, dir string) { edit(t, newestManifest(t, dir), flip) },
		"manifest removed": func(t *testing.T, dir string) { os.Remove(newestManifest(t, dir)) },
		"options garbage": func(t *testing.T, dir string) {
			edit(t, only(t, dir, "OPTIONS-*"), func([]byte) []byte { return []byte("garbage") })
		},
		"both markers gone": func(t *testing.T, dir string) { removeAll(t, dir, "marker.*") },
	} {
		dir := soundStore(t)
		strike(t, dir)
		_, err := store.Open(dir, store.Options{})
		if !errors.Is(err, store.ErrDamaged) {
			t.Errorf("%s: %v, want ErrDamaged", name, err)
			continue
		}
		aside, err := store.MoveAside(dir, noon)
		if err != nil || aside != dir+".damaged-20260131T120000Z" {
			t.Errorf("%s: moved to %s, %v", name, aside, err)
		}
		if left, _ := filepath.Glob(filepath.Join(aside, "*")); len(left) == 0 {
			t.Errorf("%s: nothing is left of the damaged store", name)
		}
		s := open(t, dir, store.Options{})
		apply(t, s, noon, file("a.hcl", declare(block("a", "a.example"))))
	}
}

func newestManifest(t *testing.T, dir string) string {
	t.Helper()
	marker := only(t, dir, "marker.manifest.*")
	return filepath.Join(dir, marker[strings.LastIndexByte(marker, '.')+1:])
}

func removeAll(t *testing.T, dir, pattern string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(names) == 0 {
		t.Fatalf("no %s: %v", pattern, err)
	}
	for _, name := range names {
		os.Remove(name)
	}
}

func TestMoveAsideTwiceInASecond(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	var names []string
	for range 3 {
		if err := os.MkdirAll(filepath.Join(dir, "sub"), 0o755); err != nil {
			t.Fatal(err)
		}
		name, err := store.MoveAside(dir+"/", noon)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, filepath.Base(name))
	}
	if got, want := strings.Join(names, " "), "data.damaged-20260131T120000Z data.damaged-20260131T120000Z-2 data.damaged-20260131T120000Z-3"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestDamagedBlock damages a store in use: blocks are checked only when they are read.
func TestDamagedBlock(t *testing.T) {
	t.Parallel()
	dir := soundStore(t)
	edit(t, only(t, dir, "*.sst"), func(b []byte) []byte {
		for i := range len(b) / 2 {
			b[i] ^= 0xff
		}
		return b
	})
	s, err := store.Open(dir, store.Options{})
	if err == nil {
		defer s.Close()
		for n := range 3 {
			if _, err = s.LastGood(fmt.Sprintf("bulk%d.hcl", n)); err != nil {
				break
			}
		}
		waitFailed(t, s)
		if !errors.Is(s.Err(), store.ErrDamaged) {
			t.Errorf("Err: %v", s.Err())
		}
	}
	if !errors.Is(err, store.ErrDamaged) {
		t.Errorf("%v, want ErrDamaged", err)
	}
}

func TestNewerIsRefusedAndKept(t *testing.T) {
	t.Parallel()
	dir := soundStore(t)
	marker := only(t, dir, "marker.format-version.*")
	newMarker := marker[:strings.LastIndexByte(marker, '.')] + ".999"
	if err := os.Rename(marker, newMarker); err != nil {
		t.Fatal(err)
	}
	before := listing(t, dir)
	_, err := store.Open(dir, store.Options{})
	if !errors.Is(err, store.ErrNewer) || !strings.Contains(fmt.Sprint(err), "999") || !strings.Contains(fmt.Sprint(err), "start the newer release again") {
		t.Errorf("%v, want ErrNewer that says what to do", err)
	}
	if after := listing(t, dir); before != after {
		t.Errorf("the directory was changed:\n%s\n%s", before, after)
	}
	if err := os.Rename(newMarker, marker); err != nil {
		t.Fatal(err)
	}
	open(t, dir, store.Options{})
}

func listing(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&b, e.Name(), info.Size(), info.ModTime())
	}
	return b.String()
}

func TestUnreadableDirectory(t *testing.T) {
	t.Parallel()
	// A file in the place of the directory is not ours to move.
	name := newDir(t)
	if err := os.WriteFile(name, []byte("precious"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Open(name, store.Options{}); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("%v, want ErrUnavailable", err)
	}
	if b, err := os.ReadFile(name); err != nil || string(b) != "precious" {
		t.Errorf("the file has become %q, %v", b, err)
	}
}

// TestForeignDataIsDamage expects a foreign Pebble directory to be moved aside, not written into.
func TestForeignDataIsDamage(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	db, err := pebble.Open(dir, &pebble.Options{Logger: fatalLogger(nil)})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Set([]byte("theirs"), []byte("data"), pebble.Sync), db.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Open(dir, store.Options{}); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("%v, want ErrDamaged", err)
	}
}
