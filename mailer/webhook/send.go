package webhook

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
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"fingerpost/resolver/publicnet"
)

// onWire is how many requests a webhook has on the wire at most, and sharedPlaces how many all have, next to one of
// each.
const (
	onWire       = 4
	sharedPlaces = 64
)

// Bounds of one attempt.
const (
	attemptTime = 15 * time.Second
	maxRead     = 64 << 10 // bytes of an answer
	maxKept     = 1 << 10  // of them
	longestWait = time.Hour
)

// An Outcome is what has become of an attempt.
type Outcome struct {
	Delivered bool
	Status    int // of HTTP; 0: none came
	Took      time.Duration
	Answer    string // its beginning
	Error     string // "" if it was delivered

	timedOut   bool
	retryAfter time.Duration // 0: the receiver names none
	cutOff     bool          // the engine ends: it was no attempt
}

// A sender makes requests.
type sender struct {
	client  *http.Client
	agent   string
	timeout time.Duration
}

func newSender(o *Options) *sender {
	d := net.Dialer{Control: publicnet.New(o.Allow).Control, Resolver: o.Resolver}
	return &sender{
		agent:   "fingerpost/" + o.Version,
		timeout: o.Timeout,
		client: &http.Client{
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			// Proxy stays nil: one from the environment would connect to what the guard refuses.
			Transport: &http.Transport{
				DialContext: d.DialContext, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
				DisableCompression: true, MaxIdleConns: sharedPlaces, MaxIdleConnsPerHost: onWire,
				IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: maxRead,
			},
		},
	}
}

func (s *sender) close() { s.client.CloseIdleConnections() }

// send makes one attempt. The status line decides; what follows it may take what is left of the time.
func (s *sender) send(ctx context.Context, h *Hook, id string, body []byte, now time.Time) (out Outcome) {
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	var insecure atomic.Bool // the handshake failed: the errors of crypto/tls have no type for all of it
	traced := httptrace.WithClientTrace(limited, &httptrace.ClientTrace{
		TLSHandshakeDone: func(_ tls.ConnectionState, err error) { insecure.Store(err != nil) }})
	res, err := s.post(traced, h, id, body, now)
	if err == nil {
		out = s.read(res, now)
	} else {
		out.Error = sentence(err, insecure.Load(), s.timeout)
		out.timedOut = limited.Err() != nil || isTimeout(err)
		out.cutOff = ctx.Err() != nil
	}
	out.Took = time.Since(began)
	return out
}

func (s *sender) post(ctx context.Context, h *Hook, id string, body []byte, now time.Time) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL, strings.NewReader(string(body)))
	if err != nil {
		return nil, err
	}
	req.Header = s.header(id)
	req.Header["Webhook-Timestamp"] = []string{strconv.FormatInt(now.Unix(), 10)}
	req.Header["Webhook-Signature"] = []string{signature(h.Secrets, id, now, body)}
	return s.client.Do(req)
}

// header returns the headers that are the same at each attempt of a delivery.
func (s *sender) header(id string) http.Header {
	return http.Header{"Content-Type": {"application/json"}, "User-Agent": {s.agent}, "Webhook-Id": {id}}
}

// read reads an answer whose status line has come.
func (s *sender) read(res *http.Response, now time.Time) (out Outcome) {
	defer res.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(res.Body, maxKept))              // an answer that breaks off is one
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, maxRead-maxKept)) // so that the connection can be used again
	out.Status, out.Answer = res.StatusCode, strings.ToValidUTF8(string(text), "\uFFFD")
	out.Delivered = res.StatusCode/100 == 2
	if !out.Delivered {
		out.Error = "the receiver answered " + strconv.Itoa(res.StatusCode)
	}
	if res.StatusCode == http.StatusTooManyRequests || res.StatusCode == http.StatusServiceUnavailable {
		out.retryAfter = retryAfter(res.Header.Get("Retry-After"), now)
	}
	return out
}

// retryAfter returns how long a receiver wants to be left alone, an hour at most; 0 if it does not say so.
func retryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(strings.TrimSpace(value), 10, 31); err == nil {
		return min(max(time.Duration(seconds)*time.Second, time.Second), longestWait)
	}
	if at, err := http.ParseTime(value); err == nil {
		return min(max(at.Sub(now), time.Second), longestWait)
	}
	return 0
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}

// closedIdle is the text of an error of net/http that has no name outside: the receiver closed the connection before the
// request was on it.
const closedIdle = "http: server closed idle connection"

// sentence says why no answer came. It never has the address, which may be a secret, and tells nothing of names and
// addresses that only the inside knows.
func sentence(err error, insecure bool, limit time.Duration) string {
	var dns *net.DNSError
	var certificate *tls.CertificateVerificationError
	var hostname x509.HostnameError
	var op *net.OpError
	switch {
	case errors.Is(err, publicnet.ErrNotAllowed), errors.As(err, &dns):
		return "the address " + publicnet.CannotBeAsked
	case isTimeout(err):
		return fmt.Sprintf("no answer within %s", limit)
	case errors.As(err, &hostname):
		return "the certificate is for another name"
	case errors.As(err, &certificate):
		return "the certificate is not trusted: " + certificate.Err.Error()
	case insecure:
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
