package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

// A hookShell runs commands of the binary next to a server, with a key.
type hookShell struct {
	*rig
	key string
}

// hookShellOn starts a server that seals secrets and delivers to this machine.
func hookShellOn(t *testing.T, files map[string]string, env ...string) *hookShell {
	t.Helper()
	text, id := catalog.NewKeyText()
	files["key-admin.hcl"] = fmt.Sprintf("key \"admin\" {\n  id = %q\n  hash = %q\n  allow = [\"read\", \"write\", \"secrets\"]\n}\n", id, catalog.HashKeyText(text))
	s := &hookShell{idleRig(t, t.TempDir(), files), text}
	key := filepath.Join(t.TempDir(), "seal.key")
	if out, code := s.run("secrets", "keygen", "--config", "projects.d", "--seal-key", key); code != cli.ExitOK {
		t.Fatal(code, out)
	}
	s.flags, s.rig.env = []string{"--seal-key", key, "--webhook-allow", "127.0.0.0/8"}, env
	s.start()
	return s
}

// do runs a command with the server's address and the key.
func (s *hookShell) do(stdin string, args ...string) (out, err string, code int) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testrig.Patience)
	defer cancel()
	cmd := s.command(ctx, args...)
	cmd.Env = append(cmd.Env, "FINGERPOST_URL="+s.url, "FINGERPOST_KEY="+s.key)
	var o, e bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &o, &e
	_ = cmd.Run()
	return o.String(), e.String(), cmd.ProcessState.ExitCode()
}

// webhooks runs a command of webhooks, which ends with a code.
func (s *hookShell) webhooks(code int, args ...string) (out, err string) {
	s.t.Helper()
	out, err, got := s.do("", append([]string{"webhooks"}, args...)...)
	if got != code {
		s.t.Errorf("webhooks %q ends with %d, want %d: %s%s", args, got, code, out, err)
	}
	return out, err
}

func says(t *testing.T, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("%q is not in:\n%s", w, text)
		}
	}
}

