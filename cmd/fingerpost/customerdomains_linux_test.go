package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/cmd/testrig/faultdns"
)

// insideVariable names the Caddy that TestCustomerDomains plays the guide with, in the network namespace.
const insideVariable = "FINGERPOST_TEST_CADDY"

// TestCustomerDomains plays the guide as it is printed, with each Caddy. A network namespace stands for the fresh machine:
// its ports and addresses are the printed ones, its only name servers are those of the test, and Pebble answers there in
// the name of Let's Encrypt.
func TestCustomerDomains(t *testing.T) {
	if caddy := os.Getenv(insideVariable); caddy != "" {
		playCustomerDomains(t, caddy)
		return
	}
	testrig.Thorough(t)
	t.Parallel()
	testrig.NeedRoot(t)
	testrig.Need(t, "unshare", "mount", "ip", "curl", "go", "pebble")
	namespace := []string{"--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"}
	if out, err := exec.Command("unshare", append(namespace, "true")...).CombinedOutput(); err != nil {
		testrig.Missing(t, "unshare", fmt.Sprintf("the right to make network namespaces (%v: %s)", err, out))
	}
	self, err := os.Executable()
	must(t, err)
	caddys := []string{"caddy", "caddy-2.11.9"} // Debian's and the newest
	if testrig.Full() {
		caddys = append(caddys, "caddy-2.10.2")
	}
	for _, caddy := range caddys {
		t.Run(caddy, func(t *testing.T) {
			t.Parallel()
			inside := exec.CommandContext(t.Context(), "unshare", append(namespace[:len(namespace):len(namespace)], self,
				"-test.run=^TestCustomerDomains$", "-test.v", "-test.count=1", "-test.timeout=20m")...)
			inside.Env = append(os.Environ(), insideVariable+"="+testrig.Need(t, caddy)[0])
			out, err := inside.CombinedOutput()
			t.Logf("%s", out)
			must(t, err)
		})
	}
}

// A customersWorld is the server of the guide's reader, and the internet around it.
type customersWorld struct {
	t       *testing.T
	names   *faultdns.Net
	issuer  *acme
	shell   *guideShell
	records []string // of the customer's zone: the proof, then the one that leads here
}

// Names and addresses of the customersWorld.
const (
	customersName = "shop.initech.example"
	customersZone = "initech.example"
	customersAddr = "127.0.0.4" // of the zone's name server
	ourZoneAddr   = "127.0.0.3" // of that of saas.example
	acmeZoneAddr  = "127.0.0.5"
	acmeAddr      = "127.0.0.9"
	edgeAddr      = "203.0.113.10" // of the reader's server
)

// playCustomerDomains is TestCustomerDomains in the namespace.
func playCustomerDomains(t *testing.T, caddy string) {
	w := newCustomersWorld(t, caddy)
	began := time.Now()
	for _, step := range guideSteps(t, readText(t, customerDomainsGuide)) {
		if strings.Contains(step.command, "only for Caddy before 2.8") && filepath.Base(caddy) != "caddy" {
			continue
		}
		if strings.HasPrefix(step.command, "fingerpost domains check") {
			w.customerSetsRecords()
		}
		since := time.Now()
		printed := w.shell.play(step)
		line, _, _ := strings.Cut(step.command, "\n")
		t.Logf("%5.1f s  %s", time.Since(since).Seconds(), line)
		if strings.HasPrefix(step.command, "fingerpost domains records") {
			w.readRecords(printed)
		}
	}
	t.Logf("%5.1f s  in all", time.Since(began).Seconds())
	w.testLost()
}

func newCustomersWorld(t *testing.T, caddy string) *customersWorld {
	run := func(command ...string) {
		t.Helper()
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v %s", command, err, out)
		}
	}
	dir := t.TempDir()
	run("ip", "link", "set", "lo", "up")
	run("ip", "route", "add", "local", edgeAddr, "dev", "lo")
	resolver := writeConfig(t, filepath.Join(dir, "resolv.conf"), "nameserver "+faultdns.ResolverAddr+"\n")
	run("mount", "--bind", resolver, "/etc/resolv.conf")
	w := &customersWorld{t: t, names: faultdns.New53(t)}
	w.names.Zone("saas.example", "edge 60 A "+edgeAddr+"\n* 60 CNAME edge", ourZoneAddr)
	w.names.Zone(customersZone, "", customersAddr)
	w.names.Zone("letsencrypt.org", "acme-v02.api 60 A "+acmeAddr, acmeZoneAddr)
	w.issuer = newACME(t, dir)

	run("go", "build", "-o", filepath.Join(dir, "app"), "dist/app.go") // "go run" finds its packages compiled
	for _, d := range []string{"work", "bin"} {
		must(t, os.Mkdir(filepath.Join(dir, d), 0o755))
	}
	must(t, os.Symlink(caddy, filepath.Join(dir, "bin", "caddy")))
	for _, file := range []string{"Caddyfile", "app.go"} {
		writeConfig(t, filepath.Join(dir, "work", file), readText(t, "dist/"+file))
	}
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	must(t, err)
	same := strings.NewReplacer()
	w.shell = startGuideShell(t, dir, same, same, "SSL_CERT_FILE="+w.issuer.roots, "FINGERPOST_CACHE_SIZE=8MiB",
		"FINGERPOST_DNS_ALLOW=127.0.0.0/8,"+edgeAddr+"/32", "GOFLAGS=", "GOCACHE="+strings.TrimSpace(string(cache)))
	t.Cleanup(func() {
		for _, name := range []string{"serve.log", "caddy.log", "app.log"} {
			if text, err := os.ReadFile(filepath.Join(w.shell.work, name)); err == nil && t.Failed() {
				t.Logf("%s:\n%s", name, text)
			}
		}
	})
	return w
}

