package verify_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fingerpost/configsrc/verify"
	"fingerpost/configsrc/verify/dcv"
	"fingerpost/resolver/catalog"
)

func subjectOf(w *world, name string) dcv.Subject {
	d, _, _ := w.Named(name)
	return d.Subject
}

// TestOnDemand: a check on demand comes before a backlog of others, counts as a check, and is not repeated within ten
// seconds. All who ask at the same time wait for one check.
func TestOnDemand(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.takes = 2 * time.Second
	for i := range 2000 {
		w.put(fmt.Sprintf("%d.example", i), catalog.VerifiedPending)
	}
	w.put("asked.example", "")
	during(t, w, func(t *testing.T, s *verify.Service) {
		after(time.Minute)
		w.says(present)
		w.put("asked.example", catalog.VerifiedPending)
		began := time.Now()
		var asking sync.WaitGroup
		for range 20 {
			asking.Go(func() {
				view, wait, err := s.Check(t.Context(), subjectOf(w, "asked.example"))
				if err != nil || wait != 0 || view.Ownership.State != dcv.Proven || view.CheckedAt == nil || time.Since(began) > 3*time.Second {
					t.Errorf("after %v: %+v, %v, %v", time.Since(began), view, wait, err)
				}
			})
		}
		asking.Wait()
		if n := len(w.taken("asked.example", began)); n != 1 {
			t.Errorf("%d checks", n)
		}
		view, wait, err := s.Check(t.Context(), subjectOf(w, "asked.example"))
		if err != nil || wait <= 0 || wait > 10*time.Second || view.Ownership.State != dcv.Proven {
			t.Errorf("again: %+v, %v, %v", view.Ownership, wait, err)
		}
		if n := len(w.taken("asked.example", began)); n != 0 {
			t.Errorf("%d checks within ten seconds", n)
		}
		after(wait)
		if _, wait, err := s.Check(t.Context(), subjectOf(w, "asked.example")); err != nil || wait != 0 {
			t.Errorf("after the wait: %v, %v", wait, err)
		}
	})
}

// TestOnDemandSlow: a check that takes longer than an answer may is answered with what is known, and ends later.
func TestOnDemandSlow(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.takes = 30 * time.Second
	w.says(present)
	w.put("slow.example", catalog.VerifiedPending)
	during(t, w, func(t *testing.T, s *verify.Service) {
		began := time.Now()
		view, wait, err := s.Check(t.Context(), subjectOf(w, "slow.example"))
		if err != nil || wait <= 0 || view.Ownership.State != dcv.Pending || time.Since(began) > 10*time.Second {
			t.Errorf("after %v: %+v, %v, %v", time.Since(began), view.Ownership, wait, err)
		}
		after(30 * time.Second)
		if got := w.verified("slow.example"); got != today {
			t.Errorf("it has %q", got)
		}
	})
}

// TestOnDemandRefused: a domain that goes while it is checked is not found, what keeps the result from the files is told,
// and a node that checks nothing says so.
func TestOnDemandRefused(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.takes = time.Second
	w.says(present)
	w.put("gone.example", catalog.VerifiedPending)
	w.put("held.example", catalog.VerifiedPending)
	w.onCheck = func(name string) {
		if name == "gone.example" {
			w.remove(name)
		}
	}
	w.writeErr = &catalog.Error{Code: catalog.CodeUnavailable, Message: "git is at work"}
	during(t, w, func(t *testing.T, s *verify.Service) {
		if _, _, err := s.Check(t.Context(), subjectOf(w, "gone.example")); !catalog.IsNotFound(err) {
			t.Errorf("gone: %v", err)
		}
		if _, _, err := s.Check(t.Context(), subjectOf(w, "held.example")); !errors.Is(err, w.writeErr) {
			t.Errorf("held: %v", err)
		}
		if got := w.verified("held.example"); got != catalog.VerifiedPending {
			t.Errorf("held: %q", got)
		}
		idle := verify.New(verify.Options{Domains: w, Changes: w, Ledger: w, Trail: w})
		if _, _, err := idle.Check(t.Context(), subjectOf(w, "held.example")); !errors.Is(err, verify.ErrReadOnly) {
			t.Errorf("a node that may not write: %v", err)
		}
		if view, err := idle.View(t.Context(), subjectOf(w, "held.example")); err != nil || view.Ownership.State != dcv.Pending ||
			view.NextCheckAt != nil || len(view.Records) == 0 {
			t.Errorf("a node that may not write shows %+v, %v", view, err)
		}
	})
}