// TestWebhooksCommand: the life of a webhook from the command line.
func TestWebhooksCommand(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	to := newHookReceiver(t)
	s := hookShellOn(t, map[string]string{})
	out, _ := s.webhooks(cli.ExitOK, "list")
	says(t, out, "no webhook")
	out, err := s.webhooks(cli.ExitOK, "add", "crm", to.url, "--events", "project.*,template.update", "--projects", "acme,other")
	secret := strings.TrimSpace(out)
	if catalog.CheckWebhookSecret(secret) != "" || strings.Contains(err, "whsec_") {
		t.Errorf("stdout %q, stderr %q", out, err)
	}
	file := read(t, filepath.Join(s.dir, "projects.d", "webhooks.hcl"))
	says(t, file, `webhook "crm"`, `sealed(`, `["project.*", "template.update"]`, `["acme", "other"]`)
	_, err = s.webhooks(cli.ExitNot, "add", "crm", to.url)
	says(t, err, "name")
	given := catalog.NewWebhookSecret()
	if out, err, code := s.do(given+"\n", "webhooks", "add", "own", to.url, "--inactive", "--secret-stdin"); code != cli.ExitOK || strings.Contains(out+err, "whsec_") {
		t.Errorf("%d %s %s", code, out, err)
	}

	out, _ = s.webhooks(cli.ExitOK, "test", "crm")
	says(t, out, "delivered: the receiver answered 204")
	to.answers(http.StatusTeapot)
	out, _ = s.webhooks(cli.ExitNot, "test", "own")
	says(t, out, "not delivered: the receiver answered 418", "its answer begins: said \ufffd[31m<b>so</b>")
	out, _ = s.webhooks(cli.ExitNot, "test", "own", "--json")
	var tested struct {
		Delivered bool
		Status    int
	}
	if json.Unmarshal([]byte(out), &tested) != nil || tested.Delivered || tested.Status != http.StatusTeapot {
		t.Errorf("%s", out)
	}
	if got := to.all(); len(got) != 3 || !got[0].signedBy(secret) || !got[1].signedBy(given) || got[1].signedBy(secret) {
		t.Errorf("%+v", got)
	}

	// The receiver is gone for good, and comes back.
	to.answers(http.StatusGone)
	s.put("acme.hcl", strings.Replace(rigFiles["acme.hcl"], "Acme Shop", "Acme", 1))
	testrig.Eventually(t, "it is off", func() bool {
		out, _ := s.webhooks(cli.ExitOK, "list")
		return strings.Contains(out, "off: the receiver answered 410")
	})
	_, err = s.webhooks(cli.ExitNot, "replay", "crm", "--from", "1h")
	says(t, err, "is off: resume it")
	to.answers(http.StatusNoContent)
	for range 2 {
		s.webhooks(cli.ExitOK, "resume", "crm")
	}
	testrig.Eventually(t, "it was delivered", func() bool {
		out, _ := s.webhooks(cli.ExitOK, "deliveries", "crm", "--state", "delivered", "--from", "1h", "--event", "project.update")
		return strings.Contains(out, "project.update")
	})
	out, _ = s.webhooks(cli.ExitOK, "deliveries", "crm", "--json")
	var rows []struct{ ID, Event, State string }
	if json.Unmarshal([]byte(out), &rows) != nil || len(rows) != 1 || rows[0].Event != "project.update" {
		t.Fatalf("%s", out)
	}
	says(t, out, `"status": 410`, `"status": 204`, `"entry":`)
	_, err = s.webhooks(cli.ExitOK, "replay", "crm", rows[0].ID)
	says(t, err, "sending 1 event again")
	testrig.Eventually(t, "it came again", func() bool {
		return slices.ContainsFunc(to.all(), func(e receivedEvent) bool { return strings.HasPrefix(e.id(), rows[0].ID+".r") })
	})
	out, err = s.webhooks(cli.ExitOK, "deliveries", "crm", "--limit", "1")
	says(t, out, rows[0].ID+".r")
	says(t, err, "1 earlier ones are not listed")
	testrig.Eventually(t, "the replay has ended", func() bool {
		var hooks []struct {
			Name     string
			Delivery struct{ Waiting int }
		}
		out, _ := s.webhooks(cli.ExitOK, "list", "--json")
		if err := json.Unmarshal([]byte(out), &hooks); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		for _, h := range hooks {
			if h.Name == "crm" {
				return h.Delivery.Waiting == 0
			}
		}
		return false
	})
	_, err = s.webhooks(cli.ExitOK, "replay", "crm", "--from", "2020-01-01T00:00:00", "--to", "2020-01-02T00:00:00")
	says(t, err, "no event of that time")
	out, _ = s.webhooks(cli.ExitOK, "list")
	says(t, out, "crm", "own", "inactive", "project.*,template.update", "all but mail.*", "127.0.0.1:")
	if strings.Contains(out, "hidden") {
		t.Errorf("the address is shown:\n%s", out)
	}
	out, _ = s.webhooks(cli.ExitOK, "list", "--json")
	says(t, out, "/hidden", `"state": "inactive"`)

	// Both secrets sign, and then the new one alone.
	out, err = s.webhooks(cli.ExitOK, "rotate", "crm", "--overlap", "1h")
	second := strings.TrimSpace(out)
	says(t, err, "good until")
	s.webhooks(cli.ExitOK, "test", "crm")
	if got := to.all(); !got[len(got)-1].signedBy(secret) || !got[len(got)-1].signedBy(second) {
		t.Errorf("%+v", got[len(got)-1])
	}
	out, err = s.webhooks(cli.ExitOK, "rotate", "crm", "--overlap", "0s")
	says(t, err, "the older ones are gone")
	s.webhooks(cli.ExitOK, "test", "crm")
	if got := to.all(); got[len(got)-1].signedBy(second) || !got[len(got)-1].signedBy(strings.TrimSpace(out)) {
		t.Errorf("%+v", got[len(got)-1])
	}
	_, err = s.webhooks(cli.ExitOK, "remove", "own")
	says(t, err, "no longer in the files")
	s.webhooks(cli.ExitNot, "remove", "own")
	if file := read(t, filepath.Join(s.dir, "projects.d", "webhooks.hcl")); strings.Contains(file, "own") || strings.Contains(file, "whsec_") {
		t.Errorf("%s", file)
	}
	trail := s.ask(http.MethodGet, "/api/platform/audit?action=webhook.replay", s.key, "")
	says(t, trail.body, `"object":"crm"`, `"actor":"admin"`)
}

// TestWebhooksCommandRefuses: wrong usage names all that is wrong, and calls nobody.
func TestWebhooksCommandRefuses(t *testing.T) {
	f := func(code int, args []string, want ...string) {
		t.Helper()
		c := invoke(t, append([]string{"webhooks"}, args...)...)
		if c.code != code {
			t.Errorf("%q ends with %d, want %d: %s", args, c.code, code, c.err)
		}
		says(t, c.err, want...)
	}
	t.Setenv("FINGERPOST_KEY", "fpk_x")
	t.Setenv("FINGERPOST_URL", "http://127.0.0.1:1")
	use := cli.ExitUsage
	f(use, []string{}, "needs one of list, add")
	f(use, []string{"lst"}, "did you mean")
	f(use, []string{"add", "crm"}, "ADDRESS")
	f(use, []string{"add", "A B", "https://x.example/", "--events", "", "--projects", "a,,b", "--secret-stdin"}, "NAME", "--events must", "--projects must", "--secret-stdin")
	f(use, []string{"rotate", "crm", "--overlap", "soon"}, "--overlap")
	f(use, []string{"test"}, "NAME")
	f(use, []string{"test", "a/b"}, `NAME "a/b"`)
	f(use, []string{"deliveries", "crm", "--state", "lost", "--from", "x", "--to", "y", "--limit", "0"}, "--state must be one of pending, delivered, failing, dead", "--from", "--to", "--limit")
	f(use, []string{"replay", "crm"}, "--from")
	f(use, []string{"replay", "crm", "--to", "1h"}, "--from")
	f(use, []string{"replay", "crm", "id", "--from", "1h"}, "one or the other")
	f(use, []string{"replay"}, "NAME")
	f(use, []string{"replay", "a", "b", "c"}, "accepts at most 2")
	f(cli.ExitFailed, []string{"list"}, "refused")
	f(cli.ExitFailed, []string{"test", "crm"}, "refused")
}

