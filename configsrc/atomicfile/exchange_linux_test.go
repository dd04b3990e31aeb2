package atomicfile

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// meddler changes the target right before the first exchange.
type meddler struct {
	OSDisk
	first func(target string) error
}

func (m *meddler) Exchange(a, b string) error {
	if f := m.first; f != nil {
		m.first = nil
		if err := f(b); err != nil {
			return err
		}
	}
	return m.OSDisk.Exchange(a, b)
}

// TestExchangeBringsOutNoFile: whatever was put in the place of the file is put back, even a link to the same content,
// and no read blocks on a FIFO.
func TestExchangeBringsOutNoFile(t *testing.T) {
	const old, ours = "old", "ours"
	for _, c := range []struct {
		what    string
		replace func(target string) error
		kind    os.FileMode
	}{
		{"a link to the file moved elsewhere", func(target string) error {
			if err := os.Rename(target, target+".moved"); err != nil {
				return err
			}
			return os.Symlink(filepath.Base(target)+".moved", target)
		}, os.ModeSymlink},
		{"a FIFO", func(target string) error {
			if err := os.Remove(target); err != nil {
				return err
			}
			return syscall.Mkfifo(target, 0o644)
		}, os.ModeNamedPipe},
	} {
		t.Run(c.what, func(t *testing.T) {
			dir := t.TempDir()
			temp, target := filepath.Join(dir, ".fingerpost-1.tmp"), filepath.Join(dir, "a.hcl")
			for name, text := range map[string]string{temp: ours, target: old} {
				if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			_, err := exchange(&meddler{first: c.replace}, temp, target, sha256.Sum256([]byte(old)), sha256.Sum256([]byte(ours)))
			if err == nil {
				t.Error("it was taken for the file")
			}
			info, err := os.Lstat(target)
			if err != nil || info.Mode().Type() != c.kind {
				t.Errorf("in its place is %v, %v", info, err)
			}
			if b, err := os.ReadFile(temp); err != nil || string(b) != ours {
				t.Errorf("in the temporary file is %q, %v", b, err)
			}
		})
	}
}