// TestOnDemandFlood: any number of domains at once is bounded, waits its turn or is refused, and the background goes on.
func TestOnDemandFlood(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.takes = time.Second
	for i := range 500 {
		w.put(fmt.Sprintf("%d.example", i), "")
	}
	w.put("waits.example", catalog.VerifiedPending)
	during(t, w, func(t *testing.T, s *verify.Service) {
		began := time.Now()
		after(10 * time.Second) // its first check is due while all others are asked for
		var asking sync.WaitGroup
		refused, answered := 0, 0
		var mu sync.Mutex
		for i := range 500 {
			asking.Go(func() {
				_, _, err := s.Check(t.Context(), subjectOf(w, fmt.Sprintf("%d.example", i)))
				mu.Lock()
				defer mu.Unlock()
				if e := (*catalog.Error)(nil); errors.As(err, &e) && e.Code == catalog.CodeUnavailable {
					refused++
				} else if err == nil {
					answered++
				} else {
					t.Error(err)
				}
			})
		}
		asking.Wait()
		if most := w.atOnce(); answered < 50 || refused < 300 || most > 20 {
			t.Errorf("%d answered, %d refused, %d checks at a time", answered, refused, most)
		}
		if at := w.taken("waits.example", began); len(at) == 0 || at[0] > 18*time.Second {
			t.Errorf("the background waits: %v", at)
		}
	})
}

// TestOnDemandWithoutBlock: a check on demand works without a verification block, and its proof is written.
func TestOnDemandWithoutBlock(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.on = false
	w.says(present)
	w.put("shop.example", catalog.VerifiedPending)
	during(t, w, func(t *testing.T, s *verify.Service) {
		view, _, err := s.Check(t.Context(), subjectOf(w, "shop.example"))
		if err != nil || view.Ownership.State != dcv.Proven || view.NextCheckAt != nil || w.verified("shop.example") != today {
			t.Errorf("%+v, %v, %q", view, err, w.verified("shop.example"))
		}
	})
}

// TestEnds: a service that ends cuts its checks off without a result, and stores what it has found before.
func TestEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.put("done.example", catalog.VerifiedPending)
		s, stop := w.run(t)
		after(15 * time.Second) // its note waits for the next batch
		w.takes = time.Hour
		w.says(present)
		ended := make(chan error, 1)
		go func() {
			_, _, err := s.Check(context.Background(), subjectOf(w, "done.example"))
			ended <- err
		}()
		w.put("cut.example", catalog.VerifiedPending)
		after(16 * time.Second)
		began := time.Now()
		stop()
		if took := time.Since(began); took > time.Second {
			t.Errorf("it took %v to end", took)
		}
		<-ended
		if w.notes[noteID(project(1), "done.example")] == nil || len(w.written) > 0 {
			t.Errorf("notes %d, written %v", len(w.notes), w.written)
		}
		if _, _, err := s.Check(t.Context(), subjectOf(w, "cut.example")); err == nil {
			t.Error("a check after the end")
		}
	})
}

// TestClockSetBack: a node whose clock was a year ahead when it noted a check goes on after the next start: on demand at
// once (here without a background), and by itself.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	for _, onDemand := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			w.says(present)
			w.put("shop.example", catalog.VerifiedPending)
			ahead := time.Now().Add(365 * 24 * time.Hour)
			facts := factsOf(subjectOf(w, "shop.example"), w.policy, absent)
			facts.At = ahead
			state, _ := dcv.Decide(dcv.State{}, subjectOf(w, "shop.example"), w.policy, facts, ahead)
			note, err := state.Encode()
			if err != nil {
				t.Fatal(err)
			}
			w.notes[noteID(project(1), "shop.example")] = note
			w.on = !onDemand
			s, stop := w.run(t)
			defer stop()
			if onDemand {
				if view, wait, err := s.Check(t.Context(), subjectOf(w, "shop.example")); err != nil || wait != 0 || view.Ownership.State != dcv.Proven {
					t.Errorf("%+v, %v, %v", view.Ownership, wait, err)
				}
			}
			after(time.Second)
			if got := w.verified("shop.example"); got != today {
				t.Errorf("on demand %v: the file has %q", onDemand, got)
			}
		})
	}
}
