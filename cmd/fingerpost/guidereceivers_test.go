package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
)

// otherSecret is that of no webhook.
const otherSecret = "whsec_YW5vdGhlciBzZWNyZXQgb2YgMjQgYnl0ZXMgb3IgbW9yZQ=="

// A guideReceiver is a receiver of the guide to webhooks, in a folder of its own.
type guideReceiver struct {
	t   *testing.T
	dir string
	url string
	log string // the file of what it prints
}

// newGuideReceiver saves the guide's programs.
func newGuideReceiver(t *testing.T) *guideReceiver {
	t.Helper()
	g := &guideReceiver{t: t, dir: t.TempDir()}
	g.log = filepath.Join(g.dir, "printed.log")
	for name, content := range guideFiles(readText(t, "guides/webhooks.md")) {
		must(t, os.WriteFile(filepath.Join(g.dir, name), []byte(content), 0o644))
	}
	return g
}

// run starts it, and waits until it answers.
func (g *guideReceiver) run(env []string, program string, args ...string) {
	g.t.Helper()
	port := testrig.FreePort(g.t)
	g.url = fmt.Sprintf("http://127.0.0.1:%d/", port)
	out, err := os.Create(g.log)
	must(g.t, err)
	defer out.Close()
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = g.dir, out, g.t.Output()
	cmd.Env = append(os.Environ(), append(env, fmt.Sprint("PORT=", port), "WEBHOOK_SECRET="+hookSecret)...)
	must(g.t, cmd.Start())
	g.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	testrig.Eventually(g.t, "it answers", func() bool { return g.post("probe", `{}`, otherSecret, time.Now()) == http.StatusUnauthorized })
}

// post sends an event that is signed with a secret, and returns the status of the answer; 0 for none.
func (g *guideReceiver) post(id, body, secret string, at time.Time) (status int) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	must(g.t, err)
	req, err := http.NewRequest(http.MethodPost, g.url, strings.NewReader(body))
	must(g.t, err)
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%d.%s", id, at.Unix(), body)
	req.Header.Set("webhook-id", id)
	req.Header.Set("webhook-timestamp", fmt.Sprint(at.Unix()))
	req.Header.Set("webhook-signature", "v1,bm90IHRoaXM= v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	_ = res.Body.Close()
	return res.StatusCode
}

// printed returns the lines that tell of objects.
func (g *guideReceiver) printed() string {
	var lines []string
	for line := range strings.Lines(readText(g.t, g.log)) {
		if f := strings.Fields(line); len(f) == 2 && strings.Contains(f[0], ".") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return strings.Join(lines, ", ")
}

// serve has the real binary deliver to it, and changes acme's name and a domain.
func (g *guideReceiver) serve() {
	g.t.Helper()
	r := idleRig(g.t, g.t.TempDir(), map[string]string{"hooks.hcl": fmt.Sprintf(
		"webhook \"crm\" {\n  url    = %q\n  secret = env(\"HOOK_SECRET\")\n  events = [\"project.*\", \"domain.*\"]\n}\n", g.url)})
	r.flags, r.env = hookFlags, []string{"HOOK_SECRET=" + hookSecret}
	r.start()
	if status, _ := r.send("PUT", fmt.Sprintf("/%d", r.idOf("acme")), `{"name":"Bücher & Söhne"}`); status != http.StatusOK {
		g.t.Fatal(status)
	}
	if status, _ := r.send("POST", fmt.Sprintf("/%d/domains", r.idOf("acme")), `{"domain":"new.acme.example"}`); status != http.StatusCreated {
		g.t.Fatal(status)
	}
}

// TestGuideReceivers: the receivers of the guide take what the real binary sends, once, and nothing that others send.
func TestGuideReceivers(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	const want = "project.update acme, domain.create new.acme.example"
	for language, start := range map[string]func(g *guideReceiver){
		"Python": func(g *guideReceiver) { g.run(nil, testrig.Need(g.t, "python3")[0], "receiver.py") },
		"Node": func(g *guideReceiver) {
			packages, node := testrig.NodePackages(g.t)
			must(g.t, os.Symlink(filepath.Join(packages, "node_modules"), filepath.Join(g.dir, "node_modules")))
			g.run(nil, node, "receiver.mjs")
		},
		"Go": func(g *guideReceiver) {
			program := filepath.Join(g.dir, "receiver")
			build := exec.Command(testrig.Need(g.t, "go")[0], "build", "-o", program, "receiver.go")
			build.Dir = g.dir
			if out, err := build.CombinedOutput(); err != nil {
				g.t.Fatalf("%v\n%s", err, out)
			}
			g.run(nil, program)
		},
	} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			g := newGuideReceiver(t)
			start(g)
			g.serve()
			testrig.Eventually(t, "both events", func() bool { return g.printed() == want })
			const other = `{"type":"key.create","data":{"object":"other"}}`
			for what, c := range map[string]struct {
				secret string
				at     time.Time
				want   int
			}{
				"another secret": {otherSecret, time.Now(), 401},
				"too old":        {hookSecret, time.Now().Add(-time.Hour), 401},
				"too new":        {hookSecret, time.Now().Add(time.Hour), 401},
			} {
				if status := g.post("forged", other, c.secret, c.at); status != c.want {
					t.Errorf("%s: %d", what, status)
				}
			}
			for range 2 {
				if status := g.post("twice", strings.Replace(other, "other", "twice", 1), hookSecret, time.Now()); status != http.StatusNoContent {
					t.Errorf("a repetition is answered with %d", status)
				}
			}
			g.post("last", strings.Replace(other, "other", "last", 1), hookSecret, time.Now())
			testrig.Eventually(t, "each event once", func() bool { return strings.HasSuffix(g.printed(), "last") })
			if got := g.printed(); got != want+", key.create twice, key.create last" {
				t.Errorf("it printed %s", got)
			}
		})
	}
}

// TestGuideChannel: the guide's work tells a channel in Slack's form, and has a CDN purge the domains that changed.
func TestGuideChannel(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	var mu sync.Mutex
	var got []string
	keep := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%v, %v", r.Header, err)
		}
		mu.Lock()
		defer mu.Unlock()
		got = append(got, r.URL.Path+" "+string(body))
	}))
	defer keep.Close()
	python := testrig.Need(t, "python3")[0]
	g := newGuideReceiver(t)
	program := readText(t, filepath.Join(g.dir, "receiver.py"))
	const prints = `print(event["type"], event["data"].get("object"), flush=True)`
	if strings.Count(program, prints) != 1 {
		t.Fatal("the guide's receiver prints in another way")
	}
	program = readText(t, filepath.Join(g.dir, "work.py")) + strings.Replace(program, prints, "work(event)", 1)
	must(t, os.WriteFile(filepath.Join(g.dir, "receiver.py"), []byte(program), 0o644))
	g.run([]string{"SLACK_URL=" + keep.URL + "/slack", "PURGE_URL=" + keep.URL + "/purge"}, python, "receiver.py")
	g.serve()
	want := []string{`/slack {"text": "project.update acme"}`, `/slack {"text": "domain.create new.acme.example"}`,
		`/purge {"hosts": ["new.acme.example"]}`}
	testrig.Eventually(t, "all of it", func() bool { mu.Lock(); defer mu.Unlock(); return len(got) >= len(want) })
	mu.Lock()
	defer mu.Unlock()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %s", strings.Join(got, "\n"))
	}
}
