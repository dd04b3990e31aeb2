package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"fingerpost/cmd/testrig"
)

// A gated is a real proxy that runs the lines of api/gateway/README.md: it asks the gate before it reaches an upstream.
type gated struct {
	t        *testing.T
	client   *http.Client // to the proxy, whatever the URL's host is
	upstream *httptest.Server
	reached  atomic.Int32
	seen     atomic.Pointer[http.Header] // of the last request that reached the upstream
	loses    bool                        // Debian's Caddy: under load it now and then loses the headers of the gate's answer
}

// gateFiles are the projects that the gateways route to.
var gateFiles = map[string]string{"tokens.hcl": fmt.Sprintf(`project "shop" {
  id = 11
  name = "Shop"
  labels = { plan = "gold/größe", cost_center = "42" }
  domain "shop.example" {}
  domain "*.shop.example" {}
  domain "off.shop.example" { active = false }
  domain "*.yes.shop.example" { certificates = true }
  domain "*.no.shop.example" { certificates = false }
  domain "none.shop.example" { certificates = false }
  auth_settings { jwt_secret = %q }
}
project "bank" {
  id = 12
  name = "Bank"
  domain "bank.example" {}
  auth_settings { jwt_secret = %q }
}
`, gatewaySecret, gatewaySecret+"2")}

// startUpstream serves what the proxy lets through, and tells which headers came.
func (g *gated) startUpstream() string {
	g.upstream = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		g.reached.Add(1)
		g.seen.Store(&req.Header)
		body, _ := io.ReadAll(req.Body)
		fmt.Fprintf(w, "%s %s project=%s user=%s plan=%s body=%d", req.Method, req.Host, strings.Join(req.Header["X-Project-Id"], "|"),
			strings.Join(req.Header["X-User-Id"], "|"), strings.Join(req.Header["X-Label-Plan"], "|"), len(body))
	}))
	g.t.Cleanup(g.upstream.Close)
	return g.upstream.Listener.Addr().String()
}

// writeConfig writes a file of a proxy's configuration.
func writeConfig(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// runCaddy returns the socket of a Caddy that speaks TLS, with certificates of its own making. The program is the one of
// PATH if it is "".
func runCaddy(t *testing.T, caddy, gate, upstream string) (socket string) {
	t.Helper()
	permission := "permission http "
	if caddy == "" {
		caddy, permission = testrig.Need(t, "caddy")[0], "ask " // Debian's is older than the word
	}
	dir := shortDir(t)
	socket = filepath.Join(dir, "s")
	config := snippet(t, "caddyfile", "request_header", "request_header", "permission http ", permission, "{\n\ton_demand_tls {", "{\n\tadmin off\n\tskip_install_trust\n\tauto_https disable_redirects\n\ton_demand_tls {", "127.0.0.1:8081", gate,
		"https:// {", "https:// {\n\tbind unix/"+socket, "\t\ton_demand\n", "\t\ton_demand\n\t\tissuer internal\n", "127.0.0.1:3000", upstream)
	runGateway(t, dir, socket, caddy, "run", "--adapter", "caddyfile", "--config", writeConfig(t, filepath.Join(dir, "Caddyfile"), config))
	return socket
}

// dialTLS connects to a socket and asks for the certificate of a name.
func dialTLS(ctx context.Context, socket, name string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	secure := tls.Client(c, &tls.Config{ServerName: name, InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
	if err := secure.HandshakeContext(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return secure, nil
}

func runCaddyClient(t *testing.T, gate, upstream string) *http.Client {
	return caddyClient(t, "", gate, upstream)
}

func caddyClient(t *testing.T, program, gate, upstream string) *http.Client {
	socket := runCaddy(t, program, gate, upstream)
	return &http.Client{Timeout: testrig.Patience, Transport: &http.Transport{MaxIdleConnsPerHost: 64, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialTLS(ctx, socket, "shop.example")
	}}}
}

func runHAProxy(t *testing.T, gate, upstream string) *http.Client {
	t.Helper()
	haproxy := testrig.Need(t, "haproxy")[0]
	dir := shortDir(t)
	socket := filepath.Join(dir, "s")
	script := writeConfig(t, filepath.Join(dir, "gate.lua"), snippet(t, "lua", "127.0.0.1:8081", gate))
	config := snippet(t, "haproxy", "/etc/haproxy/gate.lua", script, "bind :80", "bind unix@"+socket, "127.0.0.1:3000", upstream)
	return runGateway(t, dir, socket, haproxy, "-db", "-f", writeConfig(t, filepath.Join(dir, "haproxy.cfg"), config))
}

// gateProxies run each proxy's lines in front of an upstream.
var gateProxies = map[string]func(t *testing.T, gate, upstream string) *http.Client{
	"nginx": func(t *testing.T, gate, upstream string) *http.Client {
		return runNginx(t, "127.0.0.1:8081", gate, upstream, "check?auth=optional", "check?auth=optional")
	},
	"caddy":   runCaddyClient,
	"haproxy": runHAProxy,
}

// TestGateProxies: nginx, Caddy and HAProxy pass what the gate lets pass, with its headers and no others, and nothing else.
func TestGateProxies(t *testing.T) {
	t.Parallel()
	for name, run := range gateProxies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testrig.Need(t, name) // before anything is started
			r := idleRig(t, t.TempDir(), gateFiles)
			r.flags = []string{"--gate-listen", "127.0.0.1:0"}
			r.start()
			g := &gated{t: t, loses: name == "caddy"}
			g.client = run(t, strings.TrimPrefix(r.gateURL(), "http://"), g.startUpstream())
			g.testRouting()
			g.testTokens()
			g.testClients()
			r.halt()
			g.refused(0, "GET", "shop.example") // the gate is down
		})
	}
}

