package dcv_test

import (
	"reflect"
	"testing"
	"time"

	"fingerpost/configsrc/verify/dcv"
	"fingerpost/resolver/catalog"
)

// TestVerdicts: which answers move a pending subject, and a proven one.
func TestVerdicts(t *testing.T) {
	hit, miss, spread := "hit", "miss", "spreading"
	for _, c := range []struct {
		want string
		says answers
	}{
		{hit, answers{"yes"}},
		{hit, answers{"yes", "yes"}},
		{hit, answers{"yes", dcv.TimedOut}},
		{hit, answers{dcv.Lame, "yes", dcv.ServFail}},
		{miss, answers{"no"}},
		{miss, answers{"no", "no", "no"}},
		{spread, answers{"yes", "no"}},
		{spread, answers{"no", "yes", dcv.TimedOut}},
		{"", answers{"no", dcv.TimedOut}},
		{"", answers{"no", dcv.Refused}},
		{"", answers{dcv.ServFail, "no"}},
		{"", answers{dcv.Lame}},
		{"", answers{dcv.TimedOut, dcv.TimedOut}},
		{"", answers{}},
	} {
		for way, w := range dcv.Ways(shop(""), policy) {
			p := dcv.Subject{Project: acme, Name: "shop.acme.example", Verified: catalog.VerifiedPending}
			st, d := dcv.Decide(dcv.State{}, p, policy, facts(p, policy, start, way, c.says), start)
			if got := d.Write == "2026-11-27"; got != (c.want == hit) || st.Ownership.Spreading != (c.want == spread) {
				t.Errorf("pending, %v at %s: %+v, %+v", c.says, w.Name, d, st.Ownership)
			}
			p.Verified = "2026-11-01"
			st, d = dcv.Decide(dcv.State{}, p, policy, facts(p, policy, start, way, c.says), start)
			if failing := st.Ownership.State == dcv.Failing; failing != (c.want == miss) || d.Write != "" {
				t.Errorf("proven, %v at %s: %+v, %+v", c.says, w.Name, d, st.Ownership)
			}
		}
	}
}

// TestMissNeedsEveryWay: a way that was not asked for, or whose servers were not found, leaves all open.
func TestMissNeedsEveryWay(t *testing.T) {
	s := shop("2026-11-01")
	for way := range dcv.Ways(s, policy) {
		for _, fault := range []func(*dcv.Facts){
			func(f *dcv.Facts) { f.Proofs = append(f.Proofs[:way:way], f.Proofs[way+1:]...) },
			func(f *dcv.Facts) { f.Proofs[way].Error = "no servers" },
			func(f *dcv.Facts) { f.Proofs[way].Answers = nil },
			func(f *dcv.Facts) { f.Proofs[way].Name = "x." + f.Proofs[way].Name },
		} {
			f := facts(s, policy, start, 0, answers{"no", "no"})
			fault(&f)
			if st, d := dcv.Decide(dcv.State{}, s, policy, f, start); st.Ownership.State != dcv.Proven || d != (dcv.Decision{}) {
				t.Errorf("way %d: %+v, %+v", way, d, st.Ownership)
			}
		}
	}
	if st, _ := dcv.Decide(dcv.State{}, s, policy, facts(s, policy, start, 0, answers{"no"}), start); st.Ownership.State != dcv.Failing {
		t.Errorf("%+v", st.Ownership)
	}
}

func TestFirstProof(t *testing.T) {
	s := newStory(t, catalog.VerifiedPending, policy)
	s.check(0, "no")
	s.is(dcv.Pending, catalog.VerifiedPending)
	s.refuse = true // the folder cannot be written: what is answered does not change, and neither does the state
	if d := s.check(time.Minute, "yes"); d.Write != "2026-11-27" {
		t.Errorf("%+v", d)
	}
	s.is(dcv.Pending, catalog.VerifiedPending)
	s.refuse = false
	s.check(24*time.Hour, "yes")
	s.is(dcv.Proven, "2026-11-28")
	if d := s.check(24*time.Hour, "yes"); d != (dcv.Decision{}) {
		t.Errorf("%+v", d)
	}
	if since := s.state.Ownership.Since; !since.Equal(start.Add(24*time.Hour + time.Minute)) {
		t.Errorf("proven since %v", since)
	}
}

