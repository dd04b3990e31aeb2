package tenant

import (
	"math/rand/v2"
	"time"
)

const (
	firstBackoff = time.Second
	maxBackoff   = 30 * time.Second
	// maxRetryAfter bounds what a server may ask for: no answer switches the client off.
	maxRetryAfter = 5 * time.Minute
)

// backoff returns the time to wait after a number of failures in a row: a random one up to a limit that doubles (full
// jitter), and not less than the server has asked for.
func backoff(failures int, retryAfter time.Duration) time.Duration {
	limit := maxBackoff
	if shift := failures - 1; shift < 5 {
		limit = min(limit, firstBackoff<<max(shift, 0))
	}
	return max(rand.N(limit), min(retryAfter, maxRetryAfter))
}
