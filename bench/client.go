package main

import (
	"fmt"
	"time"

	"github.com/valyala/fasthttp"
)

// A client makes one call at a time over one connection. Not safe for concurrent use.
type client struct {
	conn   fasthttp.HostClient
	header [][2]string
	req    fasthttp.Request
	res    fasthttp.Response
}

const clientTimeout = 10 * time.Second

// newClient calls the API with a key that may resolve and write.
func newClient(addr, key string) *client {
	return &client{conn: fasthttp.HostClient{Addr: addr, MaxConns: 1}, header: [][2]string{{"X-PLATFORM-KEY", key}}}
}

// newMailClient calls the mail API.
func newMailClient(addr, key string) *client {
	c := newClient(addr, key)
	c.header = [][2]string{{"X-Internal-Service-Token", key}, {"X-Internal-Service-Name", "bench"}}
	return c
}

func (c *client) close() { c.conn.CloseIdleConnections() }

// resolve asks for a domain.
func (c *client) resolve(domain []byte) (answer, error) {
	return c.call("GET", resolvePath+string(domain), nil)
}

// call makes a request; body is JSON, or nil. The answer's body is valid until the next call.
func (c *client) call(method, path string, body []byte) (answer, error) {
	c.req.Reset()
	c.req.Header.SetMethod(method)
	c.req.SetRequestURI("http://" + c.conn.Addr + path)
	for _, h := range c.header {
		c.req.Header.Set(h[0], h[1])
	}
	if body != nil {
		c.req.Header.SetContentType("application/json")
		c.req.SetBodyRaw(body)
	}
	if err := c.conn.DoTimeout(&c.req, &c.res, clientTimeout); err != nil {
		return answer{}, fmt.Errorf("%s %s: %w", method, path, err)
	}
	return answer{status: c.res.StatusCode(), body: c.res.Body()}, nil
}
