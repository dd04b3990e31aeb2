package seal_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fingerpost/configsrc/seal"
	"fingerpost/resolver/catalog"
)

// TestInbound: of several secrets those that can be opened and are fit count, and the error tells of the others without
// quoting one.
func TestInbound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := &seal.Secrets{Dir: dir, SecretsDir: t.TempDir()}
	b := catalog.NewInbound("ses")
	for _, name := range []string{"new", "gone", "short"} {
		b.Secrets = append(b.Secrets, catalog.Secret{Source: catalog.SecretFile, Ref: name})
	}
	const good = "0123456789abcdef"
	for name, text := range map[string]string{"new": good + "\n", "short": "hunter2\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.OpenInbound(b)
	if !slices.Equal(got, []string{good}) || err == nil || !strings.Contains(err.Error(), "gone") ||
		!strings.Contains(err.Error(), "16 to 200") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%q, %v", got, err)
	}
	b.Secrets = b.Secrets[:1]
	if got, err = s.OpenInbound(b); len(got) != 1 || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}
