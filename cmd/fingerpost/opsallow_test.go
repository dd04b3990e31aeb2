package main

import (
	"net"
	"strings"
	"testing"

	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/cmd/testrig"
)

// TestOpsListener: the commands work under every address of this machine, and one that others can reach is warned
// about.
func TestOpsListener(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	warns := func(r *rig) bool {
		return strings.Contains(r.logged(), "ops listener can be reached from other machines")
	}
	r := newRig(t, nil)
	if warns(r) {
		t.Errorf("a warning on loopback: %s", r.logged())
	}
	r.halt()
	r.flags = []string{"--ops-listen", "0.0.0.0:0", "--ops-allow", "203.0.113.0/24,2001:db8::/32"}
	r.start()
	if !warns(r) || strings.Count(r.logged(), `"level":"WARN"`) != 1 || !strings.Contains(r.logged(), "203.0.113.0/24") {
		t.Errorf("no warning, or others: %s", r.logged())
	}
	_, port, err := net.SplitHostPort(strings.TrimPrefix(r.ops, "http://"))
	must(t, err)
	urls := []string{r.ops, "http://127.0.0.1:" + port, "http://localhost:" + port}
	addrs, err := net.InterfaceAddrs()
	must(t, err)
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil {
			urls = append(urls, "http://"+net.JoinHostPort(n.IP.String(), port))
		}
	}
	for _, url := range urls {
		if printed, code := r.run("reload", "--ops-url", url); code != cli.ExitOK {
			t.Errorf("reload --ops-url %s ends with %d: %s", url, code, printed)
		}
	}
	if printed, code := r.run("backup", "b.tgz", "--ops-url", urls[len(urls)-1]); code != cli.ExitOK {
		t.Errorf("backup ends with %d: %s", code, printed)
	}
	printed, code := r.run("serve", "--ops-allow", "10.0.0.1,nonsense")
	if code != cli.ExitUsage || !strings.Contains(printed, "did you mean 10.0.0.1/32?") || !strings.Contains(printed, `"nonsense"`) {
		t.Errorf("wrong networks: %d %s", code, printed)
	}
}
