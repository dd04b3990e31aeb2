package verify_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"fingerpost/configsrc/verify"
	"fingerpost/configsrc/verify/dcv"
	"fingerpost/resolver/catalog"
)

// today is the day of a proof in a bubble, whose clock begins on 2000-01-01.
const today = "2000-01-01"

// TestPending: a domain that somebody waits for is checked ever more rarely, and for ever.
func TestPending(t *testing.T) {
	t.Parallel()
	w := newWorld()
	during(t, w, func(t *testing.T, s *verify.Service) {
		began := time.Now()
		w.put("shop.example", catalog.VerifiedPending)
		after(31 * time.Minute)
		var at []time.Duration
		for _, d := range w.taken("shop.example", began) {
			at = append(at, d.Round(time.Second))
		}
		want := []time.Duration{15 * time.Second, 45 * time.Second, 105 * time.Second, 225 * time.Second, 525 * time.Second,
			1425 * time.Second}
		if !slices.Equal(at, want) {
			t.Errorf("checked after %v, want %v", at, want)
		}
		after(24 * time.Hour)
		if n := len(w.taken("shop.example", began)); n != 24 {
			t.Errorf("%d checks within a day, want one an hour", n)
		}
		after(10 * 24 * time.Hour)
		w.taken("shop.example", began)
		after(5 * 24 * time.Hour)
		if n := len(w.taken("shop.example", began)); n != 5 {
			t.Errorf("%d checks within five days, want one a day", n)
		}
		if state := ownership(t, s, "shop.example"); state != dcv.Pending || len(w.writes()) > 0 {
			t.Errorf("it is %s, and %v was written", state, w.writes())
		}
	})
}

// TestProven: the first proof is written once, and is looked for once a day when the domain is ready.
func TestProven(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.put("shop.example", catalog.VerifiedPending)
	w.put("trusted.example", "")
	during(t, w, func(t *testing.T, s *verify.Service) {
		began := time.Now()
		after(20 * time.Second)
		w.says(ready)
		after(time.Minute)
		if got := w.verified("shop.example"); got != today || len(w.writes()) != 1 {
			t.Fatalf("the file has %q after the writes %v", got, w.writes())
		}
		if state := ownership(t, s, "shop.example"); state != dcv.Proven {
			t.Errorf("it is %s", state)
		}
		if n := len(w.taken("shop.example", began)); n != 2 {
			t.Errorf("%d checks, want one without and one with the proof", n)
		}
		after(10 * 24 * time.Hour)
		if n := len(w.taken("shop.example", began)); n < 9 || n > 11 {
			t.Errorf("%d checks within ten days", n)
		}
		if len(w.writes()) != 1 || len(w.noted()) != 0 || w.verified("trusted.example") != "" {
			t.Errorf("written %v, noted %v, trusted %q", w.writes(), w.noted(), w.verified("trusted.example"))
		}
	})
}

// TestSetUp: once its proof is there, a domain that does not point here yet is checked often, and is soon seen to be ready.
func TestSetUp(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.says(present)
	w.put("shop.example", catalog.VerifiedPending)
	during(t, w, func(t *testing.T, s *verify.Service) {
		began := time.Now()
		after(time.Hour)
		if n := len(w.taken("shop.example", began)); n != 7 {
			t.Errorf("%d checks in the hour after the proof", n)
		}
		w.says(ready)
		after(time.Hour)
		view, err := s.View(t.Context(), subjectOf(w, "shop.example"))
		if err != nil || !view.Ready || time.Until(view.NextCheckAt.Time) < 20*time.Hour {
			t.Errorf("%+v, %v", view, err)
		}
		after(12 * time.Hour)
		if n := len(w.taken("shop.example", began)); n != 1 {
			t.Errorf("%d checks of a domain that became ready", n)
		}
	})
}

