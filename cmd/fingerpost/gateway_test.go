package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"fingerpost/cmd/testrig"
)

// A gatewayProcess is a real proxy that runs the lines of api/gateway/README.md in front of a rig and of an upstream.
type gatewayProcess struct {
	name   string
	client *http.Client // to the gateway, whatever the URL's host is
	denied int          // its status for an unknown domain
}

// snippet returns the block of api/gateway/README.md in a language that has all the texts to replace, with the addresses of the
// test.
func snippet(t *testing.T, language string, replace ...string) string {
	t.Helper()
	b, err := os.ReadFile("../../api/gateway/README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllSubmatch(b, -1)
	var found []string
blocks:
	for _, block := range blocks {
		text := string(block[1])
		for i := 0; i < len(replace); i += 2 {
			if !strings.Contains(text, replace[i]) {
				continue blocks
			}
			text = strings.ReplaceAll(text, replace[i], replace[i+1])
		}
		found = append(found, text)
	}
	if len(found) != 1 {
		t.Fatalf("api/gateway/README.md has %d blocks of %s with %q, want one", len(found), language, replace)
	}
	return found[0]
}

// runGateway runs the program until the test ends and waits until it accepts connections on the socket.
func runGateway(t *testing.T, dir, socket string, command ...string) *http.Client {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "XDG_CONFIG_HOME=" + dir, "XDG_DATA_HOME=" + dir}
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		if t.Failed() {
			t.Logf("%s:\n%s", command[0], log.String())
		}
	})
	deadline := time.Now().Add(testrig.Patience)
	for {
		c, err := net.Dial("unix", socket)
		if err == nil {
			c.Close()
			break
		}
		select {
		case <-ended:
			t.Fatalf("%s ended:\n%s", command[0], log.String())
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s does not listen: %v", command[0], err)
		}
	}
	return &http.Client{Timeout: testrig.Patience, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}
}

func startNginx(t *testing.T, fingerpost, upstream string) gatewayProcess {
	return gatewayProcess{"nginx", runNginx(t, "127.0.0.1:8080", fingerpost, upstream), 403}
}

// runNginx runs the lines that have all of more, which are pairs as of snippet.
func runNginx(t *testing.T, fingerpost, address, upstream string, more ...string) *http.Client {
	t.Helper()
	nginx := testrig.Need(t, "nginx")[0]
	dir := shortDir(t)
	socket := filepath.Join(dir, "s")
	var paths strings.Builder
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&paths, "%s_temp_path %s/%s;\n", kind, dir, kind)
	}
	config := fmt.Sprintf("daemon off; master_process off; pid %s/pid; error_log stderr;\nevents {}\nhttp {\naccess_log off;\n%s%s}\n", dir, paths.String(),
		snippet(t, "nginx", append(more, "listen 80;", "listen unix:"+socket+";", fingerpost, address, "127.0.0.1:3000", upstream)...))
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return runGateway(t, dir, socket, nginx, "-p", dir, "-e", "stderr", "-c", file)
}

func startCaddy(t *testing.T, fingerpost, upstream string) gatewayProcess {
	caddy := testrig.Need(t, "caddy")[0]
	dir := shortDir(t)
	socket := filepath.Join(dir, "s")
	config := "{\n\tadmin off\n}\n" +
		snippet(t, "caddyfile", "http://:80 {", "http:// {\n\tbind unix/"+socket, "127.0.0.1:8080", fingerpost, "127.0.0.1:3000", upstream)
	file := filepath.Join(dir, "Caddyfile")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return gatewayProcess{"caddy", runGateway(t, dir, socket, caddy, "run", "--adapter", "caddyfile", "--config", file), 404}
}

// shortDir returns a folder whose path is short enough for sockets.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "gw")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

const gatewaySecret = "0123456789abcdef0123456789abcdef"

// TestGateways: the nginx auth_request and Caddy forward_auth blocks of api/gateway/README.md pass good tokens with their
// identity, and nothing else.
func TestGateways(t *testing.T) {
	for name, start := range map[string]func(t *testing.T, fingerpost, upstream string) gatewayProcess{"nginx": startNginx, "caddy": startCaddy} {
		t.Run(name, func(t *testing.T) {
			testrig.Need(t, name) // before anything is started
			r := newRig(t, map[string]string{
				"tokens.hcl": fmt.Sprintf("project \"shop\" {\n  id = 11\n  name = \"Shop\"\n  domain \"shop.example\" {}\n  domain \"*.shop.example\" {}\n  auth_settings { jwt_secret = %q }\n}\n"+
					"project \"bank\" {\n  id = 12\n  name = \"Bank\"\n  domain \"bank.example\" {}\n  auth_settings { jwt_secret = %q }\n}\n", gatewaySecret, gatewaySecret+"2"),
			})
			var reached atomic.Int32
			upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				reached.Add(1)
				body, _ := io.ReadAll(req.Body)
				fmt.Fprintf(w, "%s %s project=%q user=%q email=%q body=%d", req.Method, req.Host, req.Header["X-Project-Id"], req.Header["X-User-Id"],
					strings.Join(req.Header["X-User-Email"], ","), len(body))
			}))
			defer upstream.Close()
			testGateway(t, start(t, strings.TrimPrefix(r.url, "http://"), upstream.Listener.Addr().String()), &reached)
		})
	}
}

