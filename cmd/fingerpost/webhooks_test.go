package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

// TestWebhooksAreDelivered: what happens reaches a receiver, with SIGKILL, with a start without webhooks, and after a
// restart; what the files said before the webhook does not.
func TestWebhooksAreDelivered(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var got []string
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var b struct {
			Type string
			Data struct{ Slug, Object string }
		}
		text, err := io.ReadAll(r.Body)
		if err != nil || json.Unmarshal(text, &b) != nil || r.Header.Get("Webhook-Signature") == "" {
			t.Errorf("%s", text)
		}
		mu.Lock()
		defer mu.Unlock()
		if what := b.Type + " " + b.Data.Slug + " " + b.Data.Object; !slices.Contains(got, what) { // repeated after a kill
			got = append(got, what)
		}
	}))
	defer receiver.Close()
	project := func(slug, status string) string {
		return "project \"" + slug + "\" {\n  name = \"" + slug + "\"\n  status = \"" + status + "\"\n}\n"
	}
	r := idleRig(t, t.TempDir(), map[string]string{"one.hcl": project("one", "ACTIVE"), "hooks.hcl": `webhook "crm" {
  url    = "` + receiver.URL + `"
  secret = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
  events = ["project.*"]
}
`})
	var want []string
	until := func(what string) {
		t.Helper()
		want = append(want, what)
		testrig.Eventually(t, what, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return slices.Equal(got, want)
		})
	}
	r.flags = []string{"--webhook-allow", "127.0.0.0/8"}
	r.start()
	r.put("one.hcl", project("one", "SUSPENDED"))
	until("project.update one one")
	r.put("two.hcl", project("two", "ACTIVE"))
	until("project.create two two")
	must(t, r.cmd.Process.Signal(syscall.SIGKILL))
	<-r.exited
	r.flags = []string{"--webhook-allow", "127.0.0.0/8", "--webhooks=false"}
	r.start()
	r.put("two.hcl", project("two", "DRAFT"))
	testrig.Eventually(t, "it is live", func() bool {
		return jsonCount(t, r.get("/api/platform/audit?action=project.update").body) == 2
	})
	r.halt()
	r.flags = []string{"--webhook-allow", "127.0.0.0/8"}
	r.start()
	until("project.update two two")
}

// jsonCount returns the number of all rows of a list.
func jsonCount(t *testing.T, body string) int {
	t.Helper()
	var list struct {
		Data []json.RawMessage
	}
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return len(list.Data)
}

// TestRotationEnds: the service takes the older secret of a webhook out of the file when the overlap has ended, also when
// it ends while nothing runs. The entry of the trail names nobody.
func TestRotationEnds(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	text, id := catalog.NewKeyText()
	r := idleRig(t, t.TempDir(), map[string]string{"hooks.hcl": `webhook "crm" {
  url    = "https://crm.acme.example/" # theirs
  secret = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
}
`, "key-admin.hcl": fmt.Sprintf("key \"admin\" {\n  id = %q\n  hash = %q\n  allow = [\"read\", \"write\", \"secrets\"]\n}\n", id,
		catalog.HashKeyText(text))})
	key := filepath.Join(t.TempDir(), "seal.key")
	if out, code := r.run("secrets", "keygen", "--config", "projects.d", "--seal-key", key); code != cli.ExitOK {
		t.Fatal(code, out)
	}
	r.flags = []string{"--webhooks=false", "--seal-key", key}
	r.start()
	secrets := func() int { return strings.Count(read(t, filepath.Join(r.dir, "projects.d", "hooks.hcl")), "sealed(") }
	rotate := func(overlap string) {
		t.Helper()
		a := r.ask(http.MethodPost, "/api/platform/webhooks/crm/rotate", text, `{"overlap":"`+overlap+`"}`, "Content-Type: application/json")
		if a.status != http.StatusOK || !strings.Contains(a.body, "whsec_") {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	rotate("720h")
	if got := read(t, filepath.Join(r.dir, "projects.d", "hooks.hcl")); !strings.Contains(got, "whsec_") || secrets() != 1 {
		t.Errorf("the older secret is gone:\n%s", got)
	}
	rotate("1s")
	testrig.Eventually(t, "the older secrets are gone", func() bool {
		got := read(t, filepath.Join(r.dir, "projects.d", "hooks.hcl"))
		return secrets() == 1 && !strings.Contains(got, "whsec_") && strings.Contains(got, "# theirs")
	})
	testrig.Eventually(t, "an entry without an actor", func() bool {
		a := r.ask(http.MethodGet, "/api/platform/audit?action=webhook.update", text, "")
		return jsonCount(t, a.body) == 1 && strings.Contains(a.body, `"actor":null`)
	})
	rotate("1s")
	r.halt()
	r.start()
	testrig.Eventually(t, "the older secret is gone after a restart", func() bool { return secrets() == 1 })
}