// TestLost: a proof that stays gone fails at the first miss and is lost after the grace. What name servers do not say
// definitely changes nothing. Only with on_lost = "block" the file changes; found again, it gets the day of the new proof.
func TestLost(t *testing.T) {
	t.Parallel()
	for _, block := range []bool{false, true} {
		w := newWorld()
		w.policy.Block = block
		w.says(present)
		w.put("shop.example", catalog.VerifiedPending)
		during(t, w, func(t *testing.T, s *verify.Service) {
			after(time.Minute)
			is := func(when, state, verified string) {
				t.Helper()
				if got := ownership(t, s, "shop.example"); got != state || w.verified("shop.example") != verified {
					t.Errorf("block %v, %s: %s, %q, want %s, %q", block, when, got, w.verified("shop.example"), state, verified)
				}
			}
			is("found", dcv.Proven, today)
			w.says(silent)
			after(10 * 24 * time.Hour)
			is("silent", dcv.Proven, today)
			w.says(absent)
			after(28 * time.Hour)
			is("missed", dcv.Failing, today)
			if st := s.Status(); len(st.Trouble) != 1 || st.Trouble[0].Domain != "shop.example" || st.Trouble[0].Project != "acme" ||
				st.Trouble[0].Since.IsZero() || st.Trouble[0].Misses == 0 || st.Ownership[dcv.Failing] != 1 {
				t.Errorf("block %v: the status is %+v", block, st)
			}
			after(73 * time.Hour)
			lost := today
			if block {
				lost = catalog.VerifiedLost
			}
			is("missed for the grace", dcv.Lost, lost)
			w.says(present)
			after(2 * time.Hour)
			again := today
			if block {
				again = time.Now().UTC().Format(time.DateOnly)
			}
			is("found again", dcv.Proven, again)
			want := "[domain.failing 1 shop.example dns domain.lost 1 shop.example dns domain.verify 1 shop.example dns]"
			if block {
				want = "[domain.failing 1 shop.example dns]" // the writes have entries of their own
			}
			if fmt.Sprint(w.noted()) != want {
				t.Errorf("block %v: the audit trail has %v, want %s", block, w.noted(), want)
			}
		})
	}
}

// TestPeopleWin: what a person wrote is not taken back: a "lost" stays lost with the proof present, and a day stays
// while the service has never seen its proof. A person's edit while a check is out, or between the decision and the write,
// stays.
func TestPeopleWin(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.policy.Block = true
	w.put("lost.example", catalog.VerifiedLost)
	w.put("day.example", "1999-12-31")
	w.put("edited.example", catalog.VerifiedPending)
	w.put("late.example", catalog.VerifiedPending)
	w.answer = func(s dcv.Subject, p dcv.Policy) dcv.Facts {
		if s.Name == "day.example" {
			return factsOf(s, p, absent)
		}
		return factsOf(s, p, present)
	}
	w.onCheck = func(name string) {
		if name == "edited.example" && w.verified(name) == catalog.VerifiedPending {
			w.put(name, catalog.VerifiedLost)
		}
	}
	w.onWrite = func() {
		if w.verified("late.example") == catalog.VerifiedPending {
			w.put("late.example", catalog.VerifiedLost)
		}
	}
	during(t, w, func(t *testing.T, s *verify.Service) {
		after(20 * 24 * time.Hour)
		for name, want := range map[string]string{"lost.example": catalog.VerifiedLost, "day.example": "1999-12-31",
			"edited.example": catalog.VerifiedLost, "late.example": catalog.VerifiedLost} {
			if got := w.verified(name); got != want {
				t.Errorf("%s has %q, want %q; written %v", name, got, want, w.writes())
			}
		}
		if written := w.writes(); len(written) > 0 {
			t.Errorf("written: %v", written)
		}
		w.put("late.example", catalog.VerifiedPending) // the person changes her mind
		w.set(func() { w.onWrite = nil })
		after(time.Minute)
		if got := w.verified("late.example"); got == catalog.VerifiedPending || got == catalog.VerifiedLost {
			t.Errorf("it has %q", got)
		}
	})
}

