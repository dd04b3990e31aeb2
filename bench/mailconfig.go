package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"fingerpost/resolver/catalog"
)

// A mailProject is a project that sends through an SMTP server. Its domain is the slug below hostSuffix.
type mailProject struct {
	slug, server string // server is an address
	secure       bool
}

const caFile = "ca.pem" // the CA of the secure sink, next to the projects

// writeMailConfig writes a config folder and returns the text of a key that may send. The folder is written again in
// each run, because ports differ. Ids follow from the slugs, so the store of an earlier run knows the projects.
func writeMailConfig(dir string, ca []byte, projects []mailProject) (key string, err error) {
	key, id := catalog.NewKeyText()
	files := map[string][]byte{keysFile: keyFile(id, key, "resolve", "read", "mail"), caFile: ca}
	for _, p := range projects {
		host, port, err := net.SplitHostPort(p.server)
		if err != nil {
			return "", err
		}
		text := fmt.Sprintf("project %q {\n  name   = %q\n  status = \"ACTIVE\"\n  domain %q {}\n"+
			"  service_settings { mail_enabled = true }\n  smtp_config {\n    host       = %q\n    port       = %s\n"+
			"    from_email = %q\n    from_name  = \"Bench\"\n", p.slug, p.slug, p.slug+hostSuffix, host, port, bareFrom)
		if p.secure {
			text += fmt.Sprintf("    tls_enabled = true\n    ca_file     = %q\n    username    = %q\n"+
				"    password    = env(\"BENCH_SMTP_PASSWORD\")\n", caFile, sinkUser)
		}
		files[p.slug+".hcl"] = []byte(text + "  }\n}\n")
	}
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return "", err
		}
	}
	return key, nil
}

// newCertificate makes a CA and a certificate for 127.0.0.1, both with P-256 keys, whose handshakes are the cheapest,
// so that no figure gains from an expensive handshake.
func newCertificate() (config *tls.Config, ca []byte, err error) {
	from, to := time.Now().Add(-time.Hour), time.Now().Add(48*time.Hour)
	authority := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "CA of bench"},
		NotBefore: from, NotAfter: to, IsCA: true, BasicConstraintsValid: true}
	server := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "127.0.0.1"},
		NotBefore: from, NotAfter: to, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	caKey, err1 := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	key, err2 := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err := errors.Join(err1, err2); err != nil {
		return nil, nil, fmt.Errorf("make a certificate: %w", err)
	}
	caDER, err1 := x509.CreateCertificate(rand.Reader, authority, authority, &caKey.PublicKey, caKey)
	der, err2 := x509.CreateCertificate(rand.Reader, server, authority, &key.PublicKey, caKey)
	if err := errors.Join(err1, err2); err != nil {
		return nil, nil, fmt.Errorf("make a certificate: %w", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{PrivateKey: key, Certificate: [][]byte{der}}}},
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER}), nil
}
