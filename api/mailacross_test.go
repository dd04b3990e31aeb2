package api_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"fingerpost/resolver/catalog"
)

// One call finds mail of all projects that the key covers, and nothing of others: not in rows, and not in counts.
func TestMailAcross(t *testing.T) {
	t.Parallel()
	p := startPost(t, newSink(t), nil)
	post, mute := p.addLogs(postID, 30), p.addLogs(muteID, 12)
	gone := p.addLogs(987, 1) // of a deleted project
	d := &catalog.Declared{}
	two := p.newKey(d, "two", catalog.MayRead, "post", "bare")
	three := p.newKey(d, "three", catalog.MayRead, "post", "mute", "bare")
	nothing := p.newKey(d, "nothing", catalog.MayRead, "no-such-project")
	p.apply("across.hcl", d)
	list := func(key, query string) (got []int64, meta map[string]any) {
		t.Helper()
		a := p.ask("GET", "/logs"+query, key, "")
		a.check(t, 200, "")
		for _, row := range a.json["data"].([]any) {
			got = append(got, int64(row.(map[string]any)["id"].(float64)))
		}
		return got, a.json["meta"].(map[string]any)
	}
	// Entries of both projects have the same times; the higher id, which is the later one, comes first.
	merged := func(logs ...[]int64) (all []int64) {
		for i := 29; i >= 0; i-- {
			for l := len(logs) - 1; l >= 0; l-- {
				if i < len(logs[l]) {
					all = append(all, logs[l][i])
				}
			}
		}
		return all
	}
	f := func(key, query string, want []int64, total int) {
		t.Helper()
		got, meta := list(key, query)
		if !slices.Equal(got, want) || meta["total"] != float64(total) || meta["searchedTo"] != nil {
			t.Errorf("%q: %v, %v, want %v of %d", query, got, meta, want, total)
		}
	}
	f(p.reader, "?limit=100", merged(post, mute, gone), 43)
	f(three, "?limit=100", merged(post, mute), 42)
	f(three, "?limit=5&page=5", merged(post, mute)[20:25], 42)
	f(three, "?limit=5&page=300", nil, 42)
	f(two, "?limit=100", merged(post), 30)
	f(nothing, "", nil, 0)
	f(two, "?q=USER1@&limit=100", func() (some []int64) {
		for _, id := range merged(post) {
			if slices.Index(post, id)%3 == 1 {
				some = append(some, id)
			}
		}
		return some
	}(), 10)
	f(two, "?q="+url.QueryEscape("<29@post"), []int64{post[29]}, 1)
	f(two, "?messageId="+url.QueryEscape("<29@post.example>"), []int64{post[29]}, 1)
	f(two, "?messageId=29@post.example", []int64{post[29]}, 1)
	f(two, "?messageId=29@post", nil, 0)
	f(two, "?q="+url.QueryEscape("no. 11"), []int64{post[11]}, 1)
	f(three, "?q="+url.QueryEscape("no. 11"), []int64{mute[11], post[11]}, 2)
	f(two, "?status=FAILED&q=user0&limit=100", []int64{post[15], post[0]}, 2)
	f(two, "?from=2026-01-31T09:30:10&to=2026-01-31T09:30:12.123456", []int64{post[11], post[10]}, 2)
	f(two, "?q=%25", nil, 0)
	f(two, "?projectId="+fmt.Sprint(muteID)+"&q=no", merged(post)[:10], 30) // not a parameter

	for _, c := range []struct {
		query, key string
		status     int
		fields     []string
	}{
		{"?q=&order=asc&sort=id&limit=0", p.reader, 400, []string{"q", "limit", "sort"}},
		{"?order=asc", p.reader, 400, []string{"order"}},
		{"?q=" + strings.Repeat("a", 257), p.reader, 400, []string{"q"}},
		{"?q=a%00", p.reader, 400, []string{"q"}},
		{"?q=%ff", p.reader, 400, []string{"q"}},
		{"", p.other, 403, nil}, // mail, not read
	} {
		a := p.ask("GET", "/logs"+c.query, c.key, "")
		if a.StatusCode != c.status || !slices.Equal(a.fields(), c.fields) {
			t.Errorf("%q: %d %s, want fields %v", c.query, a.StatusCode, a.body, c.fields)
		}
	}
	// A project's own log takes q, too.
	a := p.ask("GET", fmt.Sprintf("/projects/%d/logs?q=%s", postID, url.QueryEscape("no. 11")), two, "")
	if a.check(t, 200, ""); !strings.Contains(string(a.body), `"total":1,`) {
		t.Errorf("the project's log: %s", a.body)
	}
}