// TestGone: the result of a check whose domain was removed, has moved to another project or has another name meanwhile is
// dropped, with its notes: the new domain begins without a proof.
func TestGone(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(w *world){
		"removed": func(w *world) { w.remove("shop.example") },
		"moved":   func(w *world) { w.put("shop.example", catalog.VerifiedPending, 2) },
		"renamed": func(w *world) {
			w.remove("shop.example")
			w.put("other.example", catalog.VerifiedPending)
		},
		"removed and added by another project": func(w *world) {
			w.remove("shop.example")
			synctest.Wait()
			w.put("shop.example", catalog.VerifiedPending, 2)
		},
	} {
		w := newWorld()
		w.takes = 5 * time.Second
		w.put("shop.example", catalog.VerifiedPending)
		during(t, w, func(t *testing.T, s *verify.Service) {
			after(40 * time.Second) // the first check has a note
			w.mu.Lock()
			w.answer = func(s dcv.Subject, p dcv.Policy) dcv.Facts {
				if s.Project == project(1) && s.Name == "shop.example" {
					return factsOf(s, p, present) // a record left over
				}
				return factsOf(s, p, absent)
			}
			noted, checked := len(w.notes), len(w.checks)
			w.mu.Unlock()
			after(12 * time.Second) // the second check is out
			if noted != 1 || len(w.made()) != checked+1 || len(w.writes()) > 0 {
				t.Fatalf("%s: %d notes, %d checks, written %v", what, noted, len(w.made()), w.writes())
			}
			change(w)
			after(time.Hour)
			if len(w.writes()) > 0 || len(w.noted()) > 0 {
				t.Errorf("%s: written %v, noted %v", what, w.writes(), w.noted())
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			for id := range w.notes {
				if id == noteID(project(1), "shop.example") {
					t.Errorf("%s: the note of the old domain is there still", what)
				}
			}
		})
	}
}

// TestRestart: a restarted service knows what it knew, and takes back its own "lost". What is pending and overdue is
// checked first, the rest is spread over an hour.
func TestRestart(t *testing.T) {
	t.Parallel()
	const settled = 200
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.policy.Block = true
		w.says(present)
		for i := range settled {
			w.put(fmt.Sprintf("%d.example", i), "1999-12-01")
		}
		w.put("shop.example", catalog.VerifiedPending)
		_, stop := w.run(t)
		after(2 * time.Hour)
		w.mu.Lock()
		w.answer = func(s dcv.Subject, p dcv.Policy) dcv.Facts {
			if strings.HasPrefix(s.Name, "shop.") || strings.HasPrefix(s.Name, "new.") {
				return factsOf(s, p, absent)
			}
			return factsOf(s, p, present)
		}
		w.mu.Unlock()
		after(5 * 24 * time.Hour)
		if got := w.verified("shop.example"); got != catalog.VerifiedLost {
			t.Fatalf("it has %q", got)
		}
		w.put("new.example", catalog.VerifiedPending)
		after(time.Hour)
		stop()
		after(40 * 24 * time.Hour) // everything is overdue
		w.says(present)
		w.set(func() { w.takes, w.checks = 100*time.Millisecond, nil })
		began := time.Now()
		s, stop := w.run(t)
		defer stop()
		after(time.Minute)
		if got, day := w.verified("new.example"), began.UTC().Format(time.DateOnly); got != day || w.verified("shop.example") != day {
			t.Errorf("a minute after the start: %q, %q", got, w.verified("shop.example"))
		}
		early := w.made()
		if len(early) > settled/10 {
			t.Errorf("%d checks in the first minute", len(early))
		}
		first := early[0].name
		if first != "new.example" && first != "shop.example" {
			t.Errorf("%s was checked first", first)
		}
		after(time.Hour)
		if n := len(w.made()); n < settled || n > settled+20 {
			t.Errorf("%d checks in the first hour", n)
		}
		if state := ownership(t, s, "shop.example"); state != dcv.Proven {
			t.Errorf("it is %s", state)
		}
	})
}

