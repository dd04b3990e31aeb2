package main

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
)

// body is an answer about project i of c at a revision.
func body(c *corpus, i, revision int, sms bool) answer {
	return answer{status: 200, body: fmt.Appendf(nil, `{"slug":"%s","description":"Storefront, revision %06d","smsEnabled":%t}`, c.slugs[i], revision, sms)}
}

func judges(t *testing.T, q question, a answer, name int, want string) {
	t.Helper()
	err := q.judge(a, name)
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("%s for name %d: %v, want %q", a.body, name, err, want)
	}
}

func TestResolving(t *testing.T) {
	c := testCorpus()
	q := c.resolving("host:1")
	if got, want := string(q.request(nil, 5)), "GET "+resolvePath+"blog."+c.slugs[1]+".example HTTP/1.1\r\nHost: host:1\r\nX-PLATFORM-KEY: k\r\n\r\n"; got != want {
		t.Errorf("asks %q, want %q", got, want)
	}
	judges(t, q, body(c, 1, 0, false), 5, "")
	judges(t, q, body(c, 2, 0, false), 5, "asked for "+c.slugs[1])
	judges(t, q, answer{status: 404}, 5, "status 404")
	longer := body(c, 1, 0, false)
	longer.body = []byte(`{"slug":"` + c.slugs[1] + `x"}`)
	judges(t, q, longer, 5, "asked for")
}

// TestChecking asks a gate, and takes the headers of the right project only, and of the token's user.
func TestChecking(t *testing.T) {
	c := testCorpus()
	lines := make([][]byte, len(c.slugs))
	lines[1] = []byte("Authorization: Bearer x\r\n")
	plain, tokens := c.checking(nil), c.checking(lines)
	domain := string(c.appendHost(nil, 5))
	for want, q := range map[string]question{
		"GET /check HTTP/1.1\r\nHost: " + domain + "\r\n\r\n":                                          plain,
		"GET /check?auth=required HTTP/1.1\r\nHost: " + domain + "\r\nAuthorization: Bearer x\r\n\r\n": tokens,
	} {
		if got := string(q.request(nil, 5)); got != want {
			t.Errorf("asks %q, want %q", got, want)
		}
	}
	ours := "HTTP/1.1 200 OK\r\nX-Project-Slug: " + c.slugs[1] + "\r\n"
	judges(t, plain, answer{status: 200, head: []byte(ours)}, 5, "")
	judges(t, plain, answer{status: 200, head: []byte("HTTP/1.1 200 OK\r\nX-Project-Slug: " + c.slugs[2] + "\r\n")}, 5, "a check of")
	judges(t, plain, answer{status: 403, head: []byte(ours)}, 5, "a check of")
	judges(t, tokens, answer{status: 200, head: []byte(ours)}, 5, "a check of")
	judges(t, tokens, answer{status: 200, head: []byte(ours + "X-User-Id: user\r\n")}, 5, "")
}

// TestNewest: no answer is torn, or older than one that came before its question.
func TestNewest(t *testing.T) {
	c := testCorpus()
	seen := make([]atomic.Int32, c.Projects)
	early, q := c.newest("", seen), c.newest("", seen)
	early.request(nil, 0) // before anything is known
	judges(t, early, body(c, 0, 5, true), 0, "")
	q.request(nil, 0)
	judges(t, q, body(c, 0, 4, false), 0, "torn or older")
	judges(t, q, body(c, 0, 6, true), 0, "torn or older")
	judges(t, q, body(c, 0, 6, false), 0, "")
	judges(t, early, body(c, 0, 4, false), 0, "") // it was under way when a newer one came
	judges(t, q, answer{status: 200, body: []byte(`{"slug":"` + c.slugs[0] + `"}`)}, 0, "torn or older")
	q.request(nil, 3)
	judges(t, q, body(c, 1, 0, false), 3, "") // another project
}