// TestAbsent: without the attribute a person is trusted, unless all domains need a proof.
func TestAbsent(t *testing.T) {
	for _, says := range []string{"yes", "no"} {
		s := newStory(t, "", policy)
		if d := s.check(0, says); d != (dcv.Decision{}) || s.state.Ownership.Misses != 0 {
			t.Errorf("%+v", d)
		}
		s.is(dcv.Trusted, "")
	}
	s := newStory(t, "", all)
	s.check(0, "no")
	s.is(dcv.Pending, "")
	s.policy = policy
	s.check(time.Hour, "no")
	s.is(dcv.Trusted, "")
	s.policy = all
	s.check(time.Hour, "yes")
	s.is(dcv.Proven, "2026-11-27")
}

// TestLost: three misses an hour apart, the last one after the grace; what is reported or written then, and the way back.
func TestLost(t *testing.T) {
	for _, p := range []dcv.Policy{policy, report} {
		s := newStory(t, catalog.VerifiedPending, p)
		s.check(0, "yes")
		if d := s.check(time.Hour, "no"); d.Noted != dcv.Failing || d.Reason == "" {
			t.Errorf("%+v", d)
		}
		s.check(70*time.Hour, "no")
		s.check(59*time.Minute, "no") // does not count
		s.check(time.Minute, "no")
		s.is(dcv.Failing, "2026-11-27")
		if got := s.state.Ownership.Misses; got != 3 {
			t.Errorf("%d misses", got)
		}
		s.check(time.Hour, dcv.TimedOut) // after the grace, but nothing definite
		s.is(dcv.Failing, "2026-11-27")
		d := s.check(time.Minute, "no")
		if p.Block {
			s.is(dcv.Lost, catalog.VerifiedLost)
			s.check(time.Hour, "no")
			s.check(time.Hour, dcv.ServFail)
			s.is(dcv.Lost, catalog.VerifiedLost)
			s.check(time.Hour, "yes")
			s.is(dcv.Proven, "2026-11-30")
			continue
		}
		if d.Noted != dcv.Lost || d.Reason == "" {
			t.Errorf("%+v", d)
		}
		s.is(dcv.Lost, "2026-11-27")
		if d := s.check(time.Hour, "yes"); d.Noted != dcv.Proven || s.state.Ownership.Misses != 0 {
			t.Errorf("%+v", d)
		}
		s.is(dcv.Proven, "2026-11-27") // nothing is written
	}
}

func TestLostNeedsThreeMisses(t *testing.T) {
	s := newStory(t, catalog.VerifiedPending, policy)
	s.check(0, "yes")
	s.check(time.Hour, "no")
	s.check(100*time.Hour, "no")
	s.is(dcv.Failing, "2026-11-27")
	s.check(time.Hour, "no")
	s.is(dcv.Lost, catalog.VerifiedLost)

	s = newStory(t, catalog.VerifiedPending, policy)
	s.policy.Grace = 3 * time.Second // a third of it is less than an hour
	s.check(0, "yes")
	for range 4 {
		s.is(dcv.Proven, "2026-11-27")
		for _, says := range []string{"no", "no", "no", "yes"} { // found again in time
			s.check(time.Second, says)
		}
	}
	s.check(time.Second, "no")
	s.check(time.Second, "no")
	s.check(999*time.Millisecond, "no")
	s.check(time.Second, "no")
	s.is(dcv.Failing, "2026-11-27")
	s.check(time.Second, "no")
	s.is(dcv.Lost, catalog.VerifiedLost)
}

