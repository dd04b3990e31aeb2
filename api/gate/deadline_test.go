package gate

import (
	"testing"
	"time"
)

func TestDeadlines(t *testing.T) {
	limits := Limits{Read: 10 * time.Second, Write: 10 * time.Second, Idle: time.Minute}
	d := deadlines{limits: &limits, slack: time.Second}
	var zero, now time.Time
	now = zero.Add(time.Hour)
	zero = now
	at := func(seconds float64) { now = zero.Add(time.Duration(seconds * float64(time.Second))) }
	expect := func(what string, by time.Time, set bool, want float64) {
		t.Helper()
		if got := by.Sub(zero).Seconds(); set != (want >= 0) || set && got != want {
			t.Errorf("%s: deadline at %v s, set %v, want %v", what, got, set, want)
		}
	}
	const unchanged = -1
	read := func(what string, want float64) { t.Helper(); by, set := d.forRead(now); expect(what, by, set, want) }
	write := func(what string, want float64) { t.Helper(); by, set := d.forWrite(now); expect(what, by, set, want) }

	at(100)
	read("first byte", 110)
	d.beginMessage(now)
	at(104)
	read("the rest of a message has what is left", unchanged)
	d.beginMessage(now)
	read("pieces do not add time", unchanged)
	d.endMessage()
	write("answer", 114)
	read("next request", 164)
	at(104.5)
	read("a little later", unchanged)
	write("a little later", unchanged)
	at(106)
	read("more than slack later", 166)
	write("more than slack later", 116)
	d.beginMessage(now)
	read("sooner than what is set", 116)

	// A peer that takes 16 KiB in each second of an answer may go on; one that takes less is cut.
	d.endMessage()
	write("an answer begins", unchanged)
	d.written = 160 << 10
	at(116)
	write("just fast enough", 126)
	at(121)
	write("too slow", unchanged)
	d.endMessage()
	write("the next answer begins anew", 131)
	d.forRead(now)
	at(122)
	write("and so does one after a read", 132)
}
