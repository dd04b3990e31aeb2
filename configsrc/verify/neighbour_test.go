package verify_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/cmd/testrig/faultdns"
	"fingerpost/configsrc/verify"
	"fingerpost/configsrc/verify/authdns"
	"fingerpost/configsrc/verify/dcv"
	"fingerpost/resolver/catalog"
)

// crowded is a world in which project 2 has many names whose servers never answer: a check of one takes 40 s, its limit.
func crowded(names int) *world {
	w := newWorld()
	w.answer = func(s dcv.Subject, p dcv.Policy) dcv.Facts {
		if s.Project != project(2) {
			return factsOf(s, p, present)
		}
		facts := factsOf(s, p, silent)
		facts.Limited = true
		return facts
	}
	w.takesOf = func(s dcv.Subject) time.Duration {
		if s.Project == project(2) {
			return 40 * time.Second
		}
		return 2 * time.Second
	}
	for i := range names {
		w.put(fmt.Sprintf("%d.silent.example", i), catalog.VerifiedPending, 2)
	}
	return w
}

// TestNeighbour: a new name with its record in place is proven within a minute next to a thousand names of another project
// whose servers never answer, and the status says who waits.
func TestNeighbour(t *testing.T) {
	t.Parallel()
	w := crowded(1000)
	during(t, w, func(t *testing.T, s *verify.Service) {
		after(3 * time.Minute)
		for i := range 3 {
			name := fmt.Sprintf("new%d.example", i)
			w.put(name, catalog.VerifiedPending)
			after(time.Minute)
			if got := w.verified(name); got != today {
				t.Errorf("after a minute %s has %q", name, got)
			}
		}
	})
}

// TestNeighbourWaits: /status says which project's checks wait, how many, and since when.
func TestNeighbourWaits(t *testing.T) {
	t.Parallel()
	w := crowded(1000)
	during(t, w, func(t *testing.T, s *verify.Service) {
		began := time.Now()
		after(20 * time.Second)
		st := s.Status()
		if len(st.Waiting) != 1 {
			t.Fatalf("waiting: %+v", st.Waiting)
		}
		first := st.Waiting[0]
		if first.Project != "acme" || first.Count != 1000-st.Checking || first.Since.Sub(began) != 15*time.Second {
			t.Errorf("%d are checked, waiting: %+v since %s", st.Checking, first, first.Since.Sub(began))
		}
	})
}

// TestNeighbourOnDemand: checks on demand of a project with silent servers leave places to others, and the background
// goes on.
func TestNeighbourOnDemand(t *testing.T) {
	t.Parallel()
	w := crowded(1000)
	during(t, w, func(t *testing.T, s *verify.Service) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for i := range 50 {
			go func() {
				for round := 0; ctx.Err() == nil; round++ {
					_, _, _ = s.Check(ctx, subjectOf(w, fmt.Sprintf("%d.silent.example", (i+50*round)%1000)))
				}
			}()
		}
		after(time.Minute)
		w.put("asked.example", catalog.VerifiedPending)
		w.put("new.example", catalog.VerifiedPending)
		began := time.Now()
		view, wait, err := s.Check(t.Context(), subjectOf(w, "asked.example"))
		if took := time.Since(began); err != nil || wait != 0 || view.Ownership.State != dcv.Proven || took > 3*time.Second {
			t.Errorf("after %s: %+v, %v, %v", took, view.Ownership, wait, err)
		}
		after(time.Minute)
		if got := w.verified("new.example"); got != today {
			t.Errorf("after a minute new.example has %q", got)
		}
	})
}

// TestSlowProject: a project whose checks run into their limit twice in a row is checked hourly, until one does not.
func TestSlowProject(t *testing.T) {
	t.Parallel()
	w := crowded(1)
	during(t, w, func(t *testing.T, s *verify.Service) {
		began := time.Now()
		after(3 * time.Hour)
		at := w.taken("0.silent.example", began)
		if len(at) != 4 || at[1]-at[0] > 2*time.Minute || at[2]-at[1] < time.Hour || at[3]-at[2] < time.Hour {
			t.Errorf("checked at %v", at)
		}
		w.set(func() { w.takesOf = nil })
		w.says(absent)
		after(2 * time.Hour)
		if at := w.taken("0.silent.example", began); len(at) < 2 {
			t.Errorf("with servers that answer it is checked at %v", at)
		}
	})
}

// TestNeighbourOfSilence is TestNeighbour with real name servers, and the limits of a real service.
func TestNeighbourOfSilence(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	n := faultdns.New(t)
	n.Zone("silent.example", "", "127.0.0.3", "127.0.0.4")
	n.Fault("127.0.0.3", "", faultdns.Silent)
	n.Fault("127.0.0.4", "", faultdns.Silent)
	checker, err := authdns.New(authdns.Options{Resolver: n.Resolver(), DNSPort: n.Port,
		Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld()
	for i := range 1000 {
		w.put(fmt.Sprintf("%d.silent.example", i), catalog.VerifiedPending, 2)
	}
	s := verify.New(verify.Options{Domains: w, Changes: w, Ledger: w, Trail: w, Checker: checker, Writer: w,
		Logger: slog.New(slog.DiscardHandler)})
	go s.Run(t.Context())
	testrig.Eventually(t, "the silent names fill their places", func() bool {
		st := s.Status()
		return st != nil && len(st.Waiting) == 1 && st.Waiting[0].Count > 900
	})
	way := dcv.Ways(dcv.Subject{Project: project(1), Name: "new.example"}, w.policy)[0]
	n.Zone("new.example", fmt.Sprintf("_fingerpost-challenge TXT %q", "token="+way.Token), "127.0.0.5")
	began := time.Now()
	w.put("new.example", catalog.VerifiedPending)
	testrig.Eventually(t, "the new name is proven", func() bool { return w.verified("new.example") != catalog.VerifiedPending })
	t.Logf("the new name is proven after %s", time.Since(began))
	if took := time.Since(began); took > time.Minute {
		t.Errorf("the new name is proven after %s", took)
	}
}

// TestClockSetBackWhileRunning: a clock that is set back while the service runs keeps no check waiting.
func TestClockSetBackWhileRunning(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.ahead = 365 * 24 * time.Hour
		w.put("shop.example", catalog.VerifiedPending)
		w.put("proven.example", "1999-12-01")
		_, stop := w.run(t)
		defer stop()
		after(5 * time.Minute) // some checks are noted with the wrong time
		w.set(func() { w.ahead = 0 })
		w.says(present)
		w.put("new.example", catalog.VerifiedPending)
		began := time.Now()
		after(2 * time.Hour)
		for _, name := range []string{"shop.example", "new.example"} {
			if got := w.verified(name); got != today {
				t.Errorf("two hours after the clock was set back %s has %q", name, got)
			}
		}
		after(25 * time.Hour)
		if len(w.taken("proven.example", began)) == 0 {
			t.Error("a proven domain is not checked within a day")
		}
	})
}
