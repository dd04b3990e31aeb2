package configsrc_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fingerpost/configsrc/atomicfile"
	"fingerpost/configsrc/offline"
	"fingerpost/configsrc/seal"
	"fingerpost/resolver/catalog"
)

// Absolute links that stay in the folder work like relative ones: for config files, for folders on the way to one, for
// bodies and for secrets; also if the folder's own name is a link. A link that leads out is refused.
func TestAbsoluteLinks(t *testing.T) {
	real, outside := t.TempDir(), t.TempDir()
	dir := filepath.Join(t.TempDir(), "served")
	must(t, os.Symlink(real, dir))
	write(t, filepath.Join(real, ".versions/2/acme.hcl"), `project "acme" {
  name = "acme"
  domain "acme.example" {}
  template "A" {
    name             = "A"
    subject_template = "s"
    body_html        = file("mail/a.html")
    body_text        = file("text.txt")
  }
}
`)
	write(t, filepath.Join(real, ".versions/2/mail/a.html"), "<p>html\n")
	write(t, filepath.Join(real, ".versions/2/a.txt"), "text\n")
	write(t, filepath.Join(outside, "out.hcl"), project("out"))
	write(t, filepath.Join(outside, "secret"), "out\n")
	for link, to := range map[string]string{
		".current": filepath.Join(real, ".versions/2"),
		"acme.hcl": filepath.Join(dir, ".current/acme.hcl"), // by the folder's linked name, over a linked folder
		"mail":     filepath.Join(real, ".current/mail"),
		"text.txt": filepath.Join(real, ".versions/2/a.txt"),
		"loop.hcl": filepath.Join(real, "loop.hcl"),
		"out.hcl":  filepath.Join(outside, "out.hcl"),
		"secret":   filepath.Join(outside, "secret"),
		"up":       outside,
	} {
		must(t, os.Symlink(to, filepath.Join(real, link)))
	}
	checked, err := offline.Check(dir)
	must(t, err)
	if len(checked.Files) != 1 || len(checked.Problems) != 2 || !strings.Contains(checked.Problems[0].Summary, "leads back to itself") ||
		!strings.Contains(checked.Problems[1].Summary, "leads out of the config folder") {
		t.Fatalf("%d files, problems %v", len(checked.Files), checked.Problems)
	}
	s := &seal.Secrets{Dir: dir}
	for _, name := range []string{"secret", "up/secret"} {
		if got, err := s.Open(catalog.Secret{Source: catalog.SecretFile, Ref: name}, ""); err == nil || !strings.Contains(err.Error(), "leads out of the") {
			t.Errorf("the secret %s is %q, %v", name, got, err)
		}
	}
	if got, err := s.Open(catalog.Secret{Source: catalog.SecretFile, Ref: "text.txt"}, ""); err != nil || got != "text" {
		t.Errorf("a secret behind a link is %q, %v", got, err)
	}

	must(t, os.Remove(filepath.Join(real, "loop.hcl")))
	must(t, os.Remove(filepath.Join(real, "out.hcl")))
	_, source, end := openDying(t, dir, atomicfile.OSDisk{})
	defer end()
	must(t, updateProject(context.Background(), source, catalog.DeriveProjectUUID("acme"), func(p *catalog.ProjectConfig) error {
		p.Project.Name, p.Templates[0].BodyHTML, p.Templates[0].BodyText = "new", "<p>new\n", "new\n"
		return nil
	}))
	for name, want := range map[string]string{".versions/2/acme.hcl": "\"new\"", ".versions/2/mail/a.html": "<p>new\n", ".versions/2/a.txt": "new\n"} {
		if got := read(t, filepath.Join(real, name)); !strings.Contains(got, want) {
			t.Errorf("%s holds %q", name, got)
		}
	}
	if to, err := os.Readlink(filepath.Join(real, "acme.hcl")); err != nil || to != filepath.Join(dir, ".current/acme.hcl") {
		t.Errorf("the link leads to %q, %v", to, err)
	}
}
