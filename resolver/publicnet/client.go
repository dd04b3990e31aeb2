package publicnet

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// ClientOptions are what a Client needs.
type ClientOptions struct {
	Guard    Guard
	Resolver *net.Resolver  // nil: the system's
	Roots    *x509.CertPool // nil: the system's
	// Idle is how many connections are kept for further requests, IdleOfOne how many of them to one host. 0: none.
	Idle, IdleOfOne int
	HeaderBytes     int64 // of an answer, at most
}

// A Client makes requests to addresses that strangers have chosen. It follows no redirect and uses no proxy: each would
// lead past the Guard. Safe for concurrent use.
type Client struct{ http http.Client }

// NewClient returns a client.
func NewClient(o ClientOptions) *Client {
	d := net.Dialer{Control: o.Guard.Control, Resolver: o.Resolver}
	return &Client{http: http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		// Proxy stays nil: one from the environment would connect to what the guard refuses.
		Transport: &http.Transport{
			DialContext: d.DialContext, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: o.Roots},
			DisableCompression: true, DisableKeepAlives: o.Idle == 0, MaxIdleConns: o.Idle, MaxIdleConnsPerHost: o.IdleOfOne,
			IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: o.HeaderBytes,
		},
	}}
}

// Close closes the connections that are kept. The client can still be used.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Do sends a request. The caller closes the body of the answer. The context of the request bounds the time, for the body
// as well.
func (c *Client) Do(req *http.Request) (*http.Response, *NoAnswer) {
	var insecure atomic.Bool // the handshake failed: the errors of crypto/tls have no type for all of it
	traced := httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		TLSHandshakeDone: func(_ tls.ConnectionState, err error) { insecure.Store(err != nil) }})
	res, err := c.http.Do(req.WithContext(traced))
	if err != nil {
		return nil, &NoAnswer{Cause: err, insecure: insecure.Load()}
	}
	return res, nil
}

// A NoAnswer says why no answer came.
type NoAnswer struct {
	Cause    error // for the log: it may have what only the inside knows
	insecure bool
}

// Timeout reports whether the time was over.
func (n *NoAnswer) Timeout() bool {
	var timeout net.Error
	return errors.Is(n.Cause, context.DeadlineExceeded) || errors.As(n.Cause, &timeout) && timeout.Timeout()
}

// closedIdle is the text of an error of net/http that has no name outside: the receiver closed the connection before the
// request was on it.
const closedIdle = "http: server closed idle connection"

// Sentence says why no answer came; limit is how long it could take. It never has the address, which may be a secret, and
// tells nothing of names and addresses that only the inside knows.
func (n *NoAnswer) Sentence(limit time.Duration) string {
	err := n.Cause
	var dns *net.DNSError
	var certificate *tls.CertificateVerificationError
	var hostname x509.HostnameError
	var op *net.OpError
	switch {
	case errors.Is(err, ErrNotAllowed), errors.As(err, &dns):
		return "the address " + CannotBeAsked
	case n.Timeout():
		return fmt.Sprintf("no answer within %s", limit)
	case errors.As(err, &hostname):
		return "the certificate is for another name"
	case errors.As(err, &certificate):
		return "the certificate is not trusted: " + certificate.Err.Error()
	case n.insecure:
		return "there was no TLS connection, of version 1.2 or later"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection was refused"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET),
		errors.Is(err, syscall.EPIPE), strings.HasSuffix(err.Error(), closedIdle):
		return "the connection ended before an answer came"
	case errors.As(err, &op) && op.Op == "dial":
		return "there was no connection"
	}
	return "there was no answer in HTTP"
}
