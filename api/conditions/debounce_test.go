package conditions_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"fingerpost/api/conditions"
	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

// A story is a Debouncer with a clock that the test moves. It notes what is told, as a node does, and starts again.
type story struct {
	t    *testing.T
	d    *conditions.Debouncer
	now  time.Time
	note string              // what has begun, as it is kept
	told []string            // "+object" and "-object", not read by says yet
	at   map[string][]string // all of it, by object
	when []time.Time         // of each
}

const wait = time.Minute

func newStory(t *testing.T) *story {
	s := &story{t: t, now: at, note: "[]", at: map[string][]string{}}
	s.start()
	return s
}

// start is a start of the process.
func (s *story) start() {
	var begun []conditions.Begun
	if err := json.Unmarshal([]byte(s.note), &begun); err != nil {
		s.t.Fatal(err)
	}
	s.d = conditions.NewDebouncer(wait, begun)
}

// look has the Debouncer look every five seconds for as long as is given.
func (s *story) look(long time.Duration, list ...conditions.Condition) {
	for end := s.now.Add(long); s.now.Before(end); s.now = s.now.Add(5 * time.Second) {
		s.accept(s.d.Look(s.now, list))
	}
}

func (s *story) accept(turn *conditions.Transitions) {
	note, err := json.Marshal(s.d.After(turn))
	if err != nil {
		s.t.Fatal(err)
	}
	s.d.Accept(turn)
	s.note = string(note)
	for i, list := range [][]conditions.Begun{turn.Began, turn.Ended} {
		for j := range list {
			e := list[j].Entry(i == 1)
			what := string("+-"[i])
			if last := s.at[e.Object]; len(last) > 0 && last[len(last)-1] == what || len(last) == 0 && i == 1 {
				s.t.Errorf("%s: %s after %v", e.Object, what, last)
			}
			s.at[e.Object] = append(s.at[e.Object], what)
			s.told, s.when = append(s.told, what+e.Object), append(s.when, s.now)
		}
	}
}

// says checks what was told since the last call.
func (s *story) says(want ...string) {
	s.t.Helper()
	if !slices.Equal(s.told, want) {
		s.t.Errorf("told %q, want %q", s.told, want)
	}
	s.told = nil
}

func condition(id, subject string) conditions.Condition {
	return conditions.Condition{ID: id, Subject: subject, Sentence: "It is so: " + subject + ".", Of: "domain",
		Many: "The proofs of %s are gone."}
}

func several(id string, n int) (list []conditions.Condition) {
	for i := range n {
		list = append(list, condition(id, fmt.Sprintf("domain %05d.example", i)))
	}
	return list
}

// TestDebouncer: each condition is told of once when it begins and once when it ends, over restarts, too.
func TestDebouncer(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	broken, edge := condition("files-broken", ""), condition("edge-missing", "edge fra1")
	s.look(wait-5*time.Second, broken) // a person saves the file again
	s.look(wait)
	s.says()
	s.look(wait, broken)
	s.says()
	s.look(time.Hour, broken, edge, broken)
	s.says("+files-broken", "+edge-missing edge fra1")
	s.start()
	s.look(wait, broken, edge)
	s.look(wait) // gone, and not for long
	s.look(time.Hour, broken, edge)
	s.says()
	s.look(wait, edge)
	s.start() // it was gone before, too
	s.look(wait, edge)
	s.says()
	s.look(wait, edge)
	s.says("-files-broken")
	s.start()
	s.look(2 * wait)
	s.says("-edge-missing edge fra1")
	if s.note != "[]" {
		t.Errorf("it keeps %s", s.note)
	}
	s.look(time.Hour, condition("not-ready", ""), condition("audit-unavailable", ""), condition("domain-pending", ""),
		condition("files-warned", ""))
	s.says() // silent kinds
}

// TestDebouncerFlaps: a condition that flaps is told of less and less, and one that was quiet for long begins anew.
func TestDebouncerFlaps(t *testing.T) {
	t.Parallel()
	f := func(holds, gone time.Duration, most int) {
		t.Helper()
		s := newStory(t)
		for end := at.Add(24 * time.Hour); s.now.Before(end); {
			s.look(holds, condition("git-conflict", ""))
			s.look(gone)
		}
		if n := len(s.told); n > most {
			t.Errorf("%d entries of a day in which it holds for %s and is gone for %s", n, holds, gone)
		}
		s.look(2*time.Hour + wait)
		if n := len(s.at["git-conflict"]); n%2 != 0 {
			t.Error("it has not ended")
		}
		s.told = nil
		s.look(2*wait, condition("git-conflict", ""))
		s.look(2 * wait)
		s.says("+git-conflict", "-git-conflict")
	}
	f(5*time.Second, 5*time.Second, 0)
	f(2*wait, 5*time.Second, 1)
	f(2*wait, 2*wait, 4)
	f(2*wait, 10*wait, 10)
	f(5*wait, 30*wait, 12)
	f(2*wait, 70*wait, 48)
}

