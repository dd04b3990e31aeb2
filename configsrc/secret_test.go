package configsrc_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fingerpost/configsrc/seal"
	"fingerpost/resolver/catalog"
)

// A file is read whole or not at all: a truncated bundle of CAs would trust only some servers.
func TestSecretsOfFiles(t *testing.T) {
	dir, aside := t.TempDir(), t.TempDir()
	put := func(dir, name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	bundle := strings.Repeat("0123456789abcdef", 1<<16)
	put(dir, "pw.txt", "right\r\n")
	put(dir, "bundle.pem", bundle)
	put(dir, "large.pem", bundle+"!")
	put(aside, "large.pem", "not this one")
	put(aside, "aside.txt", "elsewhere\n\n")
	s := &seal.Secrets{Dir: dir, SecretsDir: aside}
	for name, want := range map[string]string{"pw.txt": "right", "bundle.pem": bundle, "aside.txt": "elsewhere\n"} {
		got, err := s.Open(catalog.Secret{Source: catalog.SecretFile, Ref: name}, "")
		if got != want || err != nil {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	for name, why := range map[string]string{"large.pem": "1 MiB", "none.txt": "no such file", "../pw.txt": "escapes"} {
		got, err := s.Open(catalog.Secret{Source: catalog.SecretFile, Ref: name}, "")
		if got != "" || err == nil || !strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
}
