package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"fingerpost/cmd/testrig"
)

// A span is one as the collector got it.
type span struct {
	TraceID, SpanID, ParentSpanID, Name string
	Start                               string `json:"startTimeUnixNano"`
	End                                 string `json:"endTimeUnixNano"`
	Kind                                int
	Attributes                          []struct {
		Key   string
		Value struct{ StringValue, IntValue string }
	}
	Links   []struct{ TraceID, SpanID string }
	Status  struct{ Code int }
	service string
}

func (s *span) attribute(key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value.StringValue + a.Value.IntValue
		}
	}
	return ""
}

// A spanSink is an OpenTelemetry collector over real HTTP. The real parser judges the same bytes in .ci/otlp.
type spanSink struct {
	*httptest.Server
	mu    sync.Mutex
	away  bool
	spans []*span
}

func newSpanSink(t testing.TB) *spanSink {
	c := new(spanSink)
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.away {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		body, _ := io.ReadAll(r.Body)
		var request struct {
			ResourceSpans []struct {
				Resource   span
				ScopeSpans []struct{ Spans []*span }
			}
		}
		if err := json.Unmarshal(body, &request); err != nil || r.URL.Path != tracesPath ||
			r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s: %v", r.URL, r.Header.Get("Content-Type"), err)
		}
		for _, of := range request.ResourceSpans {
			for _, s := range of.ScopeSpans[0].Spans {
				s.service = of.Resource.attribute("service.name")
				c.spans = append(c.spans, s)
			}
		}
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *spanSink) of(trace string) (list []*span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.spans {
		if s.TraceID == trace {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b *span) int { return strings.Compare(a.Start, b.Start) })
	return list
}

