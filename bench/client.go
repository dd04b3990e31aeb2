package main

import (
	"errors"
	"fmt"
	"net"
	"time"
)

// A client makes one call at a time over one connection, which opens with the first call. It shares the machine with
// the server and so does little. Not safe for concurrent use.
type client struct {
	addr, header string
	conn         net.Conn  // nil while closed
	deadline     time.Time // of the connection
	out, in      []byte
}

const (
	clientTimeout = 10 * time.Second
	maxAnswer     = 32 << 10
)

// newClient calls the API with a key that may resolve and write.
func newClient(addr, key string) *client {
	return &client{addr: addr, header: "X-PLATFORM-KEY: " + key + "\r\n"}
}

// newMailClient calls the mail API.
func newMailClient(addr, key string) *client {
	return &client{addr: addr, header: "X-Internal-Service-Token: " + key + "\r\nX-Internal-Service-Name: bench\r\n"}
}

// close closes the connection; another call opens it again.
func (c *client) close() {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}

// connect opens the connection unless it is open.
func (c *client) connect() (err error) {
	if c.conn != nil {
		return nil
	}
	if c.conn, err = net.DialTimeout("tcp", c.addr, clientTimeout); err != nil {
		return fmt.Errorf("connect to %s: %w", c.addr, err)
	}
	c.deadline = time.Time{}
	if c.in == nil {
		c.in = make([]byte, maxAnswer)
	}
	return nil
}

const resolvePath = "/api/platform/projects/resolve?domain="

// resolve asks for a domain.
func (c *client) resolve(domain []byte) (answer, error) {
	return c.call("GET", resolvePath+string(domain), nil)
}

// call makes a request; body is JSON, or nil. The answer's body is valid until the next call.
func (c *client) call(method, path string, body []byte) (answer, error) {
	c.out = fmt.Appendf(c.out[:0], "%s %s HTTP/1.1\r\nHost: %s\r\n%s", method, path, c.addr, c.header)
	if body != nil {
		c.out = fmt.Appendf(c.out, "Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	c.out = append(append(c.out, "\r\n"...), body...)
	return c.exchange(c.out)
}

// must is call, for what has to be answered 200.
func (c *client) must(method, path string, body []byte) (answer, error) {
	a, err := c.call(method, path, body)
	if err == nil && a.status != 200 {
		err = fmt.Errorf("%s %s: status %d: %s", method, path, a.status, a.body)
	}
	return a, err
}

// exchange sends a whole request. The answer is valid until the next call.
func (c *client) exchange(request []byte) (a answer, err error) {
	if err := c.connect(); err != nil {
		return a, err
	}
	// A deadline costs two timers, so it is set once in half of its time.
	if now := time.Now(); c.deadline.Sub(now) < clientTimeout/2 {
		c.deadline = now.Add(clientTimeout)
		if err := c.conn.SetDeadline(c.deadline); err != nil {
			return a, err
		}
	}
	if _, err := c.conn.Write(request); err != nil {
		return a, fmt.Errorf("send a request: %w", err)
	}
	for n := 0; ; {
		m, err := c.conn.Read(c.in[n:])
		if err != nil {
			return a, fmt.Errorf("wait for an answer: %w", err)
		}
		n += m
		a, whole, err := parseAnswer(c.in[:n])
		switch {
		case err != nil || whole && a.length == n:
			return a, err
		case whole:
			return a, errors.New("wait for an answer: there is more than one")
		case n == len(c.in):
			return a, errors.New("wait for an answer: it is too long")
		}
	}
}
