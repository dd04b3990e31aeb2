package mailer

import (
	"math/rand/v2"
	"time"

	"fingerpost/resolver/catalog"
)

// waits lie between the first attempts of a mail; from there on they grow by half, up to maxWait (mailer/README.md).
var waits = [...]time.Duration{
	5 * time.Second, 30 * time.Second, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 20 * time.Minute,
}

const maxWait = time.Hour

// waitAfter is how long a mail waits after so many attempts: the schedule, 20 % more or less, so that what failed
// together does not come back together, or what the server asked for where that is longer.
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

// pauseAfter is how long a server that could not be reached so many times in a row is left alone. It stays below the
// shortest wait of the schedule: a mail that waits alone comes back on its own time.
func pauseAfter(failures int) time.Duration {
	return min(3*time.Second<<min(failures-1, 8), time.Minute)
}

// maxAge is how long a template's mails may be tried, for raw mail as long as for a template that does not say.
func maxAge(t *catalog.Template) time.Duration {
	if t == nil {
		t = &catalog.Template{}
	}
	return t.Lifetime()
}

// realClock is the Clock of the world.
type realClock struct{}

func (realClock) Now() time.Time { return time.Now() }

func (realClock) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	return time.AfterFunc(d, f).Stop
}
