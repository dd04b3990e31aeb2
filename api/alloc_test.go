//go:build !race

package api

import (
	"testing"

	"fingerpost/api/web"
)

// Under the race detector sync.Pool forgets at random, so allocations are counted without it only.

func TestResolveAllocatesNothing(t *testing.T) {
	s, ctx := hotServer(t)
	if n := testing.AllocsPerRun(1000, func() { s.serveOnce(ctx) }); n != 0 {
		t.Errorf("a hit allocates %v times", n)
	}
	ctx.Request.Header.Set("If-None-Match", string(ctx.Response.Header.PeekCanonical(web.HeaderETag)))
	if n := testing.AllocsPerRun(1000, func() { s.serveOnce(ctx) }); n != 0 {
		t.Errorf("a 304 allocates %v times", n)
	}
	if got := ctx.Response.StatusCode(); got != 304 {
		t.Errorf("status %d, want 304", got)
	}
}

// allocatesNothing answers each request a hundred times on one connection, by the fast path.
func allocatesNothing(t *testing.T, texts []string, gateway ...Services) {
	t.Helper()
	s, fill := fastServer(t)
	p := make([]byte, s.o.Limits.HeaderBytes)
	for _, text := range texts {
		peer := &scriptedConn{requests: [][]byte{fill(text)}, done: func() {}}
		c := s.admit(peer, true, gateway...)
		if n := testing.AllocsPerRun(10, func() {
			peer.left = 100
			if n, err := c.Read(p); n != 0 || err == nil {
				t.Fatal(n, err)
			}
		}); n != 0 {
			t.Errorf("100 answers to %q allocate %v times", text, n)
		}
	}
}

func TestFastPathAllocatesNothing(t *testing.T) {
	allocatesNothing(t, []string{plainRequests[1], plainRequests[5]})
}

func TestFastMeAllocatesNothing(t *testing.T) { allocatesNothing(t, plainMes) }

func TestFastCheckAllocatesNothing(t *testing.T) {
	allocatesNothing(t, []string{plainChecks[1], plainChecks[2], plainChecks[10], plainChecks[15], plainChecks[17]}, Gateway)
}
