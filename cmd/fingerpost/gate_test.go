package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/cmd/testrig"
)

var gateLine = regexp.MustCompile(`(?m)^gateways ask on (\S+)$`)

// gateURL is where gateways ask.
func (r *rig) gateURL() string {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	m := gateLine.FindStringSubmatch(r.announced.String())
	if m == nil {
		r.t.Fatalf("no address for gateways is announced: %s", r.announced.String())
	}
	return m[1]
}

// TestGate: gateways ask on an address of their own, without a key; a save is live there, and the flags say who may ask and
// about what.
func TestGate(t *testing.T) {
	t.Parallel()
	r := idleRig(t, t.TempDir(), nil)
	r.flags = []string{"--gate-listen", "127.0.0.1:0"}
	r.start()
	ask := func(client *http.Client, url string, status int, reason string) http.Header {
		t.Helper()
		res, err := client.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if got, _, _ := strings.Cut(res.Header.Get("X-Gate-Reason"), ":"); err != nil || res.StatusCode != status || got != reason || len(body) > 0 {
			t.Errorf("%s: %d %q %q %v, want %d %s", url, res.StatusCode, res.Header.Get("X-Gate-Reason"), body, err, status, reason)
		}
		return res.Header
	}
	gate := r.gateURL()
	if h := ask(r.client, gate+"/check?domain=shop.acme.example", 200, ""); h.Get("X-Project-Slug") != "acme" || h.Get("X-Project-Status") != "ACTIVE" {
		t.Errorf("%v", h)
	}
	ask(r.client, gate+"/check?domain=old.acme.example", 403, "DOMAIN_NOT_VERIFIED")
	ask(r.client, gate+"/check?domain=gone.example&deny=404", 404, "PROJECT_SUSPENDED")
	ask(r.client, gate+"/ask?domain=shop.acme.example", 200, "")
	ask(r.client, gate+"/ask?domain=x.acme.example", 404, "FORBIDDEN")
	ask(r.client, gate+"/api/platform/health", 404, "NOT_FOUND")
	ask(r.client, r.url+"/api/gate/check?domain=shop.acme.example", 401, "UNAUTHORIZED")
	ask(r.client, gate+"/check?domain=new.example", 403, "NOT_FOUND")
	r.put("new.hcl", "project \"new\" {\n  name = \"New\"\n  domain \"new.example\" {}\n}\n")
	if out, code := r.run("reload", "--ops-url", r.ops); code != cli.ExitOK {
		t.Fatalf("reload: %d %s", code, out)
	}
	ask(r.client, gate+"/check?domain=new.example", 200, "")
	r.halt()

	// Over a Unix socket, with wildcards, by the environment's word.
	socket := filepath.Join(shortDir(t), "gate")
	r.flags = []string{"--gate-listen", "unix:" + socket, "--gate-wildcards"}
	r.start()
	if got := r.gateURL(); got != "unix:"+socket {
		t.Errorf("announced %s", got)
	}
	overSocket := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	ask(overSocket, "http://gate/ask?domain=x.acme.example", 200, "")
	overSocket.CloseIdleConnections()
	r.halt()

	// On all addresses, for the networks that are named and this machine.
	r.flags = []string{"--gate-listen", "0.0.0.0:0", "--gate-allow", "203.0.113.0/24"}
	r.start()
	_, port, err := net.SplitHostPort(strings.TrimPrefix(r.gateURL(), "http://"))
	must(t, err)
	ask(r.client, "http://127.0.0.1:"+port+"/check?domain=shop.acme.example", 200, "")
	addrs, err := net.InterfaceAddrs()
	must(t, err)
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && !n.IP.IsLoopback() {
			ask(r.client, "http://"+net.JoinHostPort(n.IP.String(), port)+"/check?domain=shop.acme.example", 403, "FORBIDDEN")
		}
	}
}

// TestGateFlags: what the flags refuse, and that they say what would be right.
func TestGateFlags(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	r := idleRig(t, t.TempDir(), nil)
	f := func(want string, code int, flags ...string) {
		t.Helper()
		args := append([]string{"serve", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0"}, flags...)
		if printed, got := r.run(args...); got != code || !strings.Contains(printed, want) {
			t.Errorf("%q: exit %d: %s", flags, got, printed)
		}
	}
	const open = "name the networks of the gateways, as in --gate-allow 10.0.0.0/8, or listen on 127.0.0.1 or unix:/path"
	f("--gate-listen :8081: gateways need no key there, and other machines can reach it: "+open, cli.ExitUsage, "--gate-listen", ":8081")
	f(open, cli.ExitUsage, "--gate-listen", "0.0.0.0:0")
	f(open, cli.ExitUsage, "--gate-listen", "[::]:0")
	f(open, cli.ExitUsage, "--gate-listen", "203.0.113.7:80")
	f("--gate-allow needs --gate-listen ADDR", cli.ExitUsage, "--gate-allow", "10.0.0.0/8")
	f(`did you mean 10.0.0.1/32?; --gate-allow: "nonsense"`, cli.ExitUsage, "--gate-listen", ":0", "--gate-allow", "10.0.0.1,nonsense")
	f(`--gate-listen "nowhere": missing port`, cli.ExitUsage, "--gate-listen", "nowhere")
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer ln.Close()
	f("--gate-listen "+ln.Addr().String()+": the address is in use", cli.ExitFailed, "--gate-listen", ln.Addr().String())
}
