package cluster

import (
	"testing"
	"time"

	"fingerpost/cmd/testrig"
)

// TestClockIsWrong: no node compares its clock with another's. An edge with a clock that is an hour off follows, and
// neither it nor the authority believes that words are an hour old.
func TestClockIsWrong(t *testing.T) {
	r := newRig(t, "fra1", "ams1")
	r.tree.commit(map[string]string{"acme.hcl": "one"})
	for name, off := range map[string]time.Duration{"fra1": time.Hour, "ams1": -time.Hour} {
		o := FollowerOptions{Edge: name, Connection: Connection{URLs: []string{"nats://" + r.supervisor.Addr()}, KeyFile: r.seeds[name]},
			now: func() time.Time { return time.Now().Add(off) }}
		e := startEdge(t, o, newTree())
		r.reaches(e)
		r.tree.commit(map[string]string{"acme.hcl": name})
		r.reaches(e)
		if age := e.Age(o.now()); age > testrig.Patience {
			t.Errorf("%s says that its word is %v old", name, age)
		}
	}
	testrig.Eventually(t, "the authority knows that both edges are up to date", func() bool {
		s := r.authority.Status(nil).Edges
		return len(s) == 2 && s[0].Current && s[1].Current && s[0].Ready && s[1].Ready
	})
	for _, s := range r.authority.Status(nil).Edges {
		if limit := ms(testrig.Patience); s.BeatAgeMS > limit || s.LagMS > limit {
			t.Errorf("%s: a heartbeat of %v ms ago, a lag of %v ms", s.Name, s.BeatAgeMS, s.LagMS)
		}
	}
}

// TestSuccessorWithAWrongClock: an authority with a clock that is an hour ahead of the holder's waits for the lease like
// any other.
func TestSuccessorWithAWrongClock(t *testing.T) {
	r := newRig(t)
	r.stop()
	r.startAuthority(AuthorityOptions{TTL: shortTTL})
	second, _ := r.second(AuthorityOptions{now: func() time.Time { return time.Now().Add(time.Hour) }})
	if err := second.Claim(t.Context()); err == nil {
		t.Error("it has taken the lease of an authority that is alive")
	}
}
