package configsrc_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fingerpost/configsrc/hclfile"
	"fingerpost/configsrc/offline"
	"fingerpost/configsrc/seal"
	"fingerpost/resolver/catalog"
)

func editWebhook(w writer, e *catalog.WebhookEdit) error {
	return edit(context.Background(), w, &catalog.Edit{Webhook: e})
}

func changeWebhook(w writer, name string, seals bool, change func(w *catalog.Webhook)) error {
	return editWebhook(w, &catalog.WebhookEdit{Name: name, Seals: seals, Change: func(w *catalog.Webhook) error { change(w); return nil }})
}

func plainSecret() (s catalog.Secret, text string) {
	text = catalog.NewWebhookSecret()
	return catalog.Secret{Source: catalog.SecretPlain, Ref: text}, text
}

func wantCode(t *testing.T, what string, err error, code catalog.Code) {
	t.Helper()
	if e, is := errors.AsType[*catalog.Error](err); !is || e.Code != code {
		t.Errorf("%s: %v, want %s", what, err, code)
	}
}

// TestWebhookWrites goes through the life of a webhook over the API, with the file after each step.
func TestWebhookWrites(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key := filepath.Join(t.TempDir(), "seal.key")
	recipient, err := seal.Keygen(key)
	must(t, err)
	ids, err := seal.Load(key)
	must(t, err)
	n := newNode(t, dir, nodeOptions{})
	crm := catalog.NewWebhook("crm")
	crm.URL = "https://crm.example/"
	secret, text := plainSecret()
	crm.Secrets = []catalog.Secret{secret}
	create := &catalog.WebhookEdit{Name: "crm", Create: crm}
	wantCode(t, "without recipients", editWebhook(n.source, create), catalog.CodeSecretsMissing)
	write(t, filepath.Join(dir, "sealing.hcl"), fmt.Sprintf("sealing {\n  recipients = [%q]\n}\n", recipient))
	n.until("recipients are known", func() bool { return n.resolver.Sealing() != nil })
	must(t, editWebhook(n.source, create))
	wantCode(t, "twice", editWebhook(n.source, create), catalog.CodeConflict)
	opened := func(want ...string) {
		t.Helper()
		var got []string
		w := n.resolver.Webhooks()[0]
		for _, s := range w.Secrets {
			plain, err := ids.Open(w.SecretContext(), s.Ref)
			if err != nil {
				plain = s.String()
			}
			got = append(got, plain)
		}
		if !slices.Equal(got, want) {
			t.Errorf("secrets %q, want %q in\n%s", got, want, read(t, filepath.Join(dir, "webhooks.hcl")))
		}
	}
	opened(text)
	second, secondText := plainSecret()
	must(t, changeWebhook(n.source, "crm", true, func(w *catalog.Webhook) { w.Rotate(second, true) }))
	opened(secondText, text)
	must(t, changeWebhook(n.source, "crm", false, func(w *catalog.Webhook) { w.EndRotation() }))
	opened(secondText)
	must(t, changeWebhook(n.source, "crm", false, func(w *catalog.Webhook) {
		w.URL, w.Events, w.Active, w.Secrets = "https://new.example/", []string{"domain.*"}, false, []catalog.Secret{secret}
	}))
	opened(text)
	if w := n.resolver.Webhooks()[0]; w.URL != "https://new.example/" || w.Active || !slices.Equal(w.Events, []string{"domain.*"}) {
		t.Errorf("%+v", w)
	}
	if file := read(t, filepath.Join(dir, "webhooks.hcl")); strings.Contains(file, "whsec_") {
		t.Errorf("a secret stands in clear text:\n%s", file)
	}
	refused := errors.New("refused")
	if err := editWebhook(n.source, &catalog.WebhookEdit{Name: "crm", Permit: func() error { return refused }}); !errors.Is(err, refused) {
		t.Error(err)
	}
	must(t, editWebhook(n.source, &catalog.WebhookEdit{Name: "crm"}))
	wantCode(t, "gone", editWebhook(n.source, &catalog.WebhookEdit{Name: "crm"}), catalog.CodeNotFound)
	onlyFiles(t, dir, "sealing.hcl")
}

