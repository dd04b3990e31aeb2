package main

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
)

// A client asks one question at a time over one connection. Not safe for concurrent use.
type client struct {
	conn net.Conn
	tail string
	out  []byte
	in   []byte
}

const clientTimeout = 10 * time.Second

func dial(addr, key string) (*client, error) {
	conn, err := net.DialTimeout("tcp", addr, clientTimeout)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", addr, err)
	}
	return &client{conn: conn, tail: requestTail(addr, key), in: make([]byte, maxAnswer)}, nil
}

func (c *client) close() { c.conn.Close() }

// resolve asks for a domain. The answer's body is valid until the next call.
func (c *client) resolve(domain []byte) (answer, error) {
	c.out = append(c.out[:0], requestHead...)
	c.out = append(c.out, domain...)
	c.out = append(c.out, c.tail...)
	return c.exchange()
}

// put sends a JSON body. The answer's body is valid until the next call.
func (c *client) put(path string, body []byte) (answer, error) { return c.send("PUT ", path, body) }

// get requests a path. The answer's body is valid until the next call.
func (c *client) get(path string) (answer, error) {
	c.out = append(append(append(c.out[:0], "GET "...), path...), c.tail...)
	return c.exchange()
}

// send is put with another method, given with a trailing space.
func (c *client) send(method, path string, body []byte) (answer, error) {
	c.out = append(append(c.out[:0], method...), path...)
	c.out = append(c.out, strings.TrimSuffix(c.tail, "\r\n")...)
	c.out = fmt.Appendf(c.out, "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n", len(body))
	c.out = append(c.out, body...)
	return c.exchange()
}

// exchange sends c.out and waits for the answer.
func (c *client) exchange() (answer, error) {
	if err := c.conn.SetDeadline(time.Now().Add(clientTimeout)); err != nil {
		return answer{}, err
	}
	if _, err := c.conn.Write(c.out); err != nil {
		return answer{}, fmt.Errorf("send a request: %w", err)
	}
	for n := 0; ; {
		m, err := c.conn.Read(c.in[n:])
		if err != nil {
			return answer{}, fmt.Errorf("wait for an answer: %w", err)
		}
		n += m
		a, whole, err := parseAnswer(c.in[:n])
		if err != nil || whole {
			return a, err
		}
		if n == len(c.in) {
			return answer{}, errors.New("wait for an answer: it is too long")
		}
	}
}
