// Package wire is the HTTP client of the benchmarks: one connection, one call at a time, one attempt, so that what is
// measured is the server and not a pool or a retry. It also reads from an answer which project and which revision it is
// about, without decoding it.
package wire

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"
)

// A Client makes one call at a time over one connection, which opens with the first call. A call is made once: a lost
// answer is an error. Not safe for concurrent use.
type Client struct {
	host *fasthttp.HostClient
	Req  fasthttp.Request
	res  fasthttp.Response
}

const (
	clientTimeout = 10 * time.Second
	clientIdle    = 2 * time.Second // after which a connection is closed, before the server does it
)

// NewClient calls a server, with header fields as name and value.
func NewClient(addr string, fields ...string) *Client {
	c := &Client{host: &fasthttp.HostClient{
		Addr: addr, MaxConns: 1, MaxIdemponentCallAttempts: 1, MaxIdleConnDuration: clientIdle,
		ReadTimeout: clientTimeout, WriteTimeout: clientTimeout,
		NoDefaultUserAgentHeader: true, DisableHeaderNamesNormalizing: true, DisablePathNormalizing: true,
	}}
	c.Req.Header.DisableNormalizing()
	c.Req.Header.SetHost(addr)
	for i := 0; i < len(fields); i += 2 {
		c.Req.Header.Set(fields[i], fields[i+1])
	}
	return c
}

// KeyField is the header with the key.
const KeyField = "X-PLATFORM-KEY"

// Close closes the connection; another call opens it again.
func (c *Client) Close() { c.host.CloseIdleConnections() }

// ResolvePath is the path of a resolve, which a domain completes.
const ResolvePath = "/api/platform/projects/resolve?domain="

// Resolve asks for a domain.
func (c *Client) Resolve(domain []byte) (Answer, error) {
	return c.Call("GET", ResolvePath+string(domain), nil)
}

// Call makes a request; body is JSON, or nil.
func (c *Client) Call(method, path string, body []byte) (Answer, error) {
	c.Req.Header.SetMethod(method)
	c.Req.SetRequestURI(path)
	c.Req.SetBodyRaw(body)
	if body != nil {
		c.Req.Header.SetContentType("application/json")
	}
	return c.Exchange()
}

// Must is Call, for what has to be answered 200.
func (c *Client) Must(method, path string, body []byte) (Answer, error) {
	a, err := c.Call(method, path, body)
	if err == nil && a.Status != 200 {
		err = fmt.Errorf("%s %s: status %d: %s", method, path, a.Status, a.Body)
	}
	return a, err
}

// Exchange sends c.Req. The answer is valid until the next call.
func (c *Client) Exchange() (Answer, error) {
	if err := c.host.Do(&c.Req, &c.res); err != nil {
		return Answer{}, fmt.Errorf("call %s: %w", c.host.Addr, err)
	}
	return Answer{Status: c.res.StatusCode(), Head: &c.res.Header, Body: c.res.Body()}, nil
}

// An Answer is one HTTP response. Head and Body are valid until the next call.
type Answer struct {
	Status int
	Head   *fasthttp.ResponseHeader
	Body   []byte
}

var (
	slugField = []byte(`"slug":"`)
	smsOn     = []byte(`"smsEnabled":true`)
	smsOff    = []byte(`"smsEnabled":false`)
)

// RevisionWord is what stands in a project's description before its revision.
var RevisionWord = []byte(", revision ")

// HasSlug reports whether body is about the project with the slug.
func HasSlug(body []byte, slug string) bool {
	at := bytes.Index(body, slugField)
	if at < 0 {
		return false
	}
	at += len(slugField)
	return len(body) > at+len(slug) && string(body[at:at+len(slug)]) == slug && body[at+len(slug)] == '"'
}

// RevisionOf returns a project's revision from a body. ok is false if it is missing or if its two places disagree.
func RevisionOf(body []byte) (revision int, ok bool) {
	_, rest, _ := bytes.Cut(body, RevisionWord)
	revision, err := strconv.Atoi(string(rest[:min(6, len(rest))]))
	sign := smsOff
	if revision%2 == 1 {
		sign = smsOn
	}
	return revision, err == nil && bytes.Contains(body, sign)
}