// TestWebhookByHand: what a person has written stays, and is what the API says that it must not replace.
func TestWebhookByHand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	recipient, err := seal.Keygen(filepath.Join(t.TempDir(), "seal.key"))
	must(t, err)
	const hook = "# the CRM\nwebhook \"crm\" {\n  url    = \"https://crm.example/\"\n  secret = env(\"CRM\") # vault\n" +
		"  events = [\n    \"domain.*\", # purge\n  ]\n}\n"
	path := write(t, filepath.Join(dir, "ours.hcl"), hook+fmt.Sprintf("sealing {\n  recipients = [%q]\n}\n", recipient))
	n := newNode(t, dir, nodeOptions{})
	secret, _ := plainSecret()
	wantCode(t, "over env()", changeWebhook(n.source, "crm", false, func(w *catalog.Webhook) { w.Secrets = []catalog.Secret{secret} }),
		catalog.CodeExpression)
	wantCode(t, "over a comment", changeWebhook(n.source, "crm", false, func(w *catalog.Webhook) { w.Events = []string{"key.*"} }),
		catalog.CodeExpression)
	must(t, changeWebhook(n.source, "crm", false, func(w *catalog.Webhook) { w.Events = []string{"domain.*", "key.*"} }))
	if got := read(t, path); !strings.HasPrefix(got, strings.Replace(hook, "# purge\n", "# purge\n    \"key.*\",\n", 1)) {
		t.Errorf("got\n%s", got)
	}
	must(t, changeWebhook(n.source, "crm", true, func(w *catalog.Webhook) { w.Rotate(secret, true) }))
	if got := n.resolver.Webhooks()[0].Secrets; len(got) != 2 || got[1].Ref != "CRM" {
		t.Errorf("secrets %v", got)
	}
	must(t, changeWebhook(n.source, "crm", true, func(w *catalog.Webhook) { w.EndRotation() }))
	two := catalog.NewWebhook("two")
	two.URL, two.Secrets = "https://two.example/", []catalog.Secret{secret}
	must(t, editWebhook(n.source, &catalog.WebhookEdit{Name: "two", Create: two}))
	onlyFiles(t, dir, "ours.hcl")
}

// TestWebhookLists: a project that is renamed or removed takes the lists of webhooks along, and an unknown slug is a
// warning.
func TestWebhookLists(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	hook := func(name, projects string) string {
		return fmt.Sprintf("webhook %q {\n  url = \"https://crm.example/\"\n  secret = env(\"CRM\")\n  projects = %s\n}\n", name, projects)
	}
	own := write(t, filepath.Join(dir, "acme.hcl"), project("acme")+hook("own", `["acme"]`))
	write(t, filepath.Join(dir, "globex.hcl"), project("globex"))
	hooks := write(t, filepath.Join(dir, "hooks.hcl"), hook("crm", `["globex", "acme"] # two`))
	n := newNode(t, dir, nodeOptions{})
	must(t, updateProject(context.Background(), n.source, catalog.DeriveProjectUUID("acme"), func(p *catalog.ProjectConfig) error {
		p.Project.Slug = "shop"
		return nil
	}))
	if a, b := read(t, own), read(t, hooks); !strings.Contains(a, `["shop"]`) || !strings.Contains(b, `["globex", "shop"] # two`) {
		t.Errorf("after the new slug:\n%s\n%s", a, b)
	}
	must(t, deleteProject(context.Background(), n.source, catalog.DeriveProjectUUID("globex"), func(*catalog.ProjectConfig) error { return nil }))
	if got := read(t, hooks); !strings.Contains(got, `["shop"] # two`) {
		t.Errorf("after the removal:\n%s", got)
	}
	if w := n.resolver.Webhooks(); !slices.Equal(w[0].Projects, []string{"shop"}) || !slices.Equal(w[1].Projects, []string{"shop"}) {
		t.Errorf("%+v", w)
	}
	write(t, hooks, hook("crm", `["shpo"]`))
	n.problem("hooks.hcl", "did you mean `shop`?")
	if d := n.source.Status().Problems[0]; d.Severity != hclfile.Warning || d.Start.Line != 4 {
		t.Errorf("%+v", d)
	}
	checked, err := offline.Check(dir)
	must(t, err)
	if fmt.Sprint(checked.Problems) != fmt.Sprint(n.source.Status().Problems) {
		t.Errorf("Check says %v", checked.Problems)
	}
}

// TestWebhookOverHTTP: http is for the networks that the service names. A check of the files alone can only warn.
func TestWebhookOverHTTP(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "hooks.hcl"), "webhook \"crm\" {\n  url = \"http://10.0.0.1/\"\n  secret = env(\"CRM\")\n}\n")
	for networks, want := range map[string]int{"": 0, "10.0.0.0/8": 1} {
		allow := new(catalog.HTTPAllow)
		if networks != "" {
			allow.Networks = []netip.Prefix{netip.MustParsePrefix(networks)}
		}
		n := newNode(t, dir, nodeOptions{allow: catalog.Allows{Webhooks: allow}, loadOnly: true})
		if got := len(n.resolver.Webhooks()); got != want {
			t.Errorf("with %q there are %d webhooks, want %d: %v", networks, got, want, n.source.Status().Problems)
		}
	}
	checked, err := offline.Check(dir)
	must(t, err)
	if len(checked.Problems) != 1 || checked.Problems.HasErrors() {
		t.Errorf("%v", checked.Problems)
	}
}

// TestWebhookLimit: the next one over the API is a CONFLICT.
func TestWebhookLimit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var b strings.Builder
	for i := range catalog.MaxWebhooks {
		fmt.Fprintf(&b, "webhook \"w%d\" {\n  url = \"https://crm.example/\"\n  secret = env(\"CRM\")\n}\n", i)
	}
	must(t, os.WriteFile(filepath.Join(dir, "hooks.hcl"), []byte(b.String()), 0o644))
	n := newNode(t, dir, nodeOptions{})
	w := catalog.NewWebhook("next")
	w.URL = "https://crm.example/"
	wantCode(t, "the next", editWebhook(n.source, &catalog.WebhookEdit{Name: "next", Create: w}), catalog.CodeConflict)
}
