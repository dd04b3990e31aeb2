package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"syscall"
	"testing"

	"fingerpost/cmd/testrig"
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
