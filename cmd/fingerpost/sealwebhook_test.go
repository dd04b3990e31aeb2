package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/configsrc/seal"
	"fingerpost/resolver/catalog"
)

// TestSealWebhook: a secret of a webhook is sealed by its name and opens there, also after reseal, which keeps the
// comments of a rotation's list.
func TestSealWebhook(t *testing.T) {
	dir, key := t.TempDir(), filepath.Join(t.TempDir(), "seal.key")
	run := func(stdin string, want int, args ...string) (out, errs string) {
		t.Helper()
		var o, e bytes.Buffer
		code := runContext(context.Background(), append(append([]string{"secrets"}, args...), "--config", dir, "--seal-key", key),
			cli.Terminal{In: strings.NewReader(stdin), Out: &o, Err: &e})
		if code != want {
			t.Fatalf("%v: %d, %s %s", args, code, o.String(), e.String())
		}
		return o.String(), e.String()
	}
	run("", cli.ExitOK, "keygen")
	secret := catalog.NewWebhookSecret()
	line, _ := run(secret+"\n", cli.ExitOK, "seal", "--webhook", "crm")
	expr, found := strings.CutPrefix(strings.TrimSpace(line), "secret = ")
	if !found {
		t.Fatal(line)
	}
	if _, errs := run("hunter2", cli.ExitNot, "seal", "--webhook", "crm"); strings.Contains(errs, "hunter2") {
		t.Errorf("a wrong secret is shown: %s", errs)
	}
	run(secret, cli.ExitUsage, "seal", "--webhook", "CRM")
	run(secret, cli.ExitUsage, "seal", "--webhook", "crm", "--defaults")
	file := filepath.Join(dir, "hooks.hcl")
	text := "webhook \"crm\" {\n  url = \"https://crm.example/\"\n  secret = [\n    env(\"NEW\"), # since Monday\n    " + expr + ", # until Friday\n  ]\n}\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, errs := run("", cli.ExitOK, "reseal"); !strings.Contains(errs, "1 value sealed anew") {
		t.Error(errs)
	}
	got := read(t, file)
	sealed := got[strings.Index(got, `sealed("`)+len(`sealed("`):]
	sealed = sealed[:strings.IndexByte(sealed, '"')]
	ids, err := seal.Load(key)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := ids.Open(catalog.NewWebhook("crm").SecretContext(), sealed)
	if err != nil || plain != secret || strings.Contains(got, expr) || strings.Replace(got, `sealed("`+sealed+`")`, expr, 1) != text {
		t.Errorf("%v, after reseal:\n%s", err, got)
	}
}
