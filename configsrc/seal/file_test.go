package seal_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fingerpost/configsrc/seal"
	"fingerpost/resolver/catalog"
)

// TestSecretFiles: what editors add to a file is no part of the secret, and a pointer of Git LFS is none.
func TestSecretFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := &seal.Secrets{SecretsDir: dir}
	secret := catalog.Secret{Source: catalog.SecretFile, Ref: "password"}
	open := func(content string) (string, error) {
		if err := os.WriteFile(filepath.Join(dir, "password"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return s.Open(secret, "")
	}
	for content, want := range map[string]string{
		"hunter2": "hunter2", "hunter2\n": "hunter2", "hunter2\r\n": "hunter2", "\ufeffhunter2\r\n": "hunter2",
		"hunter2\n\n": "hunter2\n", " hunter2 ": " hunter2 ", "\ufeff\ufeffx": "\ufeffx",
	} {
		if got, err := open(content); got != want || err != nil {
			t.Errorf("%q: %q, %v", content, got, err)
		}
	}
	const pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
	if got, err := open(pointer); err == nil || !strings.Contains(err.Error(), "git lfs pull") {
		t.Errorf("%q, %v", got, err)
	}
}