// TestLostNotWritten: while the write fails, the domain is answered and so not called lost.
func TestLostNotWritten(t *testing.T) {
	s := newStory(t, catalog.VerifiedPending, policy)
	s.check(0, "yes")
	s.refuse = true
	for range 80 {
		s.check(time.Hour, "no")
	}
	s.is(dcv.Failing, "2026-11-27")
	s.refuse = false
	s.check(time.Hour, "no")
	s.is(dcv.Lost, catalog.VerifiedLost)
	// "report" turned into "block" while the proof was lost
	s = newStory(t, catalog.VerifiedPending, report)
	s.check(0, "yes")
	for range 80 {
		s.check(time.Hour, "no")
	}
	s.is(dcv.Lost, "2026-11-27")
	s.policy = policy
	s.check(time.Hour, "no")
	s.is(dcv.Lost, catalog.VerifiedLost)
	s.policy = report // back: what the service wrote it takes back
	s.check(time.Hour, "yes")
	s.is(dcv.Proven, "2026-11-30")
}

// TestPeopleWin: what a person wrote stays.
func TestPeopleWin(t *testing.T) {
	week := func(s *story, says string) {
		for range 7 * 24 {
			s.check(time.Hour, says)
		}
	}
	t.Run("a day that no proof was seen for", func(t *testing.T) {
		s := newStory(t, "2026-11-01", policy)
		week(s, "no")
		s.is(dcv.Failing, "2026-11-01")
		s.check(time.Hour, "yes")
		s.is(dcv.Proven, "2026-11-01")
		week(s, "no") // seen by now
		s.is(dcv.Lost, catalog.VerifiedLost)
	})
	t.Run("lost", func(t *testing.T) {
		s := newStory(t, catalog.VerifiedLost, policy)
		week(s, "yes")
		s.is(dcv.Lost, catalog.VerifiedLost)
	})
	t.Run("lost in place of the day that the service wrote", func(t *testing.T) {
		s := newStory(t, catalog.VerifiedPending, policy)
		s.check(0, "yes")
		s.subject.Verified = catalog.VerifiedLost
		week(s, "yes")
		s.is(dcv.Lost, catalog.VerifiedLost)
	})
	t.Run("a day in place of the service's lost", func(t *testing.T) {
		s := newStory(t, catalog.VerifiedPending, policy)
		s.check(0, "yes")
		week(s, "no")
		s.is(dcv.Lost, catalog.VerifiedLost)
		s.subject.Verified = "2026-12-01"
		week(s, "no")
		s.is(dcv.Failing, "2026-12-01")
	})
	t.Run("lost again, after a day in place of the service's lost", func(t *testing.T) {
		s := newStory(t, catalog.VerifiedPending, policy)
		s.check(0, "yes")
		week(s, "no")
		for _, verified := range []string{"2026-12-01", catalog.VerifiedLost} { // both between two checks
			s.subject.Verified = verified
			s.state = dcv.Follow(s.state, s.subject, s.policy, s.now)
		}
		week(s, "yes")
		s.is(dcv.Lost, catalog.VerifiedLost)
	})
	t.Run("lost while the service failed to write it", func(t *testing.T) {
		s := newStory(t, catalog.VerifiedPending, policy)
		s.check(0, "yes")
		s.refuse = true
		week(s, "no")
		s.is(dcv.Failing, "2026-11-27")
		s.subject.Verified, s.refuse = catalog.VerifiedLost, false
		week(s, "yes")
		s.is(dcv.Lost, catalog.VerifiedLost)
	})
	t.Run("pending in place of a day", func(t *testing.T) {
		s := newStory(t, catalog.VerifiedPending, policy)
		s.check(0, "yes")
		s.subject.Verified = catalog.VerifiedPending
		s.check(time.Hour, "no")
		s.is(dcv.Pending, catalog.VerifiedPending)
		s.check(time.Hour, "yes")
		s.is(dcv.Proven, "2026-11-27")
	})
	t.Run("nothing in place of a day", func(t *testing.T) {
		s := newStory(t, catalog.VerifiedPending, policy)
		s.check(0, "yes")
		s.subject.Verified = ""
		week(s, "no")
		s.is(dcv.Trusted, "")
	})
	t.Run("a day while the proof was failing", func(t *testing.T) {
		s := newStory(t, catalog.VerifiedPending, policy)
		s.check(0, "yes")
		s.check(time.Hour, "no")
		s.subject.Verified = "2026-11-26"
		s.state = dcv.Follow(s.state, s.subject, s.policy, s.now)
		s.is(dcv.Proven, "2026-11-26")
	})
}

