package smtp

import "net/netip"

// GuardAllows is what the guard says to an address.
func GuardAllows(allowed []netip.Prefix, a netip.Addr) bool { return newGuard(allowed).allows(a) }

// Clean and RetryHint are what becomes of a server's words.
func Clean(reply string, server Server) (enhanced, text string) {
	return (&attempt{server: server}).clean(reply)
}

var RetryHint = retryHint

// Waiting is how many mails wait for a connection.
func Waiting(t *Transport) (n int) {
	t.pool.mu.Lock()
	defer t.pool.mu.Unlock()
	for _, l := range t.pool.queues {
		n += len(l.waiting)
	}
	return n
}

// Lanes is how many servers the pool has something for.
func Lanes(t *Transport) int {
	t.pool.mu.Lock()
	defer t.pool.mu.Unlock()
	return len(t.pool.queues)
}
