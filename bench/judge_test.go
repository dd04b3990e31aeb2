package main

import (
	"fmt"
	"testing"
)

// body is an answer about project i of c at a revision.
func body(c *corpus, i, revision int, sms bool) answer {
	return answer{status: 200, body: fmt.Appendf(nil, `{"slug":"%s","description":"Storefront, revision %06d","smsEnabled":%t}`, c.slugs[i], revision, sms)}
}

func expect(t *testing.T, a asker, q question, got answer, want fault) {
	t.Helper()
	if f := a.judge(&q, got); f != want {
		t.Errorf("%+v of %s: fault %s, want %s", q, got.body, faultNames[f], faultNames[want])
	}
}

func TestScheduled(t *testing.T) {
	c := testCorpus()
	s := &scheduled{corpus: c, schedule: []uint32{0, 5, 11}}
	var q question
	for _, want := range []string{"", "blog.", "blog.", ""} {
		host := string(s.ask(&q, []byte("x=")))
		if host != "x="+want+c.slugs[q.name/3]+".example" {
			t.Errorf("asks %q for %d", host, q.name)
		}
	}
	expect(t, s, question{name: 5}, body(c, 1, 0, false), faultNone)
	expect(t, s, question{name: 5}, body(c, 2, 0, false), faultContent)
	expect(t, s, question{name: 5}, answer{status: 404}, faultStatus)
	longer := body(c, 1, 0, false)
	longer.body = []byte(`{"slug":"` + c.slugs[1] + `x"}`)
	expect(t, s, question{name: 5}, longer, faultContent)
}

func TestRevisions(t *testing.T) {
	c := testCorpus()
	r := newRevisions(c, []uint32{0, 3})
	var older, q question
	r.ask(&older, nil) // asked before anything is known
	expect(t, r, older, body(c, 0, 5, true), faultNone)
	r.ask(&q, nil) // project 1
	expect(t, r, q, body(c, 1, 0, false), faultNone)
	r.ask(&q, nil) // project 0 again, known at 5 by now
	expect(t, r, q, body(c, 0, 4, false), faultStale)
	expect(t, r, q, body(c, 0, 6, true), faultTorn)
	expect(t, r, q, body(c, 0, 6, false), faultNone)
	// An answer that was under way when a newer one came may be old.
	expect(t, r, older, body(c, 0, 4, false), faultNone)
	expect(t, r, q, answer{status: 200, body: []byte(`{"slug":"` + c.slugs[0] + `"}`)}, faultTorn)
}

func TestSwitching(t *testing.T) {
	c := testCorpus()
	for _, way := range []struct{ from, to int }{{1, 2}, {2, 1}} {
		old := func(i int) answer { return body(c, i, way.from, way.from == 1) }
		fresh := func(i int) answer { return body(c, i, way.to, way.to == 1) }
		s := newSwitching(c, []uint32{0, 3}, way.from, way.to)
		var early, q question
		s.ask(&early, nil)
		expect(t, s, early, old(0), faultNone)
		expect(t, s, early, fresh(0), faultNone)
		s.ask(&q, nil) // project 1, asked after project 0 was seen new
		expect(t, s, q, old(1), faultNone)
		if s.mixed != 1 || s.mixedFor <= 0 {
			t.Errorf("mixed %d for %v", s.mixed, s.mixedFor)
		}
		s.ask(&q, nil)
		expect(t, s, q, old(0), faultStale)
		expect(t, s, q, body(c, 0, 3, true), faultContent)
		expect(t, s, q, body(c, 0, way.to, way.from == 1), faultTorn)
		expect(t, s, early, old(0), faultNone) // it was under way
		if s.mixed != 1 {
			t.Errorf("mixed %d", s.mixed)
		}
	}
	quiet := newSwitching(c, []uint32{0, 3}, 1, 1)
	var q question
	for range 3 {
		quiet.ask(&q, nil)
		expect(t, quiet, q, body(c, int(q.name)/3, 1, true), faultNone)
		expect(t, quiet, q, body(c, int(q.name)/3, 2, false), faultContent)
	}
}
