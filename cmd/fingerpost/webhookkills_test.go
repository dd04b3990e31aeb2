package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

// TestWebhooksOutliveTheProcess kills the server in the middle of its work, again and again, with receivers that answer, hang,
// refuse and lie.
func TestWebhooksOutliveTheProcess(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	s := newSiege(idleRig(t, t.TempDir(), nil))
	to := newReceivers(t)
	to.serve(s.rig)
	s.start()
	n := testrig.Size(t, 300, testrig.Part(5))
	for round := range n {
		s.round(time.Duration(rand.IntN(60000))*time.Microsecond, s.kill)
		s.start()
		for _, l := range s.ledgers() {
			if err := l.check(s.rig); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
		}
	}
	to.check(s.rig)
	if err := s.check(); err != nil {
		t.Error(err)
	}
	s.kill()
	s.chainsHold(filepath.Join(s.dir, ".fingerpost"))
	testrig.Figure(t, "%d writes answered, killed %d times", s.answered(), n)
}

// TestWebhookRotatesUnderLoad: while a secret is replaced again and again, each delivery verifies with the one that its
// receiver knew before or with the new one.
func TestWebhookRotatesUnderLoad(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	var mu sync.Mutex // guards what follows
	secrets := []string{hookSecret}
	got, bad := 0, 0
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		known := secrets[max(0, len(secrets)-2):]
		mu.Unlock()
		body, err := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		got++
		if err != nil || !slices.ContainsFunc(known, func(s string) bool { return signedWith(r.Header, body, s) }) {
			bad++
		}
	}))
	defer receiver.Close()
	text, id := catalog.NewKeyText()
	r := idleRig(t, t.TempDir(), map[string]string{"hooks.hcl": fmt.Sprintf("webhook \"crm\" {\n  url    = %q\n  secret = %q\n}\n", receiver.URL, hookSecret),
		"key-admin.hcl": fmt.Sprintf("key \"admin\" {\n  id = %q\n  hash = %q\n  allow = [\"read\", \"write\", \"secrets\"]\n}\n", id, catalog.HashKeyText(text))})
	key := filepath.Join(t.TempDir(), "seal.key")
	if out, code := r.run("secrets", "keygen", "--config", "projects.d", "--seal-key", key); code != cli.ExitOK {
		t.Fatal(code, out)
	}
	r.flags = append([]string{"--seal-key", key}, hookFlags...)
	r.start()
	stop := make(chan struct{})
	var writers sync.WaitGroup
	for i := range 3 {
		l := &ledger{slug: fmt.Sprint("client-", i), may: map[int]bool{0: true}}
		writers.Go(func() {
			for id := int64(0); ; {
				select {
				case <-stop:
					return
				default:
				}
				if !l.write(r, &id) {
					t.Error("a write fails")
					return
				}
			}
		})
	}
	count := func() int { mu.Lock(); defer mu.Unlock(); return got }
	rotations := testrig.Size(t, 100, 5)
	for range rotations {
		before := count()
		a := r.ask(http.MethodPost, "/api/platform/webhooks/crm/rotate", text, `{"overlap":"1h"}`, "Content-Type: application/json")
		var answer struct{ Data struct{ Secret string } }
		if err := json.Unmarshal([]byte(a.body), &answer); err != nil || a.status != http.StatusOK {
			t.Fatalf("%d %s", a.status, a.body)
		}
		mu.Lock()
		secrets = append(secrets, answer.Data.Secret)
		mu.Unlock()
		testrig.Eventually(t, "deliveries go on", func() bool { return count() > before+5 })
	}
	close(stop)
	writers.Wait()
	mu.Lock()
	defer mu.Unlock()
	testrig.Figure(t, "%d rotations, %d deliveries", rotations, got)
	if bad > 0 {
		t.Errorf("%d of %d deliveries verify neither with the old nor with the new secret", bad, got)
	}
}

// TestWebhookOfARemovedProject: what has happened to a project that is renamed, and then removed, over the API reaches a
// webhook that lists it, also what waited meanwhile.
func TestWebhookOfARemovedProject(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	var refuse atomic.Bool
	refuse.Store(true)
	var mu sync.Mutex
	var got []string
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refuse.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		var v struct {
			Type string
			Data struct{ Slug, Object string }
		}
		if err := json.NewDecoder(r.Body).Decode(&v); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		got = append(got, v.Type+" "+v.Data.Slug+" "+v.Data.Object)
	}))
	defer receiver.Close()
	r := idleRig(t, t.TempDir(), map[string]string{"hooks.hcl": fmt.Sprintf(
		"webhook \"crm\" {\n  url      = %q\n  secret   = env(\"HOOK_SECRET\")\n  projects = [\"gone\", \"other\"]\n}\n", receiver.URL)})
	r.flags, r.env = hookFlags, []string{"HOOK_SECRET=" + hookSecret}
	r.start()
	gone := fmt.Sprintf("/%d", r.idOf("gone"))
	for _, c := range []struct{ method, path, body string }{{"PUT", gone, `{"name":"Going"}`}, {"PUT", gone, `{"slug":"left"}`},
		{"PUT", gone, `{"name":"Left"}`}, {"DELETE", gone, ""}, {"PUT", fmt.Sprintf("/%d", r.idOf("acme")), `{"name":"Not listed"}`}} {
		if status, _ := r.send(c.method, c.path, c.body); status != http.StatusOK {
			t.Fatalf("%v: %d", c, status)
		}
	}
	refuse.Store(false)
	r.halt()
	r.start() // with all of it in the trail
	if status, _ := r.send("PUT", fmt.Sprintf("/%d", r.idOf("other")), `{"name":"Still there"}`); status != http.StatusOK {
		t.Fatal(status)
	}
	want := []string{"project.update gone gone", "project.update gone left", "project.update left left", "domain.delete left gone.example",
		"project.delete left left", "project.update other other"}
	slices.Sort(want)
	is := func() []string { mu.Lock(); defer mu.Unlock(); return slices.Sorted(slices.Values(got)) }
	testrig.Eventually(t, "the events of both projects", func() bool { return len(is()) >= len(want) })
	if list := is(); !slices.Equal(list, want) {
		t.Errorf("got %q\nwant %q", list, want)
	}
	if b := read(t, r.path("hooks.hcl")); !strings.Contains(b, `projects = ["other"]`) {
		t.Errorf("%s", b)
	}
}
