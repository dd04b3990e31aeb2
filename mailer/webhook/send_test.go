package webhook_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/mailer/webhook"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/rowjson"
)

// readRequest reads what a connection asks.
func readRequest(c net.Conn) {
	if req, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
		_, _ = io.Copy(io.Discard, req.Body)
	}
}

// says answers each request with a text, and ends the connection.
func says(text string) func(net.Conn) {
	return func(c net.Conn) {
		readRequest(c)
		_, _ = fmt.Fprint(c, text)
	}
}

func selfSigned(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// TestOutcomes: what hostile receivers do decides about an attempt, and about nothing else.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.o.Timeout = 3 * time.Second
	target := newReceiver(t, nil)
	closed := rawServer(t, func(net.Conn) {})
	dead, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = dead.Close()
	old := rawServer(t, func(c net.Conn) {
		_ = tls.Server(c, &tls.Config{Certificates: []tls.Certificate{selfSigned(t)}, MaxVersion: tls.VersionTLS11}).Handshake()
	})
	self := rawServer(t, func(c net.Conn) {
		_ = tls.Server(c, &tls.Config{Certificates: []tls.Certificate{selfSigned(t)}}).Handshake()
	})
	cases := map[string]struct {
		url    string
		status int
		error  string
	}{
		"no content":   {target.URL, 204, ""},
		"accepted":     {rawServer(t, says("HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\nok")), 202, ""},
		"cut answer":   {rawServer(t, says("HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\nok")), 200, ""},
		"redirect":     {rawServer(t, says("HTTP/1.1 302 Found\r\nLocation: "+target.URL+"\r\nContent-Length: 0\r\n\r\n")), 302, "the receiver answered 302"},
		"no HTTP":      {rawServer(t, says("220 mail.example ESMTP\r\n")), 0, "there was no answer in HTTP"},
		"closes":       {closed, 0, "the connection ended before an answer came"},
		"refuses":      {"http://" + dead.Addr().String(), 0, "the connection was refused"},
		"hangs":        {rawServer(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }), 0, "no answer within 3s"},
		"long header":  {rawServer(t, says("HTTP/1.1 200 OK\r\nX: "+strings.Repeat("x", 1<<20))), 0, "there was no answer in HTTP"},
		"plain":        {strings.Replace(target.URL, "http:", "https:", 1), 0, "there was no TLS connection, of version 1.2 or later"},
		"TLS 1.1":      {strings.Replace(old, "http:", "https:", 1), 0, "there was no TLS connection, of version 1.2 or later"},
		"unknown CA":   {strings.Replace(self, "http:", "https:", 1), 0, "the certificate is not trusted: x509: certificate signed by unknown authority"},
		"unknown name": {"http://no-such-host.invalid/", 0, "the address cannot be asked"},
		"half a status line": {rawServer(t, func(c net.Conn) {
			readRequest(c)
			_, _ = fmt.Fprint(c, "HTTP/1.1 2")
			_, _ = io.Copy(io.Discard, c)
		}), 0, "no answer within 3s"},
		"half an answer": {rawServer(t, func(c net.Conn) {
			readRequest(c)
			_, _ = fmt.Fprint(c, "HTTP/1.1 500 No\r\nContent-Length: 10\r\n\r\nwhy")
			_, _ = io.Copy(io.Discard, c)
		}), 500, "the receiver answered 500"},
		"resets": {rawServer(t, func(c net.Conn) {
			readRequest(c)
			_ = c.(*net.TCPConn).SetLinger(0)
		}), 0, "the connection ended before an answer came"},
		"1 GiB": {rawServer(t, func(c net.Conn) {
			readRequest(c)
			_, _ = fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n")
			part := make([]byte, 1<<20)
			sent := 0
			for range 1024 {
				n, err := c.Write(part)
				if sent += n; err != nil {
					break
				}
			}
			if sent > 64<<20 {
				t.Errorf("it has read %d bytes", sent)
			}
		}), 200, ""},
	}
	var hooks []webhook.Hook
	for name, c := range cases {
		h := hook(name, c.url)
		h.Active = false
		hooks = append(hooks, h)
	}
	r.start(hooks...)
	before := len(target.all())
	var tests sync.WaitGroup
	for name, c := range cases {
		tests.Go(func() {
			out, err := r.Test(t.Context(), name)
			if err != nil || out.Status != c.status || out.Error != c.error || out.Delivered != (c.status/100 == 2) ||
				len(out.Answer) > 1024 {
				t.Errorf("%s: %+v, %v", name, out, err)
			}
		})
	}
	tests.Wait()
	if got := target.all()[before:]; len(got) != 1 || got[0].event != "test" || !strings.Contains(got[0].id, ".t") ||
		verify(got[0], secret, r.clock.Now()) != nil {
		t.Errorf("%d requests, where redirects are not followed: %+v", len(got), got)
	}
	if _, err := r.Test(t.Context(), "unknown"); !catalog.IsNotFound(err) {
		t.Error(err)
	}
}

