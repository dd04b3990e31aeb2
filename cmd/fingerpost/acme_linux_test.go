package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fingerpost/cmd/testrig"
)

// An acme is Pebble at the address of Let's Encrypt: a proxy with that name's certificate passes requests on, and counts
// the orders.
type acme struct {
	roots string         // the file of the CAs that the machine trusts: that of the web, and Pebble's
	pool  *x509.CertPool // the same
	proxy *httputil.ReverseProxy

	mu      sync.Mutex // guards what follows
	ordered map[string]int
}

const pebbleAddr = "127.0.0.1:14000"

// newACME starts Pebble at fixed ports, as a network namespace has them free.
func newACME(t *testing.T, dir string) *acme {
	t.Helper()
	a := &acme{roots: filepath.Join(dir, "roots.pem"), pool: x509.NewCertPool(), ordered: map[string]int{}}
	web := newCA(t, "CA of the web")
	cert, key := web.issue("pebble", time.Now().Add(time.Hour))
	config := fmt.Sprintf(`{"pebble": {"listenAddress": %q, "managementListenAddress": "127.0.0.1:15000", "certificate": %q,
		"privateKey": %q, "httpPort": 80, "tlsPort": 443}}`, pebbleAddr, cert, key)
	startPebble(t, "-dnsserver", "127.0.0.1:53", "-config", writeConfig(t, filepath.Join(dir, "pebble.json"), config))

	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // it is this process's
	client := &http.Client{Transport: transport, Timeout: testrig.Patience}
	var issuer []byte
	testrig.Eventually(t, "Pebble answers", func() bool {
		res, err := client.Get("https://127.0.0.1:15000/roots/0")
		if err != nil {
			return false
		}
		defer res.Body.Close()
		issuer, err = io.ReadAll(res.Body)
		return err == nil && res.StatusCode == http.StatusOK
	})
	trusted := append([]byte(readText(t, web.file())), issuer...)
	must(t, os.WriteFile(a.roots, trusted, 0o600))
	if !a.pool.AppendCertsFromPEM(trusted) {
		t.Fatalf("no certificates: %s", trusted)
	}

	a.proxy = &httputil.ReverseProxy{Transport: transport, ModifyResponse: withoutRenewalInfo, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "https", Host: pebbleAddr})
		r.Out.Host = r.In.Host // Pebble's links and signed addresses have it
		if r.Out.URL.Path == "/directory" {
			r.Out.URL.Path = "/dir"
		}
	}}
	signed, signer := web.sign(&x509.Certificate{DNSNames: []string{"acme-v02.api.letsencrypt.org"}, NotAfter: time.Now().Add(time.Hour)}, "acme")
	// Caddy has the port at all other addresses, and sets the same option.
	shared := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var failed error
		err := c.Control(func(fd uintptr) { failed = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, unix.SO_REUSEPORT, 1) })
		return errors.Join(err, failed)
	}}
	ln, err := shared.Listen(t.Context(), "tcp", acmeAddr+":443")
	must(t, err)
	server := &http.Server{Handler: a, TLSConfig: &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{signed.Raw}, PrivateKey: signer}}}}
	go func() { _ = server.ServeTLS(ln, "", "") }()
	t.Cleanup(func() { _ = server.Close() })
	return a
}

func startPebble(t *testing.T, args ...string) {
	t.Helper()
	pebble := exec.Command(testrig.Need(t, "pebble")[0], args...)
	pebble.Env = append(os.Environ(), "PEBBLE_VA_NOSLEEP=1", "PEBBLE_WFE_NONCEREJECT=0")
	var log bytes.Buffer
	pebble.Stdout, pebble.Stderr = &log, &log
	must(t, pebble.Start())
	t.Cleanup(func() {
		_ = pebble.Process.Kill()
		_ = pebble.Wait()
		if t.Failed() {
			t.Logf("Pebble:\n%s", log.String())
		}
	})
}

// withoutRenewalInfo takes the address from the directory where clients ask when to renew a certificate: they then decide
// by its age.
func withoutRenewalInfo(res *http.Response) error {
	if res.Request.URL.Path != "/dir" {
		return nil
	}
	var directory map[string]any
	if err := json.NewDecoder(res.Body).Decode(&directory); err != nil {
		return err
	}
	delete(directory, "renewalInfo")
	text, err := json.Marshal(directory)
	if err != nil {
		return err
	}
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	res.Header.Set("Content-Length", fmt.Sprint(len(text)))
	return nil
}

// ServeHTTP counts the names of an order, and passes the request on.
func (a *acme) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var signed struct{ Payload string }
	var order struct{ Identifiers []struct{ Value string } }
	if strings.HasPrefix(r.URL.Path, "/order") && json.Unmarshal(body, &signed) == nil {
		payload, _ := base64.RawURLEncoding.DecodeString(signed.Payload)
		_ = json.Unmarshal(payload, &order) // else it has no names
	}
	a.mu.Lock()
	for _, name := range order.Identifiers {
		a.ordered[name.Value]++
	}
	a.mu.Unlock()
	a.proxy.ServeHTTP(w, r)
}

// orders returns how often a certificate for a name was ordered.
func (a *acme) orders(name string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ordered[name]
}
