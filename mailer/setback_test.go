package mailer_test

import (
	"fmt"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

// TestClockSetBack: mail that was queued while the clock was a year ahead is sent within the longest wait after the clock
// is set back, by the same process and after a restart, also next to mail that is queued since; and it ends in its time.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	const year = 365 * 24 * time.Hour
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprint("restart ", restart), func(t *testing.T) {
			t.Parallel()
			k := testrig.NewSink(t)
			k.Answer(func(int, testrig.Letter) error { return errGreylisted })
			r := newRig(t, project("acme", k))
			first := r.send(raw("acme")).LogID
			r.waits("acme", first, 1)
			r.pass(time.Minute)
			r.waits("acme", first, 3)
			second := r.send(raw("acme")).LogID
			r.waits("acme", second, 1)
			r.clock.setBack(year)
			third := r.send(raw("acme")).LogID
			r.waits("acme", third, 1)
			if restart {
				r.kill()
			}
			k.Answer(nil)
			r.pass(73 * time.Minute)
			for _, id := range []int64{first, second, third} {
				r.becomes("acme", id, catalog.MailSent)
			}
		})
	}
	t.Run("its end", func(t *testing.T) {
		t.Parallel()
		k := testrig.NewSink(t)
		k.Answer(func(int, testrig.Letter) error { return errGreylisted })
		r := newRig(t, project("acme", k))
		id := r.send(raw("acme")).LogID
		r.waits("acme", id, 1)
		r.clock.setBack(year)
		r.kill()
		r.pass(25 * time.Hour)
		r.becomes("acme", id, catalog.MailExpired)
	})
}
