package dcv

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

const (
	day  = 24 * time.Hour
	week = 7 * day
)

// waitingSteps are the times between the first checks of a subject that somebody is setting up.
var waitingSteps = []time.Duration{
	15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute,
}

// wait returns the time from a check to the next one.
func (st *State) wait(p Policy, now time.Time) time.Duration {
	o := &st.Ownership
	hourly := day
	if now.Sub(o.Since) < week {
		hourly = time.Hour
	}
	switch o.State {
	case Pending:
		return st.waiting(hourly)
	case Failing:
		if !o.Seen {
			return hourly // it never ends by itself
		}
		return max(gap(p), time.Second)
	case Lost:
		return hourly
	}
	if hourly < day && !st.ready() {
		return st.waiting(hourly) // somebody points it here, and waits for its certificate
	}
	return day*9/10 + time.Duration(st.Subject.share()*float64(day/5))
}

// longest returns the longest time between two checks in a state.
func (st *State) longest(p Policy, now time.Time) time.Duration {
	last := *st
	last.Checks = len(waitingSteps)
	return max(last.wait(p, now), time.Hour) // an hour: see first
}

// waiting returns the time from a check to the next one while somebody waits for its result.
func (st *State) waiting(then time.Duration) time.Duration {
	if st.Checks < len(waitingSteps) {
		return waitingSteps[st.Checks]
	}
	return then
}

// first returns the time to the first check in a state: soon for pending, else at a place of its own in the next hour.
func (st *State) first() time.Duration {
	if st.Ownership.State == Pending {
		return waitingSteps[0]
	}
	return time.Duration(st.Subject.share() * float64(time.Hour))
}

// gap is the least time between two misses that count, and the time between the checks that count them.
func gap(p Policy) time.Duration {
	if p.Grace > 0 {
		return min(time.Hour, p.Grace/lostMisses)
	}
	return time.Hour
}

// share returns a number in [0, 1) that only the subject decides, so that a plan made again is the same.
func (s *Subject) share() float64 {
	sum := sha256.Sum256([]byte(s.Project.String() + "\n" + s.Name))
	return float64(binary.BigEndian.Uint64(sum[:])>>11) / (1 << 53)
}