func gatewayToken(t *testing.T, secret string, projectID int, more jwt.MapClaims) string {
	t.Helper()
	claims := jwt.MapClaims{"iss": "auth-service", "sub": "u-1", "projectId": projectID, "exp": time.Now().Unix() + 600}
	for name, v := range more {
		claims[name] = v
	}
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func testGateway(t *testing.T, g gatewayProcess, reached *atomic.Int32) {
	// The client's query asks for another domain: it must not get to the check.
	ask := func(method, host, token, body string, header ...string) (*http.Response, string) {
		t.Helper()
		req, err := http.NewRequest(method, "http://"+host+"/orders?x=1&domain=bank.example", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		for i := 0; i < len(header); i += 2 {
			req.Header.Add(header[i], header[i+1])
		}
		res, err := g.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res, string(text)
	}
	passes := func(want string) func(res *http.Response, text string) {
		return func(res *http.Response, text string) {
			t.Helper()
			if res.StatusCode != 200 || text != want {
				t.Errorf("%d %s, want %s", res.StatusCode, text, want)
			}
		}
	}
	refused := func(status int) func(res *http.Response, text string) {
		before := reached.Load()
		return func(res *http.Response, text string) {
			t.Helper()
			if res.StatusCode != status {
				t.Errorf("%d %s, want %d", res.StatusCode, text, status)
			}
			if status == 401 && res.Header.Get("WWW-Authenticate") != `Bearer error="invalid_token"` {
				t.Errorf("401 with %v", res.Header)
			}
			if reached.Load() != before {
				t.Errorf("%d, and the upstream was reached", res.StatusCode)
			}
		}
	}
	shop := gatewayToken(t, gatewaySecret, 11, jwt.MapClaims{"email": "bücher@example.com"})
	bank := gatewayToken(t, gatewaySecret+"2", 12, nil)
	forged := []string{"X-Project-Id", "99", "X-User-Id", "root", "X-User-Email", "root@example.com"}

	passes(`GET shop.example project=["11"] user=["u-1"] email="b%C3%BCcher@example.com" body=0`)(ask("GET", "shop.example", shop, ""))
	passes(`GET a.b.shop.example project=["11"] user=["u-1"] email="b%C3%BCcher@example.com" body=0`)(ask("GET", "a.b.shop.example", shop, "", forged...))
	passes(`POST shop.example project=["11"] user=["u-1"] email="b%C3%BCcher@example.com" body=100000`)(ask("POST", "shop.example", shop, strings.Repeat("x", 100000)))
	// If a token has no e-mail address, the client's own header must not pass.
	passes(`GET bank.example project=["12"] user=["u-1"] email="" body=0`)(ask("GET", "bank.example", bank, "", forged...))
	if res, text := ask("HEAD", "shop.example", shop, ""); res.StatusCode != 200 || text != "" {
		t.Errorf("HEAD: %d %q", res.StatusCode, text)
	}

	refused(401)(ask("GET", "shop.example", "", ""))
	refused(401)(ask("GET", "shop.example", "", "", forged...))
	refused(401)(ask("POST", "shop.example", "", "body"))
	refused(401)(ask("GET", "shop.example", "x.y.z", ""))
	refused(401)(ask("GET", "shop.example", shop+"x", ""))
	refused(401)(ask("GET", "shop.example", bank, ""))
	refused(401)(ask("GET", "bank.example", shop, ""))
	refused(401)(ask("GET", "shop.example", gatewayToken(t, gatewaySecret, 11, jwt.MapClaims{"exp": 1}), ""))
	// The requested host decides, whatever else the client claims.
	refused(401)(ask("GET", "bank.example", shop, "", "X-Forwarded-Host", "shop.example"))
	refused(401)(ask("GET", "shop.example", bank, "", "X-Forwarded-Host", "bank.example"))
	refused(g.denied)(ask("GET", "unknown.example", shop, ""))
	refused(403)(ask("GET", "old.acme.example", shop, ""))
	before := reached.Load()
	if res, text := ask("GET", "bank.example&domain=shop.example", shop, ""); res.StatusCode < 400 || reached.Load() != before {
		t.Errorf("a host with a parameter in it: %d %s", res.StatusCode, text)
	}

	// All failed tokens come from the gateway's address. When they are throttled, good ones still pass.
	for range 30 {
		res, text := ask("GET", "shop.example", bank, "")
		if res.StatusCode != 401 && (g.name == "nginx" || res.StatusCode != 429) {
			t.Errorf("a bad token gets %d %s", res.StatusCode, text)
		}
	}
	passes(`GET shop.example project=["11"] user=["u-1"] email="b%C3%BCcher@example.com" body=0`)(ask("GET", "shop.example", shop, ""))
}

// TestTokenSecrets: the sources of the secret, seen from outside: env(), file() and its replacement, and what /status
// says.
func TestTokenSecrets(t *testing.T) {
	r := idleRig(t, t.TempDir(), map[string]string{"tokens.hcl": `
project "shop" {
  id   = 11
  name = "Shop"
  domain "shop.example" {}
  service_settings { auth_enabled = true }
  auth_settings { jwt_secret = env("STORY_SECRET") }
}
project "bank" {
  id   = 12
  name = "Bank"
  domain "bank.example" {}
  auth_settings { jwt_secret = file("bank.txt") }
}
project "unset" {
  id   = 13
  name = "Unset"
  domain "unset.example" {}
  service_settings { auth_enabled = true }
  auth_settings { jwt_secret = env("NO_SUCH_VARIABLE") }
}
project "none" {
  id   = 14
  name = "None"
  domain "none.example" {}
  service_settings { auth_enabled = true }
}
project "idle" {
  id   = 15
  name = "Idle"
  domain "idle.example" {}
}
`, "bank.txt": gatewaySecret + "\n"})
	r.flags = []string{"--auth-issuer", "https://login.example"}
	r.start()
	issuer := jwt.MapClaims{"iss": "https://login.example"}
	send := func(domain, secret string, id int) int {
		t.Helper()
		req, err := http.NewRequest("GET", r.url+"/api/auth/me?domain="+domain, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+gatewayToken(t, secret, id, issuer))
		res, err := r.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		_, _ = io.Copy(io.Discard, res.Body)
		return res.StatusCode
	}
	ask := func(domain, secret string, id, status int) {
		t.Helper()
		if got := send(domain, secret, id); got != status {
			t.Errorf("%s: %d, want %d", domain, got, status)
		}
	}
	ask("shop.example", "s3cret", 11, 200)
	ask("bank.example", gatewaySecret, 12, 200)
	ask("unset.example", gatewaySecret, 13, 503)
	ask("none.example", gatewaySecret, 14, 503)
	ask("idle.example", gatewaySecret, 15, 503)
	status, err := fetch(r.ops + "/status")
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Secrets []struct{ Severity, Project, Field, Message string }
	}
	if err := json.Unmarshal(status, &document); err != nil {
		t.Fatal(err)
	}
	want := []struct{ Severity, Project, Field, Message string }{
		{"error", "none", "jwtSecret", "no jwt_secret is given"},
		{"warning", "shop", "jwtSecret", "is shorter than 32 bytes: one token is enough to try out short secrets; use 32 random bytes"},
		{"error", "unset", "jwtSecret", "the environment variable NO_SUCH_VARIABLE is not set"},
	}
	if !slices.Equal(document.Secrets, want) {
		t.Errorf("/status has %+v, want %+v", document.Secrets, want)
	}
	if strings.Contains(r.logged(), "s3cret") || strings.Contains(r.logged(), gatewaySecret) || strings.Contains(string(status), "s3cret\"") {
		t.Error("a secret is in the log or in /status")
	}
	// A replaced file counts when it is read again: SIGHUP does that at once.
	r.put("bank.txt", gatewaySecret+"2\n")
	if err := r.cmd.Process.Signal(signals["HUP"]); err != nil {
		t.Fatal(err)
	}
	until := time.Now().Add(testrig.Patience)
	for send("bank.example", gatewaySecret+"2", 12) != 200 {
		if time.Now().After(until) {
			t.Fatal("the replaced secret is not in force")
		}
		<-time.After(100 * time.Millisecond) // a failed token at each turn: 20 of them are throttled
	}
	if got := send("bank.example", gatewaySecret, 12); got != 401 && got != 429 {
		t.Errorf("the former secret: %d", got)
	}
	if out, code := r.run("serve", "--auth-issuer", ""); code != 2 || !strings.Contains(out, "--auth-issuer must not be empty") {
		t.Errorf("an empty issuer: exit %d: %s", code, out)
	}
}
