package dcv_test

import (
	"fmt"
	"testing"
	"time"

	"fingerpost/configsrc/verify/dcv"
	"fingerpost/resolver/catalog"
)

// times returns the times before n checks in a row, which all have the same answer.
func times(s *story, says string, n int) (waits []time.Duration) {
	s.state = dcv.Follow(s.state, s.subject, s.policy, s.now)
	for range n {
		wait := s.state.NextAt.Sub(s.now)
		waits = append(waits, wait)
		s.check(wait, says)
	}
	return waits
}

func TestTimetable(t *testing.T) {
	s := newStory(t, catalog.VerifiedPending, policy)
	got := times(s, "no", 180)
	if first := fmt.Sprint(got[:8]); first != "[15s 30s 1m0s 2m0s 5m0s 15m0s 1h0m0s 1h0m0s]" {
		t.Errorf("pending: %v", first)
	}
	at := time.Duration(0)
	for i, wait := range got[6:] {
		for _, before := range got[:6+i] {
			at += before
		}
		if want := map[bool]time.Duration{true: time.Hour, false: 24 * time.Hour}[at < 7*24*time.Hour]; wait != want {
			t.Errorf("pending, check %d: %v after %v", 7+i, wait, at)
		}
		at = 0
	}
	s.leads = here
	s.check(0, "yes")
	daily := times(s, "yes", 2)
	if daily[0] != daily[1] || daily[0] < 21*time.Hour+36*time.Minute || daily[0] > 26*time.Hour+24*time.Minute {
		t.Errorf("proven: %v", daily)
	}
	if failing := times(s, "no", 4)[1:]; fmt.Sprint(failing) != "[1h0m0s 1h0m0s 1h0m0s]" {
		t.Errorf("failing: %v", failing)
	}
	for s.state.Ownership.State == dcv.Failing {
		times(s, "no", 1)
	}
	lost := times(s, "no", 170)
	for i, wait := range lost {
		if want := map[bool]time.Duration{true: time.Hour, false: 24 * time.Hour}[i < 168]; wait != want {
			t.Errorf("lost, check %d: %v", i, wait)
		}
	}
	s = newStory(t, "2026-11-01", policy) // a person's day fails for as long as it stands
	if waits := times(s, "no", 172); waits[1] != time.Hour || waits[168] != time.Hour || waits[171] != 24*time.Hour {
		t.Errorf("failing, never seen: %v", waits)
	}
	s = newStory(t, catalog.VerifiedPending, policy)
	s.policy.Grace, s.leads = 30*time.Second, here
	s.check(0, "yes")
	if waits := times(s, "no", 3)[1:]; fmt.Sprint(waits) != "[10s 10s]" {
		t.Errorf("failing with a grace of 30 s: %v", waits)
	}
}

// TestTimetableWhileSetUp: from the proof on, a domain that is not ready is checked as often as a pending one, for a week; a
// domain that is ready, daily. The steps begin again with each proof, and not with each change of pointing.
func TestTimetableWhileSetUp(t *testing.T) {
	const steps = "[15s 30s 1m0s 2m0s 5m0s 15m0s 1h0m0s 1h0m0s]"
	daily := func(wait time.Duration) bool {
		return wait >= 21*time.Hour+36*time.Minute && wait <= 26*time.Hour+24*time.Minute
	}
	s := newStory(t, catalog.VerifiedPending, policy)
	for range 20 {
		s.check(time.Hour, "no")
	}
	s.check(0, "yes")
	proof := s.now
	if got := times(s, "yes", 8); fmt.Sprint(got) != steps {
		t.Errorf("proven, not ready: %v", got)
	}
	if s.leads = here; times(s, "yes", 1)[0] != time.Hour {
		t.Error("the check that finds it ready came at another time")
	}
	if wait := times(s, "yes", 1)[0]; !daily(wait) {
		t.Errorf("ready: %v", wait)
	}
	if s.leads = elsewhere; !daily(times(s, "yes", 1)[0]) {
		t.Error("a ready domain was not checked daily")
	}
	for s.state.NextAt.Sub(proof) < 7*24*time.Hour {
		if wait := times(s, "yes", 1)[0]; wait != time.Hour {
			t.Fatalf("not ready any more, %v after the proof: %v", s.now.Sub(proof), wait)
		}
	}
	times(s, "yes", 1) // the last one that was planned within the week
	if wait := times(s, "yes", 1)[0]; !daily(wait) {
		t.Errorf("never ready, %v after the proof: %v", s.now.Sub(proof), wait)
	}
	for s.subject.Verified != catalog.VerifiedLost {
		times(s, "no", 1)
	}
	times(s, "yes", 1)
	if got := times(s, "yes", 8); fmt.Sprint(got) != steps {
		t.Errorf("proven again, not ready: %v", got)
	}

	s = newStory(t, "", policy) // a person wrote it: the first check has a place of its own in the first hour
	if got := times(s, "no", 8); got[0] >= time.Hour || fmt.Sprint(got[1:]) != "[30s 1m0s 2m0s 5m0s 15m0s 1h0m0s 1h0m0s]" {
		t.Errorf("trusted, not ready: %v", got)
	}
}

// TestDailyIsSpread: the checks of many subjects are spread over a fifth of a day, and their first ones over an hour, each
// at a place that does not change.
func TestDailyIsSpread(t *testing.T) {
	var first, daily [10]int
	for i := range 5000 {
		s := dcv.Subject{Project: acme, Name: fmt.Sprintf("n%d.acme.example", i)}
		st := dcv.Follow(dcv.State{}, s, policy, start)
		first[st.NextAt.Sub(start)*10/time.Hour]++
		st, _ = dcv.Decide(st, s, policy, served(dcv.Facts{At: start}, here, start), start)
		wait := st.NextAt.Sub(start)
		daily[(wait-24*time.Hour*9/10)*10/(24*time.Hour/5)]++
		if again, _ := dcv.Decide(st, s, policy, served(dcv.Facts{At: start}, here, start), start); again.NextAt != st.NextAt {
			t.Errorf("%s: %v, then %v", s.Name, st.NextAt, again.NextAt)
		}
	}
	for _, shares := range [][10]int{first, daily} {
		for _, n := range shares {
			if n < 400 || n > 600 {
				t.Errorf("tenths: %v", shares)
				break
			}
		}
	}
}

// TestDueAfterSetBack: a state that a clock that was ahead has left is due now, however far ahead the clock was.
func TestDueAfterSetBack(t *testing.T) {
	f := func(verified string, ahead time.Duration, proof string) {
		t.Helper()
		s := newStory(t, verified, policy)
		s.now = start.Add(ahead)
		times(s, proof, 8)
		if st := dcv.Follow(s.state, s.subject, policy, start); !st.NextAt.Equal(start) {
			t.Errorf("%q, %v ahead: due %v from now", verified, ahead, st.NextAt.Sub(start))
		}
	}
	for _, ahead := range []time.Duration{26 * time.Hour, 365 * 24 * time.Hour} {
		f("pending", ahead, "no")
		f("2026-11-24", ahead, "yes")
		f("", ahead, "no")
		f("2026-11-24", ahead, "no")
	}
	s := newStory(t, "pending", policy)
	times(s, "no", 8)
	if st := dcv.Follow(s.state, s.subject, policy, s.now); !st.NextAt.After(s.now) && !st.NextAt.Equal(s.state.NextAt) {
		t.Errorf("without a set clock: due %v from now", st.NextAt.Sub(s.now))
	}
}
