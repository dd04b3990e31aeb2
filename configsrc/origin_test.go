package configsrc_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/offline"
	"fingerpost/resolver/catalog"
)

// TestExplain: the origins follow the files: lines, a block that moves, a defaults block that comes and goes, a broken
// file, a deleted project.
func TestExplain(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	dir := t.TempDir()
	acme := "project \"acme\" {\n  name = \"Acme\"\n  service_settings { mail_enabled = true }\n  auth_settings {}\n}\n"
	write(t, filepath.Join(dir, "a.hcl"), acme)
	n := newNode(t, dir, nodeOptions{})
	uuid := catalog.DeriveProjectUUID("acme")
	check := func(field string, want catalog.Origin) {
		t.Helper()
		if err := n.source.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		x, err := n.source.Explain(uuid)
		if err != nil {
			t.Fatal(err)
		}
		if got := x.Service[field]; got != want || x.SMTP != nil {
			t.Errorf("%s: %+v, want %+v (SMTP %v)", field, got, want, x.SMTP)
		}
		checked, err := offline.Check(dir)
		if err != nil {
			t.Fatal(err)
		}
		if x := checked.Explain("acme"); x != nil && !checked.Problems.HasErrors() {
			if want.File != "" {
				want.File = filepath.Join(dir, want.File)
			}
			if got := x.Service[field]; got != want {
				t.Errorf("%s, from the files alone: %+v, want %+v", field, got, want)
			}
		}
	}
	check("mailEnabled", catalog.Origin{File: "a.hcl", Line: 3})
	check("smsEnabled", catalog.Origin{})
	write(t, filepath.Join(dir, "a.hcl"), "# One\n# two.\n"+acme)
	check("mailEnabled", catalog.Origin{File: "a.hcl", Line: 5})
	write(t, filepath.Join(dir, "z.hcl"), "defaults {\n  service_settings {\n    mail_enabled = false\n    sms_enabled = true\n  }\n}\n")
	check("mailEnabled", catalog.Origin{File: "a.hcl", Line: 5})
	check("smsEnabled", catalog.Origin{File: "z.hcl", Line: 4, Defaults: true})
	write(t, filepath.Join(dir, "a.hcl"), "project \"acme\" {\n")
	check("mailEnabled", catalog.Origin{File: "a.hcl", Line: 5})
	write(t, filepath.Join(dir, "b.hcl"), acme)
	if err := os.Remove(filepath.Join(dir, "a.hcl")); err != nil {
		t.Fatal(err)
	}
	check("mailEnabled", catalog.Origin{File: "b.hcl", Line: 3})
	if err := os.Remove(filepath.Join(dir, "z.hcl")); err != nil {
		t.Fatal(err)
	}
	check("smsEnabled", catalog.Origin{})
	_, err := n.source.Explain(catalog.NewUUID())
	var refused *catalog.Error
	if !errors.As(err, &refused) || refused.Code != catalog.CodeNotFound {
		t.Errorf("an unknown project: %v", err)
	}
	if checked, err := offline.Check(dir); err != nil || checked.Explain("nobody") != nil {
		t.Error("an unknown slug is explained", err)
	}
}
