package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"fingerpost/cmd/testrig"
)

// forgeable are the headers that the gate can set, and one that it does not set yet.
var forgeable = []string{"X-Project-Id", "X-Project-Uuid", "X-Project-Slug", "X-Project-Status", "X-Matched-Domain", "X-Auth-Enabled",
	"X-Registration-Mode", "X-Label-Plan", "X-Auth", "X-User-Id", "X-User-Email"}

// forgeries are the ways to write a header so that an application may take it for the gate's.
func forgeries(name string) []string {
	return []string{name, strings.ToLower(name), strings.ReplaceAll(name, "-", "_"), strings.Replace(name, "-", "_", 1)}
}

// testForged sends each forgery alone and all at once, and fails where one reaches the upstream. It returns the number
// of requests.
func (g *gated) testForged(tokens bool) (n int) {
	g.t.Helper()
	cases := [][]string{nil}
	for _, name := range forgeable {
		for _, spelled := range forgeries(name) {
			cases = append(cases, []string{spelled})
			cases[0] = append(cases[0], spelled)
		}
	}
	none := gatewayToken(g.t, gatewaySecret+"2", 12, jwt.MapClaims{"sub": ""})
	for _, to := range []struct{ host, token, project, user, auth string }{
		{"shop.example", "", "11", "", "none"},
		{"bank.example", "", "12", "", "none"}, // without the label
		{"shop.example", gatewayToken(g.t, gatewaySecret, 11, nil), "11", "u-1", "good"},
		{"bank.example", none, "12", "", "good"}, // without claims
	} {
		for _, names := range cases {
			for range 2 { // the second answer may come from a cache
				n++
				g.forge(to.host, to.token, names, map[string]string{"X-Project-Id": to.project, "X-User-Id": to.user, "X-Auth": to.auth}, tokens)
			}
		}
	}
	return n
}

// forge sends one request, with the names as headers whose values are forged.
func (g *gated) forge(host, token string, names []string, want map[string]string, tokens bool) {
	g.t.Helper()
	req, err := http.NewRequest("GET", "http://"+host+"/", nil)
	must(g.t, err)
	for _, name := range names {
		req.Header[name] = []string{"forged"} // as it is spelled
	}
	if token != "" && tokens {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := g.client.Do(req)
	must(g.t, err)
	res.Body.Close()
	if g.loses && res.StatusCode == http.StatusServiceUnavailable {
		return
	}
	seen := *g.seen.Load()
	for name, values := range seen {
		if strings.Contains(strings.Join(values, " "), "forged") {
			g.t.Errorf("%s with %q: %s: %q reached the application", host, names, name, values)
		}
	}
	for name, value := range want {
		if !tokens && name != "X-Project-Id" { // the lines with the cache say nothing about users
			value = ""
		}
		if got := strings.Join(seen[name], "|"); got != value || res.StatusCode != http.StatusOK {
			g.t.Errorf("%s with %q: %d, %s is %q, want %q", host, names, res.StatusCode, name, got, value)
		}
	}
}

// TestGateForgedHeaders: whatever a client sends, an application behind the documented lines sees only what the gate says.
// While the service hangs, nothing passes.
func TestGateForgedHeaders(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	runs := map[string]func(t *testing.T, gate, upstream string) *http.Client{
		"nginx with a cache": func(t *testing.T, gate, upstream string) *http.Client {
			return runNginx(t, "127.0.0.1:8081", gate, upstream, "/var/cache/nginx/gate", filepath.Join(shortDir(t), "cache"))
		},
	}
	for name, run := range gateProxies {
		runs[name] = run
	}
	for name, run := range runs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testrig.Need(t, strings.Fields(name)[0])
			testForgedBy(t, name, run)
		})
	}
}

func testForgedBy(t *testing.T, name string, run func(t *testing.T, gate, upstream string) *http.Client) {
	r := idleRig(t, t.TempDir(), gateFiles)
	r.flags = []string{"--gate-listen", "127.0.0.1:0"}
	r.start()
	g := &gated{t: t, loses: name == "caddy"}
	g.client = run(t, strings.TrimPrefix(r.gateURL(), "http://"), g.startUpstream())
	n := g.testForged(name != "nginx with a cache")
	testrig.Figure(t, "%s: %d requests with forged headers", name, n)

	must(t, r.cmd.Process.Signal(syscall.SIGSTOP))
	testrig.Eventually(t, "the service has stopped", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", r.pid))
		return err == nil && strings.Contains(string(stat), ") T ")
	})
	began := time.Now()
	g.refused(0, "GET", "a.b.c.shop.example") // in no cache
	testrig.AtMost(t, time.Since(began), 10*time.Second)
	must(t, r.cmd.Process.Signal(syscall.SIGCONT))
}

// TestGateForgedHeadersOfCaddys: the same for the last Caddy that keeps a client's header where the gate's is empty, and
// for the newest one.
func TestGateForgedHeadersOfCaddys(t *testing.T) {
	testrig.Campaign(t)
	for _, name := range []string{"caddy-2.10.2", "caddy-2.11.9"} {
		t.Run(name, func(t *testing.T) {
			program := testrig.Need(t, name)[0]
			testForgedBy(t, name, func(t *testing.T, gate, upstream string) *http.Client {
				return caddyClient(t, program, gate, upstream)
			})
		})
	}
}
