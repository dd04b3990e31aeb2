package tenant

import (
	"net/http"
	"time"
)

// A clock tells the time and runs functions later. It is safe for concurrent use.
type clock interface {
	Now() time.Time
	// AfterFunc calls f in a goroutine of its own once d has passed, unless stop is called before.
	AfterFunc(d time.Duration, f func()) (stop func())
}

// clockOf returns the clock that a transport brings, else the clock of the machine. Tests set the clock in this way, so
// that users of the client see no option for it.
func clockOf(transport http.RoundTripper) clock {
	if c, ok := transport.(clock); ok {
		return c
	}
	return machineClock{}
}

type machineClock struct{}

func (machineClock) Now() time.Time { return time.Now() }

func (machineClock) AfterFunc(d time.Duration, f func()) (stop func()) {
	timer := time.AfterFunc(d, f)
	return func() { timer.Stop() }
}
