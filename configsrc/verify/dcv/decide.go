package dcv

import (
	"fmt"
	"time"

	"fingerpost/resolver/catalog"
)

// lostMisses is how many misses, an hour or a third of the grace apart, a proof is lost after.
const lostMisses = 3

// Decide returns the state of s after a check that found f, and what follows from it. st is the state after the check
// before, or the zero State. Only definite answers change a state. Facts of a check that began before the latest one
// change nothing.
func Decide(st State, s Subject, p Policy, f Facts, now time.Time) (State, Decision) {
	st = Follow(st, s, p, now)
	if f.At.Before(st.CheckedAt) && !st.CheckedAt.After(now) {
		return st, Decision{}
	}
	st.CheckedAt = f.At
	st.Checks++
	o := &st.Ownership
	o.Writing = ""
	o.Since, o.LastMiss = earlier(o.Since, now), earlier(o.LastMiss, now) // a clock that was set back
	var d Decision
	if NeedsProof(s, p) {
		d = st.own(p, &f, now)
	}
	st.point(p, &f.Pointing, now)
	st.certify(&f.TLS, now)
	st.Last = f.bounded()
	st.NextAt = now.Add(st.wait(p, now))
	return st, d
}

// Settle returns the state after the write that a Decision asked for has ended. After a start of the process call Follow
// and then Settle without "written": a write that a crash interrupted is known from the files.
func Settle(st State, written bool, now time.Time) State {
	value := st.Ownership.Writing
	st.Ownership.Writing = ""
	if value != "" && written {
		st.arrive(value, now)
	}
	return st
}

// Follow returns the state after the files may have changed: s is the subject as they have it now. What the service
// remembers of its own writes ends where a person has changed them. Call it for every change of a domain, so that a
// person's change to a value and back is seen; Decide calls it, too. A zero now stands for "not known", for Show.
func Follow(st State, s Subject, p Policy, now time.Time) State {
	o := &st.Ownership
	switch {
	case st.Subject.Project != s.Project || st.Subject.Name != s.Name:
		st = State{}
	case st.Subject.Verified == s.Verified:
	case s.Verified == o.Writing:
		o.Writing = ""
		st.arrive(s.Verified, now)
	default:
		*o = OwnershipState{}
	}
	st.Subject = s
	if !now.IsZero() && (st.CheckedAt.After(now) || st.NextAt.After(now.Add(st.longest(p, now)))) {
		st.NextAt = now // the clock was set back
	}
	is := word(s, p)
	if o.State == is || is == Proven && (o.State == Failing || o.State == Lost) {
		return st
	}
	o.Misses, o.LastMiss = 0, time.Time{}
	st.enter(is, now)
	if !now.IsZero() {
		st.NextAt = now.Add(st.first())
	}
	return st
}

// NeedsProof reports whether the ownership of s is checked: it is not trusted.
func NeedsProof(s Subject, p Policy) bool { return word(s, p) != Trusted }

// word is the state of ownership as the files alone have it.
func word(s Subject, p Policy) string {
	switch s.Verified {
	case "":
		if p.Require == catalog.RequireAll {
			return Pending
		}
		return Trusted
	case catalog.VerifiedLost:
		return Lost
	}
	if _, err := time.Parse(time.DateOnly, s.Verified); err != nil {
		return Pending
	}
	return Proven
}

// arrive takes over a value that the service has written to the files.
func (st *State) arrive(value string, now time.Time) {
	o := &st.Ownership
	st.Subject.Verified, o.Wrote = value, value
	if value == catalog.VerifiedLost {
		st.enter(Lost, now)
	} else {
		o.Seen, o.Misses, o.LastMiss = true, 0, time.Time{}
		st.enter(Proven, now)
	}
	if !now.IsZero() {
		st.NextAt = now.Add(st.wait(Policy{}, now)) // the policy matters only while a proof is failing
	}
}

// enter changes the state of ownership, if it is another one.
func (st *State) enter(state string, now time.Time) {
	if o := &st.Ownership; o.State != state {
		o.State, o.Since, o.Spreading = state, now, false
		st.Checks = 0
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// own decides about ownership.
func (st *State) own(p Policy, f *Facts, now time.Time) Decision {
	o := &st.Ownership
	v, spreading, by := judge(Ways(st.Subject, p), f.Proofs)
	o.Spreading = spreading
	switch v {
	case hit:
		if st.leftOver() {
			return Decision{}
		}
		o.Misses, o.LastMiss = 0, time.Time{}
		return st.found(by, now)
	case miss:
		o.Missed = st.Subject.Reused
		return st.missed(p, now)
	}
	return Decision{}
}

// leftOver reports whether a proof counts for nothing, because it may be the former project's. A day that the files have
// is a person's word.
func (st *State) leftOver() bool {
	return st.Subject.Reused && !st.Ownership.Missed && word(st.Subject, Policy{}) != Proven
}

// found decides after a hit.
func (st *State) found(by *Way, now time.Time) Decision {
	o := &st.Ownership
	reason := fmt.Sprintf("the %s record of %s has the token", by.Type, by.Name)
	switch {
	case word(st.Subject, Policy{}) == Proven:
		o.Seen = true
		if o.State == Proven {
			return Decision{}
		}
		st.enter(Proven, now)
		return Decision{Noted: Proven, Reason: reason}
	case o.State == Lost && o.Wrote != catalog.VerifiedLost:
		return Decision{} // a person wrote it
	}
	return st.write(now.UTC().Format(time.DateOnly), reason)
}

// missed decides after a miss.
func (st *State) missed(p Policy, now time.Time) Decision {
	o := &st.Ownership
	if word(st.Subject, p) != Proven {
		return Decision{} // pending, or lost in the files: nothing is left to lose
	}
	if o.Misses == 0 || now.Sub(o.LastMiss) >= gap(p) {
		o.Misses, o.LastMiss = o.Misses+1, now
	}
	switch {
	case o.State == Proven:
		st.enter(Failing, now)
		return Decision{Noted: Failing, Reason: "no authoritative server has the proof"}
	case o.State == Failing && !st.overdue(p, now):
		return Decision{}
	}
	reason := fmt.Sprintf("no authoritative server has had the proof since %s, in %d checks that count",
		o.Since.UTC().Format(time.RFC3339), o.Misses)
	switch {
	case p.Block:
		return st.write(catalog.VerifiedLost, reason)
	case o.State == Failing:
		st.enter(Lost, now)
		return Decision{Noted: Lost, Reason: reason}
	}
	return Decision{}
}

// overdue reports whether a proof that is missed again is lost. A day that a person wrote stays, unless the service has
// seen the proof.
func (st *State) overdue(p Policy, now time.Time) bool {
	o := &st.Ownership
	return o.Seen && p.Grace > 0 && now.Sub(o.Since) >= p.Grace && o.Misses >= lostMisses
}

// write asks for a write.
func (st *State) write(value, reason string) Decision {
	st.Ownership.Writing = value
	return Decision{Write: value, From: st.Subject.Verified, Reason: reason}
}
