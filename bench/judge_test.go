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

// TestChecked asks a gate, and takes the headers of the right project only, and of the token's user.
func TestChecked(t *testing.T) {
	c := testCorpus()
	lines := make([][]byte, len(c.slugs))
	lines[1] = []byte("Authorization: Bearer x\r\n")
	plain := &checked{scheduled: scheduled{corpus: c, schedule: []uint32{5}}}
	tokens := &checked{scheduled: scheduled{corpus: c, schedule: []uint32{5}}, tokens: lines}
	var q question
	domain := string(plain.ask(&q, nil))
	for k, want := range map[*checked]string{
		plain:  "GET /check HTTP/1.1\r\nHost: " + domain + "\r\n\r\n",
		tokens: "GET /check?auth=required HTTP/1.1\r\nHost: " + domain + "\r\nAuthorization: Bearer x\r\n\r\n",
	} {
		if got := string(k.appendRequest(nil, k.ask(&q, nil))); got != want {
			t.Errorf("asks %q, want %q", got, want)
		}
	}
	ours := "HTTP/1.1 200 OK\r\nX-Project-Slug: " + c.slugs[1] + "\r\n"
	expect(t, plain, q, answer{status: 200, head: []byte(ours)}, faultNone)
	expect(t, plain, q, answer{status: 200, head: []byte("HTTP/1.1 200 OK\r\nX-Project-Slug: " + c.slugs[2] + "\r\n")}, faultContent)
	expect(t, plain, q, answer{status: 403, head: []byte(ours)}, faultStatus)
	expect(t, tokens, q, answer{status: 200, head: []byte(ours)}, faultContent)
	expect(t, tokens, q, answer{status: 200, head: []byte(ours + "X-User-Id: user\r\n")}, faultNone)
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
