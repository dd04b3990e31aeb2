package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"fingerpost/resolver/catalog"
)

// connectFlags say which server is asked, and how.
type connectFlags struct {
	url, key, caCert string
	timeout          time.Duration
}

func (f *connectFlags) add(cmd *cobra.Command, keyMay string) {
	fl := cmd.Flags()
	fl.StringVar(&f.url, "url", "", "the server, such as https://config.example or http://127.0.0.1:8080")
	fl.StringVar(&f.key, "key", "", "a key that may "+keyMay+"; better given as FINGERPOST_KEY, which process lists do not show")
	fl.StringVar(&f.caCert, "ca-cert", "", "PEM file of a private CA that the server's certificate may come from, too")
	fl.DurationVar(&f.timeout, "timeout", 30*time.Second, "how long one request may take")
}

// client is the connection that the flags ask for.
func (f *connectFlags) client() (*client, error) {
	if f.key == "" {
		return nil, usage("--url needs --key (or FINGERPOST_KEY)")
	}
	if strings.ContainsAny(f.key, " \t\r\n") {
		return nil, usage("--key holds blanks or line ends: is it the key alone?")
	}
	if f.timeout <= 0 {
		return nil, usage("--timeout must be more than 0")
	}
	base, err := baseURL("--url", f.url)
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = maxParallel
	if f.caCert != "" {
		if transport.TLSClientConfig, err = trusting(f.caCert); err != nil {
			return nil, err
		}
	}
	hide := new(veil)
	hide.add(f.key)
	return &client{
		base: base, platformKey: f.key, veil: hide,
		http: &http.Client{
			Transport: transport, Timeout: f.timeout,
			// net/http would take the key along to wherever the redirect leads.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// baseURL checks a server's address and cuts off what people copy along.
func baseURL(flag, text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", usage("%s must be an address such as https://config.example", flag)
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", usage("%s must not hold a user, a query or a fragment", flag)
	}
	base := strings.TrimSuffix(text, "/")
	for _, service := range []string{"/api/platform", "/api/mail"} {
		base = strings.TrimSuffix(base, service)
	}
	return base, nil
}

func trusting(file string) (*tls.Config, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, no("--ca-cert: %s holds no certificate in PEM form", file)
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}

// interruptible returns a context that ends with Ctrl-C or SIGTERM; a second signal ends the process.
func interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// A client speaks HTTP with a service in the envelope of the source specification. It may be used by any number of
// goroutines.
type client struct {
	http        *http.Client
	base        string
	platformKey string
	mailKey     string // set: the calls carry the headers of the mail service
	veil        *veil
}

// A veil hides secrets in texts of a server, which may repeat what it was sent.
type veil struct {
	mu      sync.Mutex
	secrets []string
}

func (v *veil) add(secret string) {
	if secret == "" {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.secrets = append(v.secrets, secret)
}

func (v *veil) cover(text string) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, s := range v.secrets {
		text = strings.ReplaceAll(text, s, "(secret)")
	}
	return text
}

// serviceName is how the mail service knows who calls.
const serviceName = "fingerpost-cli"

// A refusedError is an answer that is no success.
type refusedError struct {
	method, path string
	status       int
	code         catalog.Code
	message      string
	details      []struct{ Field, Message string }
}

func (e *refusedError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: the server answers %d", e.method, e.path, e.status)
	if e.code != "" {
		fmt.Fprintf(&b, " %s", printable(string(e.code)))
	}
	if e.message != "" {
		fmt.Fprintf(&b, ": %s", printable(e.message))
	}
	for _, d := range e.details {
		fmt.Fprintf(&b, "; %s %s", printable(d.Field), printable(d.Message))
	}
	return b.String()
}

// refusedWith reports whether err is an answer with one of the statuses.
func refusedWith(err error, statuses ...int) bool {
	var e *refusedError
	if !errors.As(err, &e) {
		return false
	}
	return slices.Contains(statuses, e.status)
}

// absent reports whether err says that a service has no such call or object.
func absent(err error) bool {
	return refusedWith(err, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented)
}

// pageOf is the meta of a paginated list.
type pageOf struct{ Total, Page, Limit, TotalPages int }

const (
	maxAnswerBytes = 256 << 20 // a list that is not paginated, of very many projects
	maxAttempts    = 6         // where the server asks for patience
	maxReconnects  = 3         // where it is not to be had
	maxRetryPause  = 30 * time.Second
)

// call makes one request, reads data into into (nil: it is not read) and tells of the page where there is one. It tries
// again where the server asks for it (429, 503), and, but for POST, where the connection failed: each other call may be
// made twice. body nil: none.
func (c *client) call(ctx context.Context, method, path string, body, into any) (meta *pageOf, err error) {
	return c.callAgain(ctx, method, path, body, into, http.StatusTooManyRequests, http.StatusServiceUnavailable)
}

// callAgain is call with the statuses after which it tries again.
func (c *client) callAgain(ctx context.Context, method, path string, body, into any, again ...int) (meta *pageOf, err error) {
	var payload []byte
	if body != nil {
		if payload, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	for attempt := 1; ; attempt++ {
		meta, wait, err := c.once(ctx, method, path, payload, into)
		var refused *refusedError
		most := maxReconnects
		if errors.As(err, &refused) {
			if most = maxAttempts; !slices.Contains(again, refused.status) {
				most = 0
			}
		}
		if err == nil || wait < 0 || attempt >= most || ctx.Err() != nil {
			return meta, err
		}
		if wait == 0 {
			wait = time.Duration(100<<attempt)*time.Millisecond + rand.N(100*time.Millisecond)
		}
		timer := time.NewTimer(min(wait, maxRetryPause))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		}
	}
}

// never as a pause says that there is no use in trying again.
const never time.Duration = -1

// once makes one attempt. wait is how long to wait before the next: 0 leaves it to the caller.
func (c *client) once(ctx context.Context, method, path string, payload []byte, into any) (meta *pageOf, wait time.Duration, err error) {
	if method != http.MethodGet {
		ctx = context.WithoutCancel(ctx) // what has begun to change is not left half done; the client's time limit holds
	}
	var reader io.Reader
	if payload != nil {
		reader = bytes.NewReader(payload)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, reader)
	if err != nil {
		return nil, never, err
	}
	c.sign(req)
	if payload != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	wait = 0
	if method == http.MethodPost {
		wait = never // nobody knows whether it was done
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, wait, netError(method, path, err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxAnswerBytes+1))
	if err != nil {
		return nil, wait, netError(method, path, err)
	}
	meta, err = c.read(method, path, res, raw, into)
	return meta, retryAfter(res.Header.Get("Retry-After")), err
}

// sign puts the key in.
func (c *client) sign(req *http.Request) {
	if c.mailKey != "" {
		req.Header.Set("X-Internal-Service-Token", c.mailKey)
		req.Header.Set("X-Internal-Service-Name", serviceName)
		return
	}
	req.Header.Set("X-PLATFORM-KEY", c.platformKey)
}

// read takes the envelope apart.
func (c *client) read(method, path string, res *http.Response, raw []byte, into any) (*pageOf, error) {
	if len(raw) > maxAnswerBytes {
		return nil, fmt.Errorf("%s %s: the answer is larger than %d bytes", method, path, maxAnswerBytes)
	}
	refused := &refusedError{method: method, path: path, status: res.StatusCode}
	if res.StatusCode == http.StatusNoContent {
		return nil, nil
	}
	if res.StatusCode >= 300 && res.StatusCode < 400 {
		refused.message = "a redirect, which is not followed with a key in the request"
		if at, err := res.Location(); err == nil {
			refused.message += "; is " + at.Scheme + "://" + at.Host + " the address?"
		}
		return nil, refused
	}
	var env struct {
		Success *bool
		Data    json.RawMessage
		Meta    *pageOf
		Error   struct {
			Code    catalog.Code
			Message string
			Details []struct{ Field, Message string }
		}
	}
	err := json.Unmarshal(raw, &env)
	if res.StatusCode >= 400 || err == nil && env.Success != nil && !*env.Success {
		if err == nil {
			refused.code, refused.message, refused.details = env.Error.Code, c.veil.cover(env.Error.Message), env.Error.Details
			for i := range refused.details {
				refused.details[i].Message = c.veil.cover(refused.details[i].Message)
			}
		}
		return nil, refused
	}
	if err != nil || env.Success == nil {
		return nil, fmt.Errorf("%s %s: the answer is not the JSON envelope of this API: does the address lead to it?", method, path)
	}
	if into != nil {
		if err := json.Unmarshal(env.Data, into); err != nil {
			return nil, fmt.Errorf("%s %s: read the answer: %w", method, path, err)
		}
	}
	return env.Meta, nil
}

// netError leaves out the whole address, which net/http puts into its errors.
func netError(method, path string, err error) error {
	var ue *url.Error
	if errors.As(err, &ue) {
		err = ue.Err
	}
	return fmt.Errorf("%s %s: %w", method, path, err)
}

// retryAfter reads a number of seconds or a date; 0 where there is none.
func retryAfter(text string) time.Duration {
	if n, err := strconv.Atoi(text); err == nil && n >= 0 {
		return max(min(time.Duration(n)*time.Second, maxRetryPause), time.Millisecond)
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(time.Until(at), time.Millisecond)
	}
	return 0
}
