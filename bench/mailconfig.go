package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"fingerpost/resolver/catalog"
)

// A mailConfig is a config folder with a few projects that send. It is written again in each run, because ports differ.
// Ids follow from the slugs, so the store of an earlier run knows the projects.
type mailConfig struct {
	dir string
	key string // may resolve, read and send
	ca  string // file with the CA of the secure sink
}

const caFile = "ca.pem"

// newMailConfig writes a folder without projects.
func newMailConfig(dir string, ca []byte) (*mailConfig, error) {
	c := &mailConfig{dir: dir, ca: filepath.Join(dir, caFile)}
	var id string
	c.key, id = catalog.NewKeyText()
	err := os.RemoveAll(dir)
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, keysFile), fmt.Appendf(nil,
			"key \"bench\" {\n  id    = %q\n  hash  = %q\n  allow = [\"resolve\", \"read\", \"mail\"]\n}\n", id, catalog.HashKeyText(c.key)), 0o644)
	}
	if err == nil {
		err = os.WriteFile(c.ca, ca, 0o644)
	}
	if err != nil {
		return nil, fmt.Errorf("write the config: %w", err)
	}
	return c, nil
}

// add writes a project whose SMTP server has the given address. Its domain is the slug below hostSuffix.
func (c *mailConfig) add(slug, server string, secure bool) error {
	host, port, err := net.SplitHostPort(server)
	if err != nil {
		return fmt.Errorf("write the config: %w", err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "project %q {\n  name   = %q\n  status = \"ACTIVE\"\n  domain %q {}\n", slug, slug, slug+hostSuffix)
	fmt.Fprintf(&b, "  service_settings { mail_enabled = true }\n  smtp_config {\n    host       = %q\n    port       = %s\n", host, port)
	fmt.Fprintf(&b, "    from_email = %q\n    from_name  = \"Bench\"\n", bareFrom)
	if secure {
		fmt.Fprintf(&b, "    tls_enabled = true\n    ca_file     = %q\n    username    = %q\n    password    = env(\"BENCH_SMTP_PASSWORD\")\n", caFile, sinkUser)
	}
	b.WriteString("  }\n}\n")
	if err := os.WriteFile(filepath.Join(c.dir, slug+".hcl"), []byte(b.String()), 0o644); err != nil {
		return fmt.Errorf("write the config: %w", err)
	}
	return nil
}

// newCertificate makes a CA and a certificate for 127.0.0.1, both with P-256 keys, whose handshakes are the cheapest,
// so that no figure gains from an expensive handshake.
func newCertificate() (config *tls.Config, ca []byte, err error) {
	authority := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "CA of bench"}, IsCA: true,
		BasicConstraintsValid: true, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(48 * time.Hour)}
	server := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "127.0.0.1"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, NotBefore: authority.NotBefore, NotAfter: authority.NotAfter}
	fail := func(err error) (*tls.Config, []byte, error) {
		return nil, nil, fmt.Errorf("make a certificate: %w", err)
	}
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fail(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fail(err)
	}
	caDER, err := x509.CreateCertificate(rand.Reader, authority, authority, &caKey.PublicKey, caKey)
	if err != nil {
		return fail(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, server, authority, &key.PublicKey, caKey)
	if err != nil {
		return fail(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{PrivateKey: key, Certificate: [][]byte{der}}}},
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER}), nil
}