// until waits for the trace to have spans of all names, and returns it.
func (c *spanSink) until(t testing.TB, trace string, names ...string) []*span {
	t.Helper()
	var got []*span
	if err := poll(testrig.Patience, func() error {
		got = c.of(trace)
		for _, name := range names {
			if !slices.ContainsFunc(got, func(s *span) bool { return s.Name == name }) {
				return fmt.Errorf("the trace has no span %s:\n%s", name, tree(got, "", 0))
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return got
}

// tree prints the spans below a parent. Where nobody has sent the parent, that is the client's span.
func tree(spans []*span, parent string, depth int) string {
	var b strings.Builder
	for _, s := range spans {
		known := slices.ContainsFunc(spans, func(p *span) bool { return p.SpanID == s.ParentSpanID })
		if s.ParentSpanID != parent && !(parent == "" && !known) {
			continue
		}
		var more []string
		for _, a := range s.Attributes {
			more = append(more, a.Key+"="+a.Value.StringValue+a.Value.IntValue)
		}
		var begun, ended int64
		_, _ = fmt.Sscan(s.Start, &begun)
		_, _ = fmt.Sscan(s.End, &ended)
		fmt.Fprintf(&b, "%s%s  [%s, %.2f ms] %s\n", strings.Repeat("  ", depth), s.Name, s.service, float64(ended-begun)/1e6,
			strings.Join(more, " "))
		b.WriteString(tree(spans, s.SpanID, depth+1))
	}
	return b.String()
}

const (
	someTrace   = "0af7651916cd43dd8448eb211c80319c"
	someParent  = "Traceparent: 00-" + someTrace + "-b7ad6b7169203331-01"
	clientsSpan = "b7ad6b7169203331"
)

// TestTraceThroughAnEdge: one PUT at an edge is one connected trace through the authority, the files and git.
func TestTraceThroughAnEdge(t *testing.T) {
	t.Parallel()
	testrig.Thorough(t)
	sink := newSpanSink(t)
	c := idleCluster(t, "fra1")
	newGitRig(t, c.rig)
	c.env = []string{otelBase + "=" + sink.URL, otelService + "=authority"}
	c.flags = append(c.flags, "--git", "--git-push", "--git-domain", "svc.example", "--git-ack", "push")
	c.begin()
	e := c.idleEdge("fra1", "")
	e.env = []string{otelService + "=edge", otelBase + "=http://127.0.0.1:1"} // the flag wins
	e.flags = append(e.flags, "--otlp", sink.URL, "--log-format", "json")
	e.start()
	e.resolves("other.example")
	id := c.projectID("other")
	put := e.ask(http.MethodPut, "/api/platform/projects/"+id, c.keys["write"], `{"name":"Another"}`,
		"Content-Type: application/json", someParent)
	if put.status != http.StatusOK {
		t.Fatalf("PUT: %d %s", put.status, put.body)
	}
	const route = "PUT /api/platform/projects/{id}"
	spans := sink.until(t, someTrace, route, "cluster.forward", "files.lock", "files.prove", "files.place", "files.publish",
		"ledger.sync", "git.commit", "git.push")
	t.Logf("the trace:\n%s", tree(spans, "", 0))
	byID, requests := map[string]*span{}, 0
	for _, s := range spans {
		byID[s.SpanID] = s
	}
	for _, s := range spans {
		root := s
		for byID[root.ParentSpanID] != nil {
			root = byID[root.ParentSpanID]
		}
		if root.ParentSpanID != clientsSpan || root.service != "edge" || root.Name != route {
			t.Errorf("%s hangs below %s of %s", s.Name, root.Name, root.service)
		}
		if s.Name != route {
			continue
		}
		requests++
		for key, want := range map[string]string{"http.response.status_code": "200", "http.request.method": "PUT",
			"http.route": "/api/platform/projects/{id}", "fingerpost.project": "other", "fingerpost.key": "write"} {
			if value := s.attribute(key); value != want {
				t.Errorf("%s of the request at the %s is %q", key, s.service, value)
			}
		}
		if s.service == "authority" && byID[s.ParentSpanID].Name != "cluster.forward" {
			t.Errorf("the authority's request hangs below %s", byID[s.ParentSpanID].Name)
		}
	}
	if requests != 2 {
		t.Errorf("%d spans of requests", requests)
	}
	e.halt()
	if log := e.logged(); !strings.Contains(log, `"trace_id":"`+someTrace+`"`) || !strings.Contains(log, `"span_id":"`) {
		t.Errorf("the access log has no ids:\n%s", cutMiddle(log, 3000))
	}
}

// TestCollectorAway: spans that the ring has no room for are counted in the metrics, and requests do not wait for it.
// It ends in order while the collector is away.
func TestCollectorAway(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	sink := newSpanSink(t)
	sink.mu.Lock()
	sink.away = true
	sink.mu.Unlock()
	r := idleRig(t, t.TempDir(), nil)
	r.flags = []string{"--otlp", sink.URL}
	r.start()
	c := r.dial()
	defer c.Close()
	const requests = 5000
	go func() {
		for range requests {
			_, _ = io.WriteString(c, "GET "+resolvePath+"shop.acme.example HTTP/1.1\r\nHost: a\r\nX-PLATFORM-KEY: "+r.keys["all"]+
				"\r\n"+someParent+"\r\n\r\n")
		}
	}()
	in := bufio.NewReader(c)
	for range requests {
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, _ = io.Copy(io.Discard, res.Body); res.StatusCode != http.StatusOK {
			t.Fatalf("status %d", res.StatusCode)
		}
	}
	res, err := r.client.Get(r.ops + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(res.Body)
	_, rest, _ := strings.Cut(string(text), "\nfingerpost_trace_spans_dropped_total ")
	var dropped int
	if _, err := fmt.Sscan(rest, &dropped); err != nil || dropped < requests-4096 || dropped > requests-4096+512+2 {
		t.Errorf("%d spans dropped (%v), of %d", dropped, err, requests)
	}
	sink.mu.Lock()
	sink.away = false
	sink.mu.Unlock()
	r.halt()     // sends the rest
	var late int // what a busy machine has not sent in the time that is left at the end
	if _, rest, found := strings.Cut(r.logged(), `"spans did not reach the collector before the end","spans":`); found {
		_, _ = fmt.Sscan(rest, &late)
	}
	if n := len(sink.of(someTrace)); n == 0 || n+dropped+late < requests {
		t.Errorf("the collector has %d spans at the end, %d were dropped, %d came too late", n, dropped, late)
	}
}

// TestExemplars: OpenMetrics shows the trace of a sampled request at the bucket of its duration, and other requests have
// none. Prometheus's own parser reads the whole.
func TestExemplars(t *testing.T) {
	t.Parallel()
	sink := newSpanSink(t)
	r := idleRig(t, t.TempDir(), nil)
	r.flags = []string{"--otlp", sink.URL}
	r.start()
	r.get(resolvePath + "shop.acme.example")
	r.get(resolvePath+"shop.acme.example", someParent)
	r.get("/api/platform/projects", strings.TrimSuffix(someParent, "1")+"0")
	scrape := func(accept string) (text, kind string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.ops+"/metrics", nil)
		must(t, err)
		req.Header.Set("Accept", accept)
		res, err := r.client.Do(req)
		must(t, err)
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		must(t, err)
		return string(body), res.Header.Get("Content-Type")
	}
	if text, _ := scrape("text/plain"); strings.Contains(text, someTrace) {
		t.Error("the older format has an exemplar, which its parsers refuse")
	}
	text, kind := scrape("application/openmetrics-text; version=1.0.0")
	if !strings.HasPrefix(kind, "application/openmetrics-text") || !strings.HasSuffix(text, "\n# EOF\n") {
		t.Fatalf("%s, which ends with %q", kind, text[max(0, len(text)-100):])
	}
	sample := regexp.MustCompile(`^fingerpost_http_request_duration_seconds_bucket\{(.*)\} \d+ # ` +
		`\{trace_id="([0-9a-f]{32})"\} (\S+) \S+$`)
	bound := regexp.MustCompile(`,?le="([^"]+)"`)
	exemplars := 0
	for line := range strings.Lines(text) {
		_, exemplar, has := strings.Cut(line, " # ")
		if !has {
			continue
		}
		exemplars++
		m := sample.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil || m[2] != someTrace || !strings.Contains(m[1], `route="`+strings.TrimSuffix(resolvePath, "?domain=")+`"`) {
			t.Errorf("the exemplar %s of %q", exemplar, line)
			continue
		}
		least, most := 0.0, bound.FindStringSubmatch(m[1])[1]
		for before := range strings.Lines(text) { // the bucket below
			if at := bound.FindStringSubmatch(before); at != nil && bound.ReplaceAllString(before[:strings.Index(before, "}")], "") ==
				bound.ReplaceAllString(line[:strings.Index(line, "}")], "") {
				if at[1] == most {
					break
				}
				least, _ = strconv.ParseFloat(at[1], 64)
			}
		}
		took, err := strconv.ParseFloat(m[3], 64)
		if end, _ := strconv.ParseFloat(most, 64); err != nil || took <= least || took > end {
			t.Errorf("%s s is not in the bucket from %v to %s", m[3], least, most)
		}
	}
	if exemplars != 1 {
		t.Errorf("%d exemplars", exemplars)
	}
	// promtool reads OpenMetrics for a backfill alone, which wants a time of each sample.
	var timed strings.Builder
	for line := range strings.Lines(text) {
		if at := strings.Index(line+" # ", " # "); !strings.HasPrefix(line, "#") {
			at = min(at, len(line)-1)
			line = line[:at] + " 1700000000" + line[at:]
		}
		timed.WriteString(line)
	}
	file := filepath.Join(t.TempDir(), "metrics")
	must(t, os.WriteFile(file, []byte(timed.String()), 0o644))
	out, err := exec.CommandContext(t.Context(), testrig.Need(t, "promtool")[0], "tsdb", "create-blocks-from", "openmetrics",
		file, t.TempDir()).CombinedOutput()
	if err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}
