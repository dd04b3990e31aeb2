package store_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fingerpost/resolver/store"
)

// TestOthersFilesStay: the mode of a folder that holds other things and no store is not narrowed, and its files are
// left alone when it is.
func TestOthersFilesStay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check := func(name string, want os.FileMode) {
		t.Helper()
		info, err := os.Stat(name)
		must(err)
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", name, got, want)
		}
	}
	other := filepath.Join(dir, "notes.txt")
	must(os.WriteFile(other, []byte("x"), 0o644))
	must(os.Chmod(other, 0o644))
	must(os.Chmod(dir, 0o755))
	for _, c := range []struct {
		says string
		mode os.FileMode
	}{{"there are other things in it", 0o755}, {"has mode 0700 now", 0o700}} {
		var log strings.Builder
		s, err := store.Open(dir, store.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		must(err)
		must(s.Close())
		if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, c.says) {
			t.Errorf("want one warning that %s: %s", c.says, got)
		}
		check(dir, c.mode)
		check(filepath.Join(dir, "LOCK"), 0o600)
		check(other, 0o644)
	}
	public := t.TempDir() // like /tmp
	must(os.Chmod(public, 0o777|os.ModeSticky))
	for range 2 {
		s, err := store.Open(public, store.Options{})
		must(err)
		must(s.Close())
		check(public, 0o777)
		check(filepath.Join(public, "LOCK"), 0o600)
	}
}