// TestDebouncerFloods: ten thousand failing domains are one condition, and other kinds do not wait for them.
func TestDebouncerFloods(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.look(2*wait, several("domain-failing", 3)...)
	s.says("+domain-failing domain 00000.example", "+domain-failing domain 00001.example", "+domain-failing domain 00002.example")
	flood := several("domain-failing", 100)
	flood[0].More = 9900
	slices.Reverse(flood[10:]) // which are listed changes
	s.look(2*wait, append(flood, condition("git-conflict", ""))...)
	s.says("+domain-failing", "+git-conflict")
	turn := s.d.Look(s.now, nil)
	if all := s.d.After(turn); all[0].Count != 10_000 || all[0].Sentence != "The proofs of 10000 domains are gone." ||
		all[0].Detail != "" || all[0].ProjectID != 0 {
		t.Errorf("%+v", all[0])
	}
	s.look(time.Hour, append(flood[5:], condition("git-conflict", ""))...)
	s.says() // it is not known which have ended
	s.look(2*wait, several("domain-failing", 20)...)
	if len(s.told) != 19 || !slices.Contains(s.told, "-domain-failing") || !slices.Contains(s.told, "-git-conflict") {
		t.Errorf("after the flood: %q", s.told)
	}
	s.told = nil
	s.look(2 * time.Hour)
	if len(s.told) != 20 {
		t.Errorf("%d of 20 have ended", len(s.told))
	}

	// Other domains each minute.
	s = newStory(t)
	for n := 0; n < 4*60; n += 2 {
		list := several("domain-failing", 20)
		for i := range list {
			list[i].Subject += fmt.Sprint(n)
		}
		s.look(2*wait, list...)
	}
	if n := len(s.told); n > 20+2*4*60 {
		t.Errorf("%d entries a day", n)
	}
	s.told = nil
	s.look(2*wait, append(several("domain-failing", 20), condition("git-conflict", ""))...)
	if !slices.Contains(s.told, "+git-conflict") {
		t.Errorf("another kind waits for domains: %q", s.told)
	}
}

// TestDebouncerProperties: whatever comes and goes, with restarts and with writes that fail, beginnings and ends take turns
// for each condition, a kind has a bounded number of them in any minute, and once it is quiet what has begun is what is so.
func TestDebouncerProperties(t *testing.T) {
	t.Parallel()
	ids := []string{"files-broken", "git-conflict", "domain-failing", "edge-missing"}
	for seed := range uint64(testrig.Size(t, 150, testrig.Part(20))) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := newStory(t)
		var list []conditions.Condition
		for range 60 {
			if r.IntN(3) > 0 {
				list = list[:0:0]
				for _, id := range ids {
					list = append(list, several(id, r.IntN(4)*r.IntN(12))...)
				}
				r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
				slices.SortStableFunc(list, func(a, b conditions.Condition) int { return strings.Compare(a.ID, b.ID) })
			}
			switch r.IntN(8) {
			case 0:
				s.start()
			case 1:
				s.d.Look(s.now, list) // and the ledger refuses
			}
			s.look(time.Duration(r.IntN(300))*time.Second, list...)
			if len(s.d.After(new(conditions.Transitions))) > len(ids)*21 {
				t.Fatalf("seed %d: more have begun than a node keeps", seed)
			}
		}
		s.look(3*time.Hour, list...)
		want, counts := map[string]bool{}, map[string]int{}
		for _, c := range list {
			counts[c.ID]++
		}
		for _, c := range list {
			if counts[c.ID] > 20 {
				want[c.ID] = true
			} else {
				want[catalog.ConditionObject(c.ID, c.Subject)] = true
			}
		}
		for object, told := range s.at {
			id, _, single := strings.Cut(object, " ")
			begun := len(told)%2 == 1
			if begun != want[object] && !(begun && single && counts[id] > 20) {
				t.Errorf("seed %d: %s has begun: %t, want %t (%v)", seed, object, begun, want[object], told)
			}
			delete(want, object)
		}
		if len(want) > 0 {
			t.Errorf("seed %d: %v were not told", seed, want)
		}
		for i, from := range s.when {
			n := 0
			for _, at := range s.when[i:] {
				if at.Sub(from) < time.Minute {
					n++
				}
			}
			if n > len(ids)*2*22 { // a restart may come between
				t.Errorf("seed %d: %d in one minute", seed, n)
			}
		}
	}
}

// TestBegunEntry: what an entry has to say, and what keeps a webhook from hearing of itself.
func TestBegunEntry(t *testing.T) {
	t.Parallel()
	of := conditions.Of(everything())
	for i := range of {
		c := &of[i]
		k := conditions.KindOf(c.ID)
		if k.SilentFor() != "" {
			continue
		}
		d := conditions.NewDebouncer(0, nil)
		turn := d.Look(at, of[i:i+1])
		if len(turn.Began) != 1 {
			t.Errorf("%s does not begin", c.ID)
			continue
		}
		e := turn.Began[0].Entry(false)
		after := map[string]any{}
		for _, change := range e.Changes {
			if after[change.Field] = change.After; change.Before != nil {
				t.Errorf("%+v", change)
			}
		}
		if e.Action != "condition.begins" || e.Object != catalog.ConditionObject(c.ID, c.Subject) || e.ProjectID != c.Project ||
			!slices.Contains([]catalog.Door{"file", "git", "cluster", "dns"}, e.Door) || after["severity"] != string(c.Severity) ||
			after["sentence"] != c.Sentence || after["remedy"] != c.Remedy || after["guide"] != c.Guide || after["since"] == nil ||
			(after["detail"] != nil) != (c.Project == 0 && c.Detail != "") {
			t.Errorf("%+v of %+v", e, c)
		}
		if own, is := strings.CutPrefix(c.Subject, "webhook "); e.TellsOf(own) != is || e.TellsOf("other") || e.TellsOf("") {
			t.Errorf("%s tells of a webhook: %t", e.Object, is)
		}
		end := turn.Began[0].Entry(true)
		for j, change := range end.Changes {
			if change.After != nil || change.Before != e.Changes[j].After {
				t.Errorf("%+v", change)
			}
		}
		if end.Action != "condition.ends" || len(end.Changes) != len(e.Changes) {
			t.Errorf("%+v", end)
		}
	}
	future := conditions.Begun{ID: "of-a-newer-build", Sentence: "It is so."}
	if e := future.Entry(true); e.Object != "of-a-newer-build" || e.Door != "file" || len(e.Changes) == 0 {
		t.Errorf("%+v", e)
	}
}
