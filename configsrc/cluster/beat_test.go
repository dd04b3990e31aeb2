package cluster

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"fingerpost/resolver/catalog"
)

// TestLagOfALongCut: the lag of an edge that is away grows as long as it is away, also under many writes.
func TestLagOfALongCut(t *testing.T) {
	t.Parallel()
	now := time.Now()
	e := edges{now: func() time.Time { return now }}
	at := func(generation uint64) catalog.Position {
		return catalog.Position{Epoch: "8f3a21c09b7e44d1", Generation: generation}
	}
	const every, last = 50 * time.Millisecond, 50_000
	for generation := range uint64(last) {
		now = now.Add(every)
		e.committed(at(generation + 1))
		if generation == 0 {
			e.hear("fra1", []byte(`{"position":"8f3a21c09b7e44d1.1","ready":true}`))
		}
		if generation == last-10 {
			e.hear("ams1", []byte(`{"position":"`+at(generation+1).String()+`","ready":true}`))
		}
	}
	for _, s := range e.status(nil, at(last)) {
		want := map[string]time.Duration{"fra1": (last - 2) * every, "ams1": 8 * every}[s.Name]
		if diff := s.LagMS - ms(want); diff < -0.02*ms(want) || diff > 0.02*ms(want) {
			t.Errorf("%s has a lag of %v ms, want about %v", s.Name, s.LagMS, want)
		}
	}
	now = now.Add(time.Second)
	e.hear("fra1", []byte(`{"position":"8f3a21c09b7e44d1.1","ready":true}`)) // it is back, and reads
	if s := e.status(nil, at(last))[1]; s.LagMS < ms((last-2)*every) {
		t.Errorf("back, it has a lag of %v ms", s.LagMS)
	}
	e.hear("fra1", []byte(`{"position":"`+at(last).String()+`","ready":true}`))
	if s := e.status(nil, at(last))[1]; s.LagMS != 0 || !s.Current {
		t.Errorf("up to date, it has a lag of %v ms", s.LagMS)
	}
}

// TestTwoProcessesWithOneName: an edge that was started again is no second one.
func TestTwoProcessesWithOneName(t *testing.T) {
	t.Parallel()
	now := time.Now()
	e := edges{now: func() time.Time { return now }}
	for i, c := range []struct {
		instance string
		two      bool
	}{{"a", false}, {"a", false}, {"b", false}, {"b", false}, {"c", false}, {"b", true}, {"c", true}, {"c", true}, {"c", false}} {
		now = now.Add(beatEvery)
		e.hear("fra1", []byte(`{"instance":"`+c.instance+`"}`))
		if got := e.status(nil, catalog.Position{})[0].Problem; (got != "") != c.two {
			t.Errorf("heartbeat %d, of %s: %q", i, c.instance, got)
		}
	}
}

// An edge may say anything of itself: its texts are cut, and fit into a line.
func TestHeartbeatTextsAreCut(t *testing.T) {
	t.Parallel()
	e := edges{now: time.Now}
	long := strings.Repeat("ä", 100_000)
	text, err := json.Marshal(beat{Instance: long, Version: long, Position: long, Problem: "two\nlines \u202e" + long})
	if err != nil {
		t.Fatal(err)
	}
	e.hear("fra1", text)
	s := e.status(nil, catalog.Position{})[0]
	if n := utf8.RuneCountInString(s.Version); n != 65 || s.Position != "" {
		t.Errorf("a version of %d characters, the position %.40q", n, s.Position)
	}
	if n := utf8.RuneCountInString(s.Problem); n != 301 || !strings.HasPrefix(s.Problem, "two lines  ä") || !strings.HasSuffix(s.Problem, "ä…") {
		t.Errorf("a problem of %d characters: %.40q", n, s.Problem)
	}
	e.hear("ams1", []byte(`{"version":"v1.2.3","position":"8f3a21c09b7e44d1.7","problem":"the disk is full"}`))
	if s := e.status(nil, catalog.Position{})[0]; s.Version != "v1.2.3" || s.Problem != "the disk is full" || s.Generation != 7 {
		t.Errorf("%+v", s)
	}
}

// TestHeartbeatNames: on a NATS server without permissions anybody can make names up. They are names of edges, and few.
func TestHeartbeatNames(t *testing.T) {
	t.Parallel()
	e := edges{now: time.Now}
	for _, name := range []string{"", "\xff\xfe", "two\nlines", strings.Repeat("a", 65), `fra"1`} {
		e.hear(name, []byte(`{"ready":true}`))
	}
	if s := e.status(nil, catalog.Position{}); len(s) != 0 {
		t.Errorf("names that no edge can have: %+v", s)
	}
	e.hear("fra1", []byte(`{"ready":true}`))
	for i := range 5000 {
		e.hear(fmt.Sprint("edge", i), []byte(`{"ready":true}`))
	}
	e.hear("fra1", []byte(`{"version":"v2","ready":true}`))
	list := e.status([]string{"declared"}, catalog.Position{})
	fra := slices.IndexFunc(list, func(s EdgeStatus) bool { return s.Name == "fra1" })
	if len(list) != mostEdges+1 || fra < 0 || list[fra].Version != "v2" {
		t.Errorf("%d edges", len(list))
	}
}
