package ops

import (
	"container/list"
	"net"
	"net/http"
	"sync"
)

// maxConns bounds the connections of the ops listener: each costs about 20 kB, and nobody needs a hundred of them.
const maxConns = 256

// A crowd keeps the listener at maxConns: a new connection beyond it ends the one that has been quiet longest, so that
// probes and operators always come through; if all are at work, it ends itself.
type crowd struct {
	mu    sync.Mutex
	quiet list.List                  // of net.Conn: without a request under way, the longest first
	conns map[net.Conn]*list.Element // all; nil: at work
}

// note is the server's ConnState.
func (c *crowd) note(conn net.Conn, state http.ConnState) {
	var out net.Conn
	c.mu.Lock()
	if at := c.conns[conn]; at != nil {
		c.quiet.Remove(at)
	}
	switch state {
	case http.StateNew, http.StateIdle:
		c.conns[conn] = c.quiet.PushBack(conn)
		if len(c.conns) > maxConns {
			out = c.quiet.Remove(c.quiet.Front()).(net.Conn)
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