// TestGateCache: with the lines for its cache, nginx goes on while the gate is down, for the names that it knows.
func TestGateCache(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	testrig.Need(t, "nginx")
	r := idleRig(t, t.TempDir(), gateFiles)
	r.flags = []string{"--gate-listen", "127.0.0.1:0"}
	r.start()
	g := &gated{t: t}
	g.client = runNginx(t, "127.0.0.1:8081", strings.TrimPrefix(r.gateURL(), "http://"), g.startUpstream(),
		"/var/cache/nginx/gate", filepath.Join(shortDir(t), "cache"), "200 403 5s", "200 403 1s")
	const want = "GET shop.example project=11 user= plan= body=0"
	g.passes(want, "GET", "shop.example", "")
	g.passes(want, "GET", "shop.example", "", "X-Project-Id", "99")
	g.refused(403, "GET", "unknown.example")
	r.halt()
	for stale := time.Now().Add(1500 * time.Millisecond); time.Now().Before(stale); { // the cached answers become stale meanwhile
		g.passes(want, "GET", "shop.example", "")
		g.refused(403, "GET", "unknown.example")
	}
	g.refused(0, "GET", "bank.example")
}

// send sends a request with the client's own query and further headers.
func (g *gated) send(method, host, body string, header ...string) (status int, h http.Header, text string) {
	g.t.Helper()
	req, err := http.NewRequest(method, "http://"+host+"/orders?x=1&domain=bank.example&deny=404&auth=", strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	res, err := g.client.Do(req)
	if err != nil {
		g.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	return res.StatusCode, res.Header, string(b)
}

func (g *gated) passes(want, method, host, body string, header ...string) {
	g.t.Helper()
	if status, _, text := g.send(method, host, body, header...); status != 200 || text != want {
		g.t.Errorf("%d %s, want %s", status, text, want)
	}
}

// refused checks that a request gets the status, or any of 500 and more if that is 0, and does not reach the upstream.
func (g *gated) refused(status int, method, host string, header ...string) {
	g.t.Helper()
	before := g.reached.Load()
	got, h, text := g.send(method, host, "", header...)
	if got != status && (status != 0 || got < 500) || g.reached.Load() != before {
		g.t.Errorf("%s %s: %d %s, want %d", method, host, got, text, status)
	}
	if status == 401 && h.Get("WWW-Authenticate") != `Bearer error="invalid_token"` {
		g.t.Errorf("401 with %v", h)
	}
}

// forged are headers with which a client could want to choose its project or its user.
var forged = []string{"X-Project-Id", "99", "X-User-Id", "root", "X-Label-Plan", "platinum", "X-Original-URL", "http://bank.example/", "X-Forwarded-Host", "bank.example"}

func (g *gated) testRouting() {
	g.passes("GET shop.example project=11 user= plan=gold/gr%C3%B6%C3%9Fe body=0", "GET", "shop.example", "")
	g.passes("GET shop.example project=11 user= plan=gold/gr%C3%B6%C3%9Fe body=0", "GET", "shop.example", "", forged...)
	g.passes("GET a.b.shop.example project=11 user= plan=gold/gr%C3%B6%C3%9Fe body=0", "GET", "a.b.shop.example", "", forged...)
	g.passes("GET bank.example project=12 user= plan= body=0", "GET", "bank.example", "", "If-None-Match", "*")
	g.passes("POST shop.example project=11 user= plan=gold/gr%C3%B6%C3%9Fe body=100000", "POST", "shop.example", strings.Repeat("x", 100000), forged...)
	g.passes("PUT bank.example project=12 user= plan= body=5", "PUT", "bank.example", "hello")
	for _, method := range []string{"GET", "POST"} {
		g.refused(403, method, "unknown.example")
		g.refused(403, method, "unknown.example", forged...)
		g.refused(403, method, "off.shop.example")
		g.refused(403, method, "gone.example")
		g.refused(403, method, "127.0.0.1")
	}
}

func (g *gated) testTokens() {
	g.t.Helper()
	const header = "Authorization"
	shop := "Bearer " + gatewayToken(g.t, gatewaySecret, 11, jwt.MapClaims{"sub": "ü\r\nX-Project-Id: 12"})
	g.passes("GET shop.example project=11 user=%C3%BC%0D%0AX-Project-Id: 12 plan=gold/gr%C3%B6%C3%9Fe body=0", "GET", "shop.example", "", header, shop)
	g.passes("POST a.shop.example project=11 user=%C3%BC%0D%0AX-Project-Id: 12 plan=gold/gr%C3%B6%C3%9Fe body=4", "POST", "a.shop.example", "body", append(forged, header, shop)...)
	g.refused(401, "GET", "bank.example", header, shop)
	g.refused(401, "GET", "bank.example", append(forged, header, shop)...)
	g.refused(401, "GET", "shop.example", header, shop+"x")
	g.refused(401, "GET", "shop.example", header, "Bearer x.y.z")
	g.refused(401, "GET", "shop.example", header, "Bearer "+gatewayToken(g.t, gatewaySecret, 11, jwt.MapClaims{"exp": 1}))
	g.refused(403, "GET", "unknown.example", header, shop)
	for range 30 { // all from one address: they are not throttled
		g.refused(401, "GET", "shop.example", header, "Bearer x.y.z")
	}
}

// testClients asks with 64 clients at the same time, about two projects.
func (g *gated) testClients() {
	g.t.Helper()
	var wg sync.WaitGroup
	wrong := make(chan string, 640)
	for i := range 64 {
		host, want := "a.shop.example", "project=11"
		if i%2 == 1 {
			host, want = "bank.example", "project=12"
		}
		wg.Go(func() {
			for range 10 {
				res, err := g.client.Get("http://" + host + "/")
				if err != nil {
					wrong <- err.Error()
					continue
				}
				b, err := io.ReadAll(res.Body)
				res.Body.Close()
				if g.loses && res.StatusCode == http.StatusServiceUnavailable {
					continue // its lines say 503 then, and nothing reaches the upstream
				}
				if err != nil || res.StatusCode != 200 || !strings.Contains(string(b), want) {
					wrong <- fmt.Sprint(res.StatusCode, string(b), err)
				}
			}
		})
	}
	wg.Wait()
	if n := len(wrong); n > 0 {
		g.t.Errorf("%d of 640 requests of 64 clients got something else, such as %s", n, <-wrong)
	}
}

// TestGateCertificates: Caddy fetches certificates for the names that the gate allows.
func TestGateCertificates(t *testing.T) {
	t.Parallel()
	testrig.Need(t, "caddy")
	for _, wildcards := range []bool{false, true} {
		r := idleRig(t, t.TempDir(), gateFiles)
		r.flags = []string{"--gate-listen", "127.0.0.1:0", fmt.Sprintf("--gate-wildcards=%v", wildcards)}
		r.start()
		socket := runCaddy(t, "", strings.TrimPrefix(r.gateURL(), "http://"), "127.0.0.1:1")
		ctx, cancel := context.WithTimeout(context.Background(), testrig.Patience)
		defer cancel()
		f := func(name string, want bool) {
			t.Helper()
			c, err := dialTLS(ctx, socket, name)
			if err == nil {
				c.Close()
			}
			if (err == nil) != want || err != nil && !strings.Contains(err.Error(), "remote error: tls: internal error") {
				t.Errorf("wildcards %v: the handshake for %s ends with %v", wildcards, name, err)
			}
		}
		f("shop.example", true)
		f("bank.example", true)
		f("a.shop.example", wildcards)
		f("off.shop.example", false)
		f("gone.example", false)
		f("unknown.example", false)
		f("a.yes.shop.example", true)
		f("a.no.shop.example", false)
		f("none.shop.example", false)
		r.halt()
		f("shop.example", true) // fetched before
		f("bücher.example", false)
	}
}

// TestGateOtherLines: the addresses in the lines for Traefik and Envoy, which Debian does not have, asked as those two ask.
func TestGateOtherLines(t *testing.T) {
	t.Parallel()
	r := idleRig(t, t.TempDir(), gateFiles)
	r.flags = []string{"--gate-listen", "127.0.0.1:0"}
	r.start()
	find := func(pattern string) string {
		t.Helper()
		readme, err := os.ReadFile("../../api/gateway/README.md")
		must(t, err)
		m := regexp.MustCompile(pattern).FindSubmatch(readme)
		if m == nil {
			t.Fatalf("api/gateway/README.md has no %s", pattern)
		}
		return string(m[1])
	}
	ask := func(method, target, host string, status int, user string, header ...string) {
		t.Helper()
		req, err := http.NewRequest(method, r.gateURL()+target, nil)
		must(t, err)
		req.Host = host
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		res, err := r.client.Do(req)
		must(t, err)
		res.Body.Close()
		if h := res.Header; res.StatusCode != status || status == 200 && (h.Get("X-Project-Id") != "11" || h.Get("X-User-Id") != user) {
			t.Errorf("%s %s of %s: %d %v", method, target, host, res.StatusCode, h)
		}
	}
	token := "Bearer " + gatewayToken(t, gatewaySecret, 11, nil)
	traefik := find(`address: http://127\.0\.0\.1:8081(\S+)`)
	for _, c := range []struct {
		host   string
		status int
	}{{"shop.example", 200}, {"a.shop.example:8443", 200}, {"unknown.example", 403}, {"off.shop.example", 403}} {
		headers := []string{"X-Forwarded-Method", "POST", "X-Forwarded-Proto", "https", "X-Forwarded-Host", c.host, "X-Forwarded-Uri", "/orders?domain=bank.example"}
		ask("GET", traefik, "127.0.0.1:8081", c.status, "", headers...)
		ask("GET", traefik, "127.0.0.1:8081", c.status, "u-1", append(headers, "Authorization", token)...)
	}
	envoy := find(`path_prefix: (\S+)`)
	for _, path := range []string{"/", "/orders?domain=bank.example&auth=optional", "/;auth=optional/check"} {
		ask("DELETE", envoy+path, "shop.example", 200, "", "Content-Length", "0")
		ask("POST", envoy+path, "shop.example:8443", 200, "u-1", "Authorization", token)
		ask("POST", envoy+path, "shop.example", 401, "", "Authorization", token+"x")
		ask("OPTIONS", envoy+path, "unknown.example", 403, "")
	}
}
