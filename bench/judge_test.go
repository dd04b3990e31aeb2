package main

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/valyala/fasthttp"

	"fingerpost/bench/wire"
)

// body is an answer about project i of c at a revision.
func body(c *corpus, i, revision int, sms bool) wire.Answer {
	return wire.Answer{Status: 200, Body: fmt.Appendf(nil, `{"slug":"%s","description":"Storefront, revision %06d","smsEnabled":%t}`, c.slugs[i], revision, sms)}
}

func judges(t *testing.T, q question, a wire.Answer, name int, want string) {
	t.Helper()
	err := q.judge(a, name)
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("%s for name %d: %v, want %q", a.Body, name, err, want)
	}
}

func TestResolving(t *testing.T) {
	c := testCorpus()
	q := c.resolving()
	var r fasthttp.Request
	q.ask(&r, 5)
	if got, want := string(r.RequestURI()), wire.ResolvePath+"blog."+c.slugs[1]+".example"; got != want || string(r.Header.Peek(wire.KeyField)) != "k" {
		t.Errorf("asks %q, want %q", r.String(), want)
	}
	judges(t, q, body(c, 1, 0, false), 5, "")
	judges(t, q, body(c, 2, 0, false), 5, "asked for "+c.slugs[1])
	judges(t, q, wire.Answer{Status: 404}, 5, "status 404")
	longer := body(c, 1, 0, false)
	longer.Body = []byte(`{"slug":"` + c.slugs[1] + `x"}`)
	judges(t, q, longer, 5, "asked for")
}

// TestChecking asks a gate, and takes the headers of the right project only, and of the token's user.
func TestChecking(t *testing.T) {
	c := testCorpus()
	lines := make([]string, len(c.slugs))
	lines[1] = "Bearer x"
	plain, tokens := c.checking(nil), c.checking(lines)
	for want, q := range map[string]question{"/check": plain, "/check?auth=required": tokens} {
		var r fasthttp.Request
		q.ask(&r, 5)
		token := string(r.Header.Peek("Authorization"))
		if string(r.RequestURI()) != want || string(r.Header.Host()) != string(c.appendHost(nil, 5)) || (token == "Bearer x") != strings.HasSuffix(want, "required") {
			t.Errorf("asks %q, want %q", r.String(), want)
		}
	}
	head := func(fields ...string) *fasthttp.ResponseHeader {
		var h fasthttp.ResponseHeader
		for i := 0; i < len(fields); i += 2 {
			h.Set(fields[i], fields[i+1])
		}
		return &h
	}
	ours := head("X-Project-Slug", c.slugs[1])
	judges(t, plain, wire.Answer{Status: 200, Head: ours}, 5, "")
	judges(t, plain, wire.Answer{Status: 200, Head: head("X-Project-Slug", c.slugs[2])}, 5, "a check of")
	judges(t, plain, wire.Answer{Status: 403, Head: ours}, 5, "a check of")
	judges(t, tokens, wire.Answer{Status: 200, Head: ours}, 5, "a check of")
	judges(t, tokens, wire.Answer{Status: 200, Head: head("X-Project-Slug", c.slugs[1], "X-User-Id", "user")}, 5, "")
}

// TestNewest: no answer is torn, or older than one that came before its question.
func TestNewest(t *testing.T) {
	c := testCorpus()
	seen := make([]atomic.Int32, c.Projects)
	early, q := c.newest(seen), c.newest(seen)
	early.ask(new(fasthttp.Request), 0) // before anything is known
	judges(t, early, body(c, 0, 5, true), 0, "")
	q.ask(new(fasthttp.Request), 0)
	judges(t, q, body(c, 0, 4, false), 0, "torn or older")
	judges(t, q, body(c, 0, 6, true), 0, "torn or older")
	judges(t, q, body(c, 0, 6, false), 0, "")
	judges(t, early, body(c, 0, 4, false), 0, "") // it was under way when a newer one came
	judges(t, q, wire.Answer{Status: 200, Body: []byte(`{"slug":"` + c.slugs[0] + `"}`)}, 0, "torn or older")
	q.ask(new(fasthttp.Request), 3)
	judges(t, q, body(c, 1, 0, false), 3, "") // another project
}
