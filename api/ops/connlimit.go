package ops

import (
	"container/list"
	"net"
	"net/http"
	"sync"
)

// maxConns bounds the connections of the ops listener: each costs about 20 kB, and nobody needs a hundred of them.
const maxConns = 256

// A connLimit keeps the listener at maxConns. A connection beyond it closes the one that has been idle longest, so
// probes and operators are never locked out; if all others serve a request, the new one is closed.
type connLimit struct {
	mu    sync.Mutex
	idle  list.List                  // of net.Conn: without a request, the one that has been idle longest first
	conns map[net.Conn]*list.Element // all open ones; nil: it serves a request, or is being closed
}

func newConnLimit() *connLimit { return &connLimit{conns: map[net.Conn]*list.Element{}} }

// track is the server's ConnState.
func (c *connLimit) track(conn net.Conn, state http.ConnState) {
	var out net.Conn
	c.mu.Lock()
	if at := c.conns[conn]; at != nil {
		c.idle.Remove(at)
	}
	switch state {
	case http.StateNew, http.StateIdle:
		c.conns[conn] = c.idle.PushBack(conn)
		if len(c.conns) > maxConns {
			out = c.idle.Remove(c.idle.Front()).(net.Conn)
			c.conns[out] = nil
		}
	case http.StateActive:
		c.conns[conn] = nil
	case http.StateClosed, http.StateHijacked:
		delete(c.conns, conn)
	}
	c.mu.Unlock()
	if out != nil {
		_ = out.Close() // the server finds it closed, and notes that
	}
}