// TestCrash ends the service at each moment of a write, with what is durable then: the next one comes to the same end, and
// knows the write as its own, so that it can take it back.
func TestCrash(t *testing.T) {
	t.Parallel()
	moments := map[string]func(w *world, crash func()){
		"before the write": func(w *world, crash func()) { w.onWrite = crash },
		"after the write":  func(w *world, crash func()) { w.afterWrite = crash },
		"without the intention": func(w *world, crash func()) {
			w.onCheck = func(string) { crash() }
		},
	}
	for name, at := range moments {
		for _, lose := range []bool{false, true} { // the write is the proof, or that it is lost
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.policy.Block = true
				w.says(present)
				w.put("shop.example", catalog.VerifiedPending)
				_, stop := w.run(t)
				if lose {
					after(time.Minute)
					w.says(absent)
					after(2 * 24 * time.Hour) // failing, and not lost yet
				}
				var kept atomic.Pointer[world]
				w.set(func() { at(w, func() { kept.CompareAndSwap(nil, w.clone()) }) })
				after(2 * 24 * time.Hour)
				stop()
				left := kept.Load()
				if left == nil {
					t.Fatalf("%s: it was not reached", name)
				}
				s, stop := left.run(t)
				defer stop()
				after(3 * 24 * time.Hour)
				want := []string{dcv.Proven, dcv.Lost}[map[bool]int{false: 0, true: 1}[lose]]
				if got := ownership(t, s, "shop.example"); got != want {
					t.Errorf("%s, lose %v: after the crash it is %s, %q", name, lose, got, left.verified("shop.example"))
				}
				left.says(absent)
				after(6 * 24 * time.Hour)
				if got := left.verified("shop.example"); got != catalog.VerifiedLost {
					t.Errorf("%s, lose %v: the proof is gone, and it has %q", name, lose, got)
				}
				left.says(present)
				after(2 * 24 * time.Hour)
				if got := ownership(t, s, "shop.example"); got != dcv.Proven {
					t.Errorf("%s, lose %v: the proof is back, and it is %s, %q", name, lose, got, left.verified("shop.example"))
				}
			})
		}
	}
}

// TestCrashThenPerson: a write that a crash has prevented is forgotten: when a person writes the same value later, it is the
// person's.
func TestCrashThenPerson(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.policy.Block = true
		w.says(present)
		w.put("shop.example", catalog.VerifiedPending)
		_, stop := w.run(t)
		after(time.Minute)
		w.says(absent)
		var kept atomic.Pointer[world]
		w.set(func() { w.onWrite = func() { kept.Store(w.clone()) } })
		after(6 * 24 * time.Hour)
		stop()
		left := kept.Load()
		left.takes = time.Minute
		_, stop = left.run(t)
		defer stop()
		after(time.Second) // before the first check has ended
		left.put("shop.example", catalog.VerifiedLost)
		after(time.Minute)
		left.says(present)
		after(10 * 24 * time.Hour)
		if got := left.verified("shop.example"); got != catalog.VerifiedLost {
			t.Errorf("a person wrote lost, and it has %q", got)
		}
	})
}

// clone returns a world with what is durable in w.
func (w *world) clone() *world {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := newWorld()
	c.policy, c.answer = w.policy, w.answer
	for k, v := range w.domains {
		c.domains[k] = v
	}
	for k, v := range w.notes {
		c.notes[k] = v
	}
	return c
}

