package main

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"
)

// A client makes one call at a time over one connection, which opens with the first call. A call is made once: a lost
// answer is an error. Not safe for concurrent use.
type client struct {
	host *fasthttp.HostClient
	req  fasthttp.Request
	res  fasthttp.Response
}

const (
	clientTimeout = 10 * time.Second
	clientIdle    = 2 * time.Second // after which a connection is closed, before the server does it
)

// newClient calls a server, with header fields as name and value.
func newClient(addr string, fields ...string) *client {
	c := &client{host: &fasthttp.HostClient{
		Addr: addr, MaxConns: 1, MaxIdemponentCallAttempts: 1, MaxIdleConnDuration: clientIdle,
		ReadTimeout: clientTimeout, WriteTimeout: clientTimeout,
		NoDefaultUserAgentHeader: true, DisableHeaderNamesNormalizing: true, DisablePathNormalizing: true,
	}}
	c.req.Header.DisableNormalizing()
	c.req.Header.SetHost(addr)
	for i := 0; i < len(fields); i += 2 {
		c.req.Header.Set(fields[i], fields[i+1])
	}
	return c
}

const keyField = "X-PLATFORM-KEY"

// close closes the connection; another call opens it again.
func (c *client) close() { c.host.CloseIdleConnections() }

const resolvePath = "/api/platform/projects/resolve?domain="

// resolve asks for a domain.
func (c *client) resolve(domain []byte) (answer, error) {
	return c.call("GET", resolvePath+string(domain), nil)
}

// call makes a request; body is JSON, or nil.
func (c *client) call(method, path string, body []byte) (answer, error) {
	c.req.Header.SetMethod(method)
	c.req.SetRequestURI(path)
	c.req.SetBodyRaw(body)
	if body != nil {
		c.req.Header.SetContentType("application/json")
	}
	return c.exchange()
}

// must is call, for what has to be answered 200.
func (c *client) must(method, path string, body []byte) (answer, error) {
	a, err := c.call(method, path, body)
	if err == nil && a.status != 200 {
		err = fmt.Errorf("%s %s: status %d: %s", method, path, a.status, a.body)
	}
	return a, err
}

// exchange sends c.req. The answer is valid until the next call.
func (c *client) exchange() (answer, error) {
	if err := c.host.Do(&c.req, &c.res); err != nil {
		return answer{}, fmt.Errorf("call %s: %w", c.host.Addr, err)
	}
	return answer{status: c.res.StatusCode(), head: &c.res.Header, body: c.res.Body()}, nil
}

// An answer is one HTTP response.
type answer struct {
	status int
	head   *fasthttp.ResponseHeader
	body   []byte
}

var (
	slugField    = []byte(`"slug":"`)
	revisionWord = []byte(", revision ")
	smsOn        = []byte(`"smsEnabled":true`)
	smsOff       = []byte(`"smsEnabled":false`)
)

// hasSlug reports whether body is about the project with the slug.
func hasSlug(body []byte, slug string) bool {
	at := bytes.Index(body, slugField)
	if at < 0 {
		return false
	}
	at += len(slugField)
	return len(body) > at+len(slug) && string(body[at:at+len(slug)]) == slug && body[at+len(slug)] == '"'
}

// revisionOf returns a project's revision from a body. ok is false if it is missing or if its two places disagree, see
// projectFile.
func revisionOf(body []byte) (revision int, ok bool) {
	_, rest, _ := bytes.Cut(body, revisionWord)
	revision, err := strconv.Atoi(string(rest[:min(6, len(rest))]))
	sign := smsOff
	if revision%2 == 1 {
		sign = smsOn
	}
	return revision, err == nil && bytes.Contains(body, sign)
}