// TestKilledInAWrite: whether a write that a crash interrupted has arrived is seen in the files.
func TestKilledInAWrite(t *testing.T) {
	s := shop(catalog.VerifiedPending)
	st, d := dcv.Decide(dcv.State{}, s, policy, facts(s, policy, start, 0, answers{"yes"}), start)
	if d.Write == "" {
		t.Fatalf("%+v", d)
	}
	if later := dcv.Follow(st, s, policy, start.Add(time.Hour)); later.Ownership.State != dcv.Pending {
		t.Errorf("not written: %+v", later.Ownership)
	}
	s.Verified = d.Write
	later := dcv.Follow(st, s, policy, start.Add(time.Hour))
	if o := later.Ownership; o.State != dcv.Proven || o.Wrote != d.Write || !o.Seen || o.Writing != "" {
		t.Errorf("written: %+v", o)
	}
	s.Verified = "2026-11-20" // by a person, at the same moment
	if o := dcv.Follow(st, s, policy, start.Add(time.Hour)).Ownership; o.State != dcv.Proven || o.Seen || o.Wrote != "" {
		t.Errorf("a person's: %+v", o)
	}
}

// TestStateOfAnother: the state of another project or name counts for nothing.
func TestStateOfAnother(t *testing.T) {
	s := newStory(t, catalog.VerifiedPending, policy)
	s.check(0, "yes")
	for _, other := range []dcv.Subject{
		{Project: catalog.DeriveProjectUUID("globex"), Name: s.subject.Name, Verified: s.subject.Verified},
		{Project: acme, Name: "www.acme.example", Verified: s.subject.Verified},
		{Project: acme, Name: "*.shop.acme.example", Verified: s.subject.Verified},
	} {
		fresh := dcv.Follow(dcv.State{}, other, policy, s.now)
		if got := dcv.Follow(s.state, other, policy, s.now); !reflect.DeepEqual(got, fresh) {
			t.Errorf("%+v: %+v", other, got)
		}
	}
}

// TestLateFacts: two checks at once end in any order, and the one that began last counts.
func TestLateFacts(t *testing.T) {
	s := newStory(t, catalog.VerifiedPending, policy)
	s.check(0, "yes")
	s.check(time.Hour, "yes")
	late := facts(s.subject, policy, s.now.Add(-time.Minute), 0, answers{"no"})
	if st, d := dcv.Decide(s.state, s.subject, policy, late, s.now.Add(time.Second)); d != (dcv.Decision{}) || !reflect.DeepEqual(st, s.state) {
		t.Errorf("%+v, %+v", d, st)
	}
}

// TestClockSetBack: a clock that goes back delays no check for longer than it would have taken.
func TestClockSetBack(t *testing.T) {
	s := newStory(t, catalog.VerifiedPending, policy)
	s.check(1000*time.Hour, "yes")
	s.check(time.Hour, "no")
	s.check(-1000*time.Hour, "no")
	if next := s.state.NextAt.Sub(s.now); next != time.Hour {
		t.Errorf("next check after %v", next)
	}
	for range 73 {
		s.check(time.Hour, "no")
	}
	s.is(dcv.Lost, catalog.VerifiedLost)
}

// A proof that may be the former project's counts once it was gone. A day that the files have is a person's word.
func TestLeftOver(t *testing.T) {
	s := newStory(t, catalog.VerifiedPending, policy)
	s.subject.Reused = true
	for range 3 {
		s.check(time.Hour, "yes", "yes")
		s.is(dcv.Pending, catalog.VerifiedPending)
	}
	s.check(time.Hour, "no", dcv.TimedOut) // not all servers say so
	s.check(time.Hour, "yes", "yes")
	s.is(dcv.Pending, catalog.VerifiedPending)
	s.check(time.Hour, "no", "no")
	s.check(time.Hour, "yes", "yes")
	s.is(dcv.Proven, "2026-11-27")

	s = newStory(t, "2026-11-20", policy)
	s.subject.Reused = true
	s.check(time.Hour, "yes", "yes")
	s.is(dcv.Proven, "2026-11-20")
}