// TestWebhooksMoveOn: a webhook of a server comes into the files of another one with a variable for its secret, which
// signs there.
func TestWebhooksMoveOn(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	to := newHookReceiver(t)
	from := hookShellOn(t, map[string]string{})
	out, _ := from.webhooks(cli.ExitOK, "add", "crm-eu", to.url, "--projects", "acme")
	secret := strings.TrimSpace(out)
	dir := filepath.Join(t.TempDir(), "projects.d")
	_, said, code := from.do("", "import", "--config", dir, "--no-mail")
	if code != cli.ExitOK || strings.Contains(said, "whsec_") {
		t.Fatalf("import ends with %d: %s", code, said)
	}
	says(t, said, `_webhooks.hcl: webhook "crm-eu" secret = env("CRM_EU_WEBHOOK_SECRET")`)
	next := hookShellOn(t, map[string]string{"_webhooks.hcl": read(t, filepath.Join(dir, "_webhooks.hcl"))}, "CRM_EU_WEBHOOK_SECRET="+secret)
	next.webhooks(cli.ExitOK, "test", "crm-eu")
	if got := to.all(); len(got) != 1 || !got[0].signedBy(secret) {
		t.Errorf("%+v", got)
	}
	if out, said, code := next.do("", "plan", "--config", dir, "--no-mail"); strings.Contains(out+said, "webhook \"crm-eu\"") {
		t.Errorf("plan ends with %d: %s%s", code, out, said)
	}
}

// TestExportWebhooks: a server gets the webhooks of the files with the newest of their secrets, a second run does nothing,
// and what only the server has goes with --delete alone.
func TestExportWebhooks(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	to, secret := newHookReceiver(t), catalog.NewWebhookSecret()
	server := hookShellOn(t, map[string]string{}, "CRM="+secret)
	dir := writeFiles(t, map[string]string{
		"plain.hcl": "project \"plain\" {\n  name = \"Plain\"\n}\n",
		"hooks.hcl": fmt.Sprintf("webhook \"crm\" {\n  url = %q\n  secret = env(\"CRM\")\n  projects = [\"plain\"]\n}\n", to.url),
	})
	export := func(code int, flags ...string) string {
		t.Helper()
		args := append([]string{"export", "--config", dir, "--no-mail"}, flags...)
		out, said, got := server.do("", args...)
		if got != code || strings.Contains(out+said, secret) {
			t.Errorf("%q ends with %d, want %d: %s%s", args, got, code, out, said)
		}
		return out + said
	}
	edit(t, dir, "hooks.hcl", `env("CRM")`, `env("OTHER")`)
	says(t, export(cli.ExitNot), `the secret of webhook "crm" cannot be opened`)
	if out, _ := server.webhooks(cli.ExitOK, "list"); strings.Contains(out, "crm") {
		t.Errorf("a webhook without its secret was sent: %s", out)
	}
	edit(t, dir, "hooks.hcl", `env("OTHER")`, `env("CRM")`)
	says(t, export(cli.ExitOK, "--dry-run"), `+ webhook "crm"`)
	says(t, export(cli.ExitOK), `+ webhook "crm"`, "2 added")
	server.webhooks(cli.ExitOK, "test", "crm")
	if got := to.all(); len(got) == 0 || !got[len(got)-1].signedBy(secret) {
		t.Errorf("%+v", got)
	}
	says(t, export(cli.ExitOK), "no changes")
	edit(t, dir, "hooks.hcl", "projects", "active = false\n  projects")
	says(t, export(cli.ExitOK), `~ webhook "crm"`)
	server.webhooks(cli.ExitOK, "test", "crm") // its secret has stayed
	if got := to.all(); !got[len(got)-1].signedBy(secret) {
		t.Errorf("%+v", got)
	}
	if err := os.Remove(filepath.Join(dir, "hooks.hcl")); err != nil {
		t.Fatal(err)
	}
	says(t, export(cli.ExitOK), `only on the server, left alone: webhook "crm"`)
	says(t, export(cli.ExitOK, "--delete"), `- webhook "crm"`)
}
