package configsrc_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/offline"
	"fingerpost/configsrc/seal"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// within fails if f has not ended in time, for instance because it waits for the other end of a FIFO.
func within(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(testrig.Patience):
		t.Fatalf("%s does not end", what)
	}
}

// Only regular files are opened for a secret: no FIFO, which may never get a writer, and no device.
func TestSecretOfSpecialFile(t *testing.T) {
	dir := t.TempDir()
	must(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	must(t, os.Symlink("fifo", filepath.Join(dir, "link")))
	must(t, os.Mkdir(filepath.Join(dir, "folder"), 0o700))
	for _, c := range []struct{ secretsDir, name, want string }{
		{"", "fifo", "fifo: is a FIFO; only regular files are read"},
		{"", "link", "link: is a FIFO; only regular files are read"},
		{dir, "fifo", "fifo: is a FIFO; only regular files are read"},
		{"", "folder", "folder: is a folder; only regular files are read"},
		{"/dev", "zero", "zero: is a device or special file; only regular files are read"},
	} {
		s := &seal.Secrets{Dir: dir, SecretsDir: c.secretsDir}
		if c.secretsDir == dir {
			s.Dir = t.TempDir()
		}
		within(t, "opening "+c.name, func() {
			got, err := s.Open(catalog.Secret{Source: catalog.SecretFile, Ref: c.name}, "")
			if got != "" || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %d bytes, %v; want an error with %q", c.name, len(got), err, c.want)
			}
		})
	}
}

// A body or a ca_file that is a FIFO or a device is a problem with a position, and its writer stays blocked.
func TestBodyOfSpecialFile(t *testing.T) {
	dir := t.TempDir()
	must(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	write(t, filepath.Join(dir, "acme.hcl"), `project "acme" {
  name = "acme"
  template "A" {
    name             = "A"
    subject_template = "s"
    body_text        = file("fifo")
  }
  smtp_config {
    host       = "smtp.acme.example"
    from_email = "a@acme.example"
    ca_file    = "fifo"
  }
}
`)
	written := make(chan error, 1)
	go func() {
		f, err := os.OpenFile(filepath.Join(dir, "fifo"), os.O_WRONLY, 0)
		if err == nil {
			_, err = f.WriteString("somebody else's\n")
			f.Close()
		}
		written <- err
	}()
	within(t, "the check", func() {
		checked, err := offline.Check(dir)
		if err != nil || !strings.Contains(fmt.Sprint(checked.Problems), "is a FIFO; only regular files are read") {
			t.Errorf("problems: %v, %v", checked.Problems, err)
		}
	})
	select {
	case err := <-written:
		t.Errorf("the FIFO was opened; its writer got %v", err)
	default:
	}
	within(t, "reading the FIFO", func() {
		if got := read(t, filepath.Join(dir, "fifo")); got != "somebody else's\n" {
			t.Errorf("the FIFO says %q", got)
		}
	})
}

// TestResolveWithFIFO requests the flat form of a project whose secret is a FIFO. No answer leaves a thread behind.
func TestResolveWithFIFO(t *testing.T) {
	dir := t.TempDir()
	must(t, syscall.Mkfifo(filepath.Join(dir, "secret"), 0o600))
	write(t, filepath.Join(dir, "acme.hcl"), "project \"acme\" {\n  name = \"acme\"\n  domain \"acme.example\" {}\n  auth_settings { jwt_secret = file(\"secret\") }\n}\n")
	secrets := &seal.Secrets{Dir: dir}
	r, err := resolver.Open(resolver.Options{CacheBytes: 1 << 20, OpenSecret: secrets.Open})
	must(t, err)
	defer r.Close()
	newNode(t, dir, nodeOptions{resolver: r, loadOnly: true})
	before := threads(t)
	within(t, "resolve", func() {
		for range 100 {
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, _ = r.Resolve([]byte("acme.example"), resolver.FlatSecrets)
			}()
			<-done
		}
	})
	if now := threads(t); now > before+20 {
		t.Errorf("%d threads, %d before", now, before)
	}
}

func threads(t *testing.T) (n int) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	must(t, err)
	_, after, _ := strings.Cut(string(b), "Threads:")
	if _, err := fmt.Sscan(after, &n); err != nil {
		t.Fatal(err)
	}
	return n
}
