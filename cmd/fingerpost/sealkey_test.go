package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/cmd/testrig"
)

// TestUnreadableSealKey: an unusable default seal key does not stop the start, and is reported. A key that was named
// explicitly must be usable.
func TestUnreadableSealKey(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	const secret = "AGE-SECRET-KEY-1GARBAGE0123456789"
	for name, c := range map[string]struct {
		make func(path string) error
		says string
	}{
		"garbage": {func(path string) error { return os.WriteFile(path, []byte(secret+"\n"), 0o600) }, "no age X25519 identity"},
		"empty":   {func(path string) error { return os.WriteFile(path, nil, 0o600) }, "holds no identity"},
		"folder":  {func(path string) error { return os.Mkdir(path, 0o700) }, "no regular file"},
		"FIFO":    {func(path string) error { return syscall.Mkfifo(path, 0o600) }, "no regular file"},
		"loop":    {func(path string) error { return os.Symlink("seal.key", path) }, "too many levels of symbolic links"},
		"parent": {func(path string) error {
			return os.WriteFile(strings.TrimSuffix(path, "/seal.key"), nil, 0o600)
		}, "not a directory"},
		"permission": {func(path string) error { return os.WriteFile(path, []byte(secret), 0) }, "permission denied"},
	} {
		t.Run(name, func(t *testing.T) {
			if t.Parallel(); name == "permission" && os.Geteuid() == 0 {
				t.Skip("root may read anything")
			}
			r := idleRig(t, t.TempDir(), nil)
			path := filepath.Join(r.dir, "fingerpost", "seal.key")
			if name != "parent" {
				must(t, os.Mkdir(filepath.Dir(path), 0o700))
			}
			must(t, c.make(path))
			r.start()
			granted(t, "resolve", r.get(resolvePath+"other.example"))
			state, all, err := r.problems()
			if err != nil || state != "ok" || len(all) != 1 || all[0].Severity != "warning" || !strings.Contains(all[0].Summary, c.says) {
				t.Errorf("state %s, %+v, %v; want one warning that says %q", state, all, err, c.says)
			}
			if log := r.logged(); strings.Count(log, `"level":"WARN"`) != 1 || !strings.Contains(log, c.says) || strings.Contains(log, secret) {
				t.Errorf("want one warning that says %q: %s", c.says, log)
			}
			r.halt()
			printed, code := r.run("serve", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--seal-key", path)
			if code != cli.ExitFailed || !strings.Contains(printed, c.says) || strings.Contains(printed, secret) {
				t.Errorf("with --seal-key: %d %s", code, printed)
			}
		})
	}
}