// readRecords reads the two records that the guide has the customer set.
func (w *customersWorld) readRecords(printed string) {
	w.t.Helper()
	for _, pattern := range []string{`(?m)^ +(TXT) +(_fingerpost-challenge\S+) +(.+?) *$`, `(?m)^ +(CNAME) +(\S+) +(edge\S+) *$`} {
		m := regexp.MustCompile(pattern).FindStringSubmatch(printed)
		if m == nil {
			w.t.Fatalf("no record %s in\n%s", pattern, printed)
		}
		value := m[3] + "."
		if m[1] == "TXT" {
			value = `"` + m[3] + `"`
		}
		w.records = append(w.records, fmt.Sprintf("%s. 60 %s %s", m[2], m[1], value))
	}
}

// customerSetsRecords lets the domain lead here first, which alone brings no certificate, and then sets both records.
func (w *customersWorld) customerSetsRecords() {
	w.t.Helper()
	w.names.Set(customersAddr, customersZone, w.records[1])
	if err := w.visit(); err == nil || !strings.Contains(err.Error(), "tls: internal error") {
		w.t.Errorf("a pending domain: the handshake ends with %v", err)
	}
	if n := w.issuer.orders(customersName); n != 0 {
		w.t.Errorf("a pending domain: %d orders", n)
	}
	w.names.Set(customersAddr, customersZone, strings.Join(w.records, "\n"))
}

// visit does a TLS handshake with the customer's domain.
func (w *customersWorld) visit() error {
	c, err := tls.DialWithDialer(&net.Dialer{Timeout: testrig.Patience}, "tcp", edgeAddr+":443",
		&tls.Config{ServerName: customersName, RootCAs: w.issuer.pool})
	if err != nil {
		return err
	}
	return c.Close()
}

// testLost makes each certificate due for renewal as soon as it is there, and takes the proof away: Caddy renews the
// certificate until the domain is lost, and then no more.
func (w *customersWorld) testLost() {
	w.t.Helper()
	w.setCaddy("/config/apps/tls/automation/policies/0/renewal_window_ratio", "0.99999999")
	before := w.issuer.orders(customersName)
	testrig.Eventually(w.t, "Caddy renews the certificate of a proven domain", func() bool {
		return w.visit() == nil && w.issuer.orders(customersName) > before
	})

	w.names.Set(customersAddr, customersZone, w.records[1])
	w.shell.play(guideStep{command: `sed -i 's/on_lost.*/&\n    grace = "3s"/' projects.d/defaults.hcl` + "\n"})
	w.shell.play(guideStep{command: `until grep -q '"lost"' projects.d/initech.hcl; do fingerpost domains check ` + customersName +
		" --url http://127.0.0.1:8080 > check.txt; sleep 0.2; done\n"})
	w.shell.play(guideStep{command: "curl -s -o /dev/null -w '%{http_code}\\n' 'http://127.0.0.1:8081/ask?domain=" + customersName + "'\n",
		prints: "404\n"})
	refused := w.refusals()
	testrig.Eventually(w.t, "Caddy may not renew the certificate of a lost domain", func() bool {
		_ = w.visit() // served with the certificate that is there, or refused
		return w.refusals() > refused
	})
	lost := w.issuer.orders(customersName)
	for range 5 {
		_ = w.visit()
	}
	if n := w.issuer.orders(customersName); n != lost {
		w.t.Errorf("a lost domain: %d orders", n-lost)
	}
}

// notAllowed is what Caddy logs when the gate says no.
var notAllowed = regexp.MustCompile(`(?m)^.*(?:not allowed|denied|should not be obtained).*$`)

func (w *customersWorld) refusals() int {
	return len(notAllowed.FindAllString(readText(w.t, filepath.Join(w.shell.work, "caddy.log")), -1))
}

// setCaddy sets a value in the configuration of the running Caddy.
func (w *customersWorld) setCaddy(path, value string) {
	w.t.Helper()
	res, err := http.Post("http://127.0.0.1:2019"+path, "application/json", strings.NewReader(value))
	must(w.t, err)
	defer res.Body.Close()
	if body, _ := io.ReadAll(res.Body); res.StatusCode != http.StatusOK {
		w.t.Fatalf("POST %s of Caddy: %d %s", path, res.StatusCode, body)
	}
}
