package smtp

// Clean and RetryHint process a server's reply.
func Clean(reply string, server Server) (enhanced, text string) {
	return (&attempt{server: server}).clean(reply)
}

var RetryHint = retryHint

// Waiting returns how many mails wait for a connection.
func Waiting(t *Transport) (n int) {
	t.pool.mu.Lock()
	defer t.pool.mu.Unlock()
	for _, l := range t.pool.queues {
		n += len(l.waiting)
	}
	return n
}

// Queues returns how many servers have a queue in the pool.
func Queues(t *Transport) int {
	t.pool.mu.Lock()
	defer t.pool.mu.Unlock()
	return len(t.pool.queues)
}
