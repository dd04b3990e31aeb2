package api_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fingerpost/api"
	"fingerpost/cmd/testrig"
)

// writeCert makes a certificate for name and puts it into dir.
func writeCert(t *testing.T, dir, name string) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile
}

func TestTLS(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	if testing.Short() {
		t.Skip("left out with -short: it takes seconds")
	}
	dir := t.TempDir()
	cert, key := writeCert(t, dir, "first.example")
	log := &testrig.Log{}
	config, err := api.TLSConfig(cert, key, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	h := start(t, func(o *api.Options) { o.TLS = config; o.Limits.Read = time.Second })
	dial := func() *tls.Conn {
		c, err := tls.Dial("tcp", h.addr, &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	name := func() string {
		c := dial()
		defer c.Close()
		return c.ConnectionState().PeerCertificates[0].Subject.CommonName
	}

	c := dial()
	defer c.Close()
	w := newWire(t, c)
	for range 2 {
		w.send("GET " + resolveURL + "?domain=globex.example HTTP/1.1\r\nHost: x\r\nX-PLATFORM-KEY: " + h.all + "\r\n\r\n")
		w.answer("GET").check(t, 200, "")
	}
	w.send("GET / HTTP/9.9\r\n\r\n" + smuggled)
	w.answer("GET").check(t, 400, "VALIDATION_ERROR")
	w.closed()

	if _, err := tls.Dial("tcp", h.addr, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS11}); err == nil {
		t.Error("TLS 1.1 is spoken")
	}
	if got := name(); got != "first.example" {
		t.Errorf("certificate of %s", got)
	}
	writeCert(t, dir, "second.example")
	testrig.Eventually(t, "the new certificate", func() bool { return name() == "second.example" })
	if err := os.WriteFile(cert, []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	testrig.Eventually(t, "a word on the broken one", func() bool { return name() == "second.example" && strings.Contains(log.String(), "does not load") })
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for begun := time.Now(); time.Since(begun) < 2500*time.Millisecond; <-tick.C { // two more looks at the files
		name()
	}
	if n := strings.Count(log.String(), "does not load"); n != 1 {
		t.Errorf("logged %d times", n)
	}
	writeCert(t, dir, "third.example")
	testrig.Eventually(t, "the third certificate", func() bool { return name() == "third.example" })

	// A peer that does not shake hands is cut.
	raw, err := net.Dial("tcp", h.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	raw.SetDeadline(time.Now().Add(testrig.Patience))
	if _, err := io.ReadAll(raw); err != nil && !strings.Contains(err.Error(), "reset") {
		t.Errorf("the silent peer was not cut: %v", err)
	}
}

func TestTLSConfigErrors(t *testing.T) {
	if _, err := api.TLSConfig("/nonexistent", "/nonexistent", slog.New(slog.DiscardHandler)); err == nil {
		t.Error("no error for files that are not there")
	}
}
