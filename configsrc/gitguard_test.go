package configsrc

import (
	"os"
	"path/filepath"
	"testing"
)

// TestCheckoutBehindALink: the checkout is that of the link's present target.
func TestCheckoutBehindALink(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(top, "current")
	g := newGitGuard(func() (string, error) { return filepath.EvalSymlinks(filepath.Join(link, "projects.d")) })
	for _, release := range []string{"one", "two"} {
		want := filepath.Join(top, release, ".git")
		for _, dir := range []string{want, filepath.Join(top, release, "projects.d")} {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		_ = os.Remove(link)
		if err := os.Symlink(filepath.Join(top, release), link); err != nil {
			t.Fatal(err)
		}
		if got := g.folder(); got != want {
			t.Errorf("%q, want %s", got, want)
		}
	}
}
