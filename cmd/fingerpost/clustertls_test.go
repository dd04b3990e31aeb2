package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/cluster"
)

// A testCA issues certificates into files of a folder.
type testCA struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newCA(t *testing.T, name string) *testCA {
	t.Helper()
	ca := &testCA{t: t, dir: t.TempDir()}
	ca.cert, ca.key = ca.sign(&x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotAfter: time.Now().Add(time.Hour)}, "ca")
	return ca
}

// issue writes a certificate for 127.0.0.1 that ends at a time, and returns the names of the files with it and its key.
func (ca *testCA) issue(name string, end time.Time) (cert, key string) {
	ca.t.Helper()
	ca.sign(&x509.Certificate{Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: end,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}, name)
	return filepath.Join(ca.dir, name+".pem"), filepath.Join(ca.dir, name+".key")
}

func (ca *testCA) file() string { return filepath.Join(ca.dir, "ca.pem") }

// sign signs a certificate, by itself for the first one, and writes it and its key.
func (ca *testCA) sign(c *x509.Certificate, name string) (*x509.Certificate, *ecdsa.PrivateKey) {
	ca.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(ca.t, err)
	c.SerialNumber, c.NotBefore = big.NewInt(time.Now().UnixNano()), time.Now().Add(-24*time.Hour)
	parent, signer := ca.cert, ca.key
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	must(ca.t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	must(ca.t, err)
	put := func(ending, kind string, b []byte) {
		must(ca.t, os.WriteFile(filepath.Join(ca.dir, name+ending), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}), 0o600))
	}
	put(".pem", "CERTIFICATE", der)
	put(".key", "PRIVATE KEY", private)
	signed, err := x509.ParseCertificate(der)
	must(ca.t, err)
	return signed, key
}

// TestClusterTLS: edges trust the authority's certificate, and the authority theirs where it asks for one. Whatever is
// wrong is told, and an edge goes on with what it has.
func TestClusterTLS(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	ca, other := newCA(t, "ours"), newCA(t, "another")
	hour := time.Now().Add(time.Hour)
	cert, key := ca.issue("node", hour)
	edgeCert, edgeKey := ca.issue("fra1", hour)
	expiredCert, expiredKey := ca.issue("expired", time.Now().Add(-time.Minute))
	foreignCert, foreignKey := other.issue("fra1", hour)

	c := newCluster(t, "fra1")
	c.halt()
	c.flags = append(c.flags, "--tls-cert", cert, "--tls-key", key, "--cluster-ca", ca.file())
	c.begin()
	edge := func(dir, trusts, cert, key string) *rig {
		e := c.idleEdge("fra1", dir)
		e.flags = append(e.flags, "--cluster-ca", trusts)
		if cert != "" {
			e.flags = append(e.flags, "--tls-cert", cert, "--tls-key", key)
		}
		return e
	}
	dir := t.TempDir()
	fra := edge(dir, ca.file(), edgeCert, edgeKey)
	fra.start()
	fra.untilStatus("the edge follows", func(s cluster.Status) bool { return s.Connected && s.Whole })
	fra.halt()
	const refused = "refuses the certificate of this node, or wants one (--tls-cert)"
	for _, bad := range []struct {
		what string
		edge *rig
		says string
	}{
		{"it trusts another CA", edge(dir, other.file(), edgeCert, edgeKey), "signed by unknown authority"},
		{"it has no certificate", edge(dir, ca.file(), "", ""), refused},
		{"its certificate is of another CA", edge(dir, ca.file(), foreignCert, foreignKey), refused},
		{"its certificate has expired", edge(dir, ca.file(), expiredCert, expiredKey), refused},
	} {
		bad.edge.start() // from its own store
		bad.edge.untilStatus("the edge says why: "+bad.what, func(s cluster.Status) bool {
			return !s.Connected && strings.Contains(s.Problem, bad.says)
		})
		got, err := bad.edge.client.Get(bad.edge.ops + "/readyz")
		if err != nil || got.StatusCode != http.StatusOK {
			t.Errorf("%s: it is not ready: %v, %v", bad.what, got, err)
		}
		if err == nil {
			got.Body.Close()
		}
		bad.edge.halt()
	}
}
