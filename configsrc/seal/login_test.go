package seal_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fingerpost/configsrc/seal"
	"fingerpost/resolver/catalog"
)

// TestLogin: a login without a secret or ca_file has none, and what stands in a file, below either folder, is read again
// each time.
func TestLogin(t *testing.T) {
	t.Parallel()
	dir, secrets := t.TempDir(), t.TempDir()
	s := &seal.Secrets{Dir: dir, SecretsDir: secrets}
	l := catalog.NewLogin("company")
	if text, err := s.OpenLogin(l); text != "" || err != nil {
		t.Errorf("without a secret: %q, %v", text, err)
	}
	if pem, err := s.ReadLoginCA(l); pem != nil || err != nil {
		t.Errorf("without a ca_file: %q, %v", pem, err)
	}
	l.ClientSecret, l.CAFile = catalog.Secret{Source: catalog.SecretFile, Ref: "oidc"}, "ca.pem"
	if _, err := s.OpenLogin(l); err == nil || !strings.Contains(err.Error(), "oidc") {
		t.Errorf("without the file: %v", err)
	}
	if _, err := s.ReadLoginCA(l); err == nil || !strings.Contains(err.Error(), "ca.pem") {
		t.Errorf("without the file: %v", err)
	}
	write := func(dir, name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := func(secret, ca string) {
		t.Helper()
		text, err1 := s.OpenLogin(l)
		pem, err2 := s.ReadLoginCA(l)
		if err1 != nil || err2 != nil || text != secret || string(pem) != ca {
			t.Errorf("%q, %v; %q, %v", text, err1, pem, err2)
		}
	}
	write(secrets, "oidc", "first\n")
	write(secrets, "ca.pem", "one")
	want("first", "one")
	write(dir, "oidc", "second\n")
	write(dir, "ca.pem", "two")
	want("second", "two")
}