// TestWriteFails: while the files refuse, the domain is what it was, its write is tried again every minute, and the status
// has the reason.
func TestWriteFails(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.says(present)
	w.writeErr = &catalog.Error{Code: catalog.CodeUnavailable, Message: "git is at work"}
	w.put("shop.example", catalog.VerifiedPending)
	during(t, w, func(t *testing.T, s *verify.Service) {
		after(20 * time.Second)
		began := time.Now()
		w.taken("shop.example", began)
		after(10 * time.Minute)
		if n := len(w.taken("shop.example", began)); n < 9 || n > 11 {
			t.Errorf("%d tries within ten minutes", n)
		}
		st := s.Status()
		if len(st.Unwritten) != 1 || st.Unwritten[0].Domain != "shop.example" || !strings.Contains(st.Unwritten[0].Error, "git is at work") {
			t.Errorf("the status has %+v", st.Unwritten)
		}
		if state := ownership(t, s, "shop.example"); state != dcv.Pending {
			t.Errorf("it is %s", state)
		}
		w.mu.Lock()
		w.writeErr = nil
		w.mu.Unlock()
		after(2 * time.Minute)
		if got := w.verified("shop.example"); got != today || len(s.Status().Unwritten) > 0 {
			t.Errorf("it has %q, status %+v", got, s.Status().Unwritten)
		}
	})
}

// TestLedgerRefuses: without the ledger nothing is checked in the background and nothing written; when it is back,
// everything goes on.
func TestLedgerRefuses(t *testing.T) {
	t.Parallel()
	for _, atStart := range []bool{true, false} {
		w := newWorld()
		w.says(present)
		fail := func(err error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.ledgerErr = err
		}
		if atStart {
			fail(errors.New("the disk is full"))
		}
		w.put("shop.example", catalog.VerifiedPending)
		during(t, w, func(t *testing.T, s *verify.Service) {
			if !atStart {
				fail(errors.New("the disk is full"))
			}
			after(time.Hour)
			if len(w.writes()) > 0 || w.verified("shop.example") != catalog.VerifiedPending {
				t.Fatalf("written: %v", w.writes())
			}
			if n := len(w.made()); n > 1 {
				t.Errorf("%d checks, whose results are lost", n)
			}
			if st := s.Status(); !atStart && st.Problem == "" {
				t.Errorf("the status has no problem: %+v", st)
			}
			if _, err := s.View(t.Context(), dcv.Subject{Project: project(1), Name: "shop.example"}); err == nil {
				t.Error("a view without the ledger")
			}
			fail(nil)
			after(2 * time.Minute)
			if got := w.verified("shop.example"); got != today {
				t.Errorf("it has %q", got)
			}
		})
	}
}

// TestBlock: without a verification block nothing is checked or counted; with it the checks begin, and they end when it
// goes. Require all makes a domain pending that people wrote.
func TestBlock(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.on = false
	w.put("shop.example", catalog.VerifiedPending)
	w.put("plain.example", "")
	during(t, w, func(t *testing.T, s *verify.Service) {
		after(48 * time.Hour)
		s.EachCount(func(axis, state string, n int) { t.Errorf("%d %s without a block", n, state) })
		if len(w.made()) > 0 || s.Status() != nil || len(w.notes) > 0 {
			t.Errorf("%d checks without a block", len(w.made()))
		}
		if state := ownership(t, s, "shop.example"); state != dcv.Pending {
			t.Errorf("it is %s", state)
		}
		w.block(true, func(p *dcv.Policy) { p.Require = catalog.RequireAll })
		after(time.Minute)
		if a, b := ownership(t, s, "shop.example"), ownership(t, s, "plain.example"); a != dcv.Pending || b != dcv.Pending || len(w.made()) < 4 {
			t.Errorf("%s, %s, %d checks", a, b, len(w.made()))
		}
		w.block(true, func(p *dcv.Policy) { p.Require = catalog.RequireNone })
		after(time.Minute)
		if state := ownership(t, s, "plain.example"); state != dcv.Trusted {
			t.Errorf("it is %s", state)
		}
		w.block(false, func(*dcv.Policy) {})
		after(time.Minute)
		w.set(func() { w.checks, w.named = nil, 0 })
		w.put("late.example", "")
		after(48 * time.Hour)
		if len(w.made()) > 0 || s.Status() != nil || w.named > 0 {
			t.Errorf("%d checks and %d domains read after the block has gone", len(w.made()), w.named)
		}
	})
}
