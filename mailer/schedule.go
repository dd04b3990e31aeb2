package mailer

import (
	"math/rand/v2"
	"time"
)

// waits are the backoff between the first attempts of a mail. After them each wait is 1.5 times the last, up to
// maxWait.
var waits = [...]time.Duration{
	5 * time.Second, 30 * time.Second, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 20 * time.Minute,
}

const maxWait = time.Hour

// longestWait is the longest time between two attempts: maxWait with its jitter.
const longestWait = maxWait * 6 / 5

// nearby returns a due time in Unix milliseconds, or now if the time is so far ahead that a wrong clock must have made it.
func nearby(at int64, now time.Time) int64 {
	if at > now.Add(longestWait).UnixMilli() {
		return now.UnixMilli()
	}
	return at
}

// waitAfter returns the backoff after so many attempts: the schedule with 20 % jitter, so that mails that failed
// together do not come back together, or the server's own hint if that is longer.
func waitAfter(attempts int, hint time.Duration) time.Duration {
	d := waits[len(waits)-1]
	if attempts <= len(waits) {
		d = waits[max(attempts, 1)-1]
	}
	for n := len(waits); n < attempts && d < maxWait; n++ {
		d = min(d*3/2, maxWait)
	}
	d = time.Duration(float64(d) * (0.8 + 0.4*rand.Float64()))
	return max(d, min(hint, maxWait))
}

// pauseAfter returns how long a server that could not be reached so many times in a row is not tried. It stays below
// the shortest wait of the schedule, so that a mail that waits alone is tried at its own time.
func pauseAfter(failures int) time.Duration {
	return min(3*time.Second<<min(failures-1, 8), maxPause)
}

const maxPause = time.Minute

// realClock is the system's Clock.
type realClock struct{}

func (realClock) Now() time.Time { return time.Now() }

func (realClock) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	return time.AfterFunc(d, f).Stop
}
