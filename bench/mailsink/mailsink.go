// Package mailsink is the SMTP server that the bench sends its mail to. It takes all mail and says what is wrong with it:
// each must come once, whole, and only if its sender reported it as sent.
//
// What it needs. Senders that put Mark(n) into recipient, subject and both parts of mail n, and Recital into both parts.
// It runs in the process of the bench.
//
// What it does not do. It keeps no mail, and delays or refuses none, except without a login over TLS.
package mailsink

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// A Sink is an SMTP server that accepts all mail and follows each from its sender: a mail has its own number in its
// recipient, its subject and both of its parts. Safe for concurrent use.
type Sink struct {
	Addr   string
	secure bool // it requires STARTTLS and a login

	mu      sync.Mutex // guards what follows
	open    int        // connections
	most    int        // of them at a time
	balance map[int]int
	checked int   // mails that were reported as sent, and came once
	fault   error // the first mail that differs from what was sent
}

// The login of a secure sink, and the end of every recipient's address.
const (
	User        = "bench"
	Password    = "none" // fingerpost has it in BENCH_SMTP_PASSWORD
	Domain      = "@customer.example"
	timesInMail = 4 // To, Subject, text and HTML
)

// Recital is the part of each body that is the same in all mails: lines that no transfer encoding changes.
var Recital = strings.Repeat("The goods leave our house today, and the bill comes in a letter of its own.\r\n", 24)

// Mark is what stands in mail n.
func Mark(n int) string { return fmt.Sprintf("m%09d", n) }

// New starts a sink, in clear text if config is nil. The caller closes it.
func New(config *tls.Config) (s *Sink, stop func() error, err error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, fmt.Errorf("start the sink: %w", err)
	}
	s = &Sink{Addr: ln.Addr().String(), secure: config != nil, balance: map[int]int{}}
	server := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.open++
		s.most = max(s.most, s.open)
		return &delivery{Sink: s, in: !s.secure}, nil
	}))
	server.Domain, server.TLSConfig, server.ErrorLog = "sink.example", config, log.New(io.Discard, "", 0)
	go func() { _ = server.Serve(ln) }() // until it is closed
	return s, server.Close, nil
}

// A delivery is one connection to a Sink.
type delivery struct {
	*Sink
	in   bool // logged in
	rcpt string
}

// AuthMechanisms implements smtp.AuthSession.
func (d *delivery) AuthMechanisms() []string { return []string{sasl.Plain} }

// Auth implements smtp.AuthSession.
func (d *delivery) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if d.in = user == User && password == Password; !d.in {
			return smtp.ErrAuthFailed
		}
		return nil
	}), nil
}

// Mail implements smtp.Session.
func (d *delivery) Mail(string, *smtp.MailOptions) error {
	if !d.in {
		return smtp.ErrAuthRequired
	}
	return nil
}

// Rcpt implements smtp.Session.
func (d *delivery) Rcpt(to string, _ *smtp.RcptOptions) error {
	d.rcpt = to
	return nil
}

// Data implements smtp.Session.
func (d *delivery) Data(r io.Reader) error {
	message, err := io.ReadAll(r)
	if err == nil {
		d.arrive(d.rcpt, message)
	}
	return err
}

// Reset implements smtp.Session.
func (d *delivery) Reset() {}

// Logout implements smtp.Session.
func (d *delivery) Logout() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open--
	return nil
}

// arrive notes a mail that has come.
func (s *Sink) arrive(rcpt string, message []byte) {
	local, domain, _ := strings.Cut(rcpt, "@")
	number := 0
	_, err := fmt.Sscanf(local, "m%d", &number)
	if err != nil || "@"+domain != Domain || bytes.Count(message, []byte(local)) != timesInMail ||
		!bytes.Contains(message, []byte("Subject: Order "+local)) || bytes.Count(message, []byte(Recital)) != 2 ||
		!bytes.HasSuffix(message, []byte("--\r\n")) {
		err = fmt.Errorf("the mail for %q is not the one that was sent: %s", rcpt, message)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && s.fault == nil {
		s.fault = err
	}
	s.balance[number]--
}

// Sent notes that mail n was reported as sent.
func (s *Sink) Sent(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.balance[n]++
}

// Checked returns how many mails were reported as sent, and came once.
func (s *Sink) Checked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.checked
}

// Most returns the most connections that there were at a time.
func (s *Sink) Most() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most
}

// Check compares the mails that were reported as sent since the last check with those that have come: each once and
// whole. No mail may be sent during the call.
func (s *Sink) Check() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, times := range s.balance {
		if times != 0 {
			return fmt.Errorf("mail %d was reported as sent %+d times more than it came", n, times)
		}
	}
	s.checked += len(s.balance)
	clear(s.balance)
	return s.fault
}

// NewCertificate makes a certificate for 127.0.0.1 that is its own CA. Its key is on P-256, whose handshakes are the
// cheapest: a dear handshake would make the reuse of connections look better.
func NewCertificate() (config *tls.Config, ca []byte, err error) {
	key, err1 := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	text := &x509.Certificate{SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(48 * time.Hour), IsCA: true,
		BasicConstraintsValid: true, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	der, err2 := x509.CreateCertificate(rand.Reader, text, text, &key.PublicKey, key)
	if err := errors.Join(err1, err2); err != nil {
		return nil, nil, fmt.Errorf("make a certificate: %w", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{PrivateKey: key, Certificate: [][]byte{der}}}},
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}