// TestGuard: no address of the inside is asked, however it is written, and the answer does not tell which it is.
func TestGuard(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.o.Allow = []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}
	target := newReceiver(t, nil)
	_, port, _ := net.SplitHostPort(target.Listener.Addr().String())
	var hooks []webhook.Hook
	hosts := []string{"localhost", "127.1", "2130706433", "0x7f000001"} // and how else one may write them
	for _, address := range testrig.InsideAddresses() {
		hosts = append(hosts, strings.TrimSuffix(net.JoinHostPort(strings.Replace(address, "%", "%25", 1), ""), ":"))
	}
	for i, host := range hosts {
		h := hook(fmt.Sprint("h", i), "http://"+host+":"+port+"/")
		h.Active = false
		hooks = append(hooks, h)
	}
	r.start(hooks...)
	for _, h := range hooks {
		if out, err := r.Test(t.Context(), h.Name); err != nil || out.Status != 0 || out.Error != "the address cannot be asked" {
			t.Errorf("%s: %+v, %v", h.URL, out, err)
		}
	}
	if n := len(target.all()); n != 0 {
		t.Errorf("%d requests", n)
	}
}

// TestChangesAreTheTrails: changes have the form in which GET /api/platform/audit has them. A body that is too long loses
// changes, and says so.
func TestChangesAreTheTrails(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	got := newReceiver(t, nil)
	r.start(hook("crm", got.URL))
	e := catalog.AuditEntry{Action: "project.update", ProjectID: 7, Slug: "acme", Object: "acme", Generation: 9, Actor: "Ann <a@b.example>", Key: "ci",
		Door: catalog.DoorAPI, Time: time.Date(2026, 1, 31, 12, 0, 0, 1000, time.UTC), Commit: "abc", Changes: []catalog.FieldChange{
			{Field: "name", Before: nil, After: "<a> & \"b\""}, {Field: "password", Secret: true}, {Field: "n", Before: int64(1), After: int64(2)},
			{Field: "active", Before: false, After: true}, {Field: "list", Before: []string{}, After: []string{"a", "b"}},
			{Field: "labels", Before: map[string]string{}, After: map[string]string{"b": "1", "a": "2"}}}}
	e.ID = r.append(e)
	r.idle("crm")
	long := catalog.AuditEntry{Action: "template.update", Object: "LONG", Changes: []catalog.FieldChange{{Field: "subject", After: "s"},
		{Field: "body", Before: strings.Repeat("x", 60<<10), After: strings.Repeat("y", 60<<10)}, {Field: "name", After: "n"}}}
	r.append(long)
	r.idle("crm")
	var want, is struct {
		ID      int64
		Changes json.RawMessage
		Data    struct{ Changes json.RawMessage }
	}
	all := got.all()
	if err := json.Unmarshal(rowjson.AppendAudit(nil, &e), &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(all[0].body, &is); err != nil || string(is.Data.Changes) != string(want.Changes) {
		t.Errorf("%s\nwant %s, %v", is.Data.Changes, want.Changes, err)
	}
	const head = `{"type":"project.update","timestamp":"2026-01-31T12:00:00.000001Z","data":{"entry":1,"projectId":7,"slug":"acme","object":"acme","changes":[`
	const tail = `],"actor":"Ann <a@b.example>","door":"api","commit":"abc","generation":9}}`
	if b := string(all[0].body); !strings.HasPrefix(b, head) || !strings.HasSuffix(b, tail) {
		t.Errorf("%s", b)
	}
	b := all[1].body
	if len(b) > 64<<10 || all[1].data["truncated"] != true || len(all[1].data["changes"].([]any)) != 1 || all[1].data["projectId"] != nil {
		t.Errorf("%d bytes: %.300s", len(b), b)
	}
}
