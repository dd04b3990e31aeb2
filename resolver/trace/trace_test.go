package trace_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fingerpost/resolver/trace"
)

const sampled = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func parent(t testing.TB, text string) trace.ID {
	t.Helper()
	id, ok := trace.ParseParent([]byte(text))
	if !ok {
		t.Fatalf("%s is no traceparent", text)
	}
	return id
}

// A collector answers OTLP over HTTP with its status, and counts the spans that it took.
type collector struct {
	*httptest.Server
	status atomic.Int64
	answer atomic.Value // string
	asked  chan struct{}

	mu     sync.Mutex
	bodies [][]byte
	spans  int
}

func newCollector(t testing.TB) *collector {
	c := &collector{asked: make(chan struct{}, 1000)}
	c.status.Store(200)
	c.answer.Store("{}")
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if c.status.Load() == 200 {
			c.mu.Lock()
			c.bodies = append(c.bodies, body)
			c.spans += strings.Count(string(body), `"spanId"`)
			c.mu.Unlock()
		}
		w.WriteHeader(int(c.status.Load()))
		_, _ = io.WriteString(w, c.answer.Load().(string))
		select {
		case c.asked <- struct{}{}:
		default:
		}
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *collector) taken() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.spans
}

func (c *collector) exporter() *trace.Exporter {
	return trace.New(trace.Options{URL: c.URL + "/v1/traces", Service: "fingerpost", Version: "test",
		Logger: slog.New(slog.DiscardHandler)})
}

func spans(t testing.TB, e *trace.Exporter, n int) {
	t.Helper()
	for range n {
		e.Begin(parent(t, sampled), trace.Server, "GET /", time.Now()).End()
	}
}

func TestSpansReachTheCollector(t *testing.T) {
	c := newCollector(t)
	e := c.exporter()
	request := e.Begin(parent(t, sampled), trace.Server, "PUT /api", time.Now())
	ctx, step := trace.Start(trace.Into(t.Context(), request), "files.place")
	if trace.From(ctx) != step {
		t.Error("the context has another span")
	}
	step.Set("fingerpost.project", "acme")
	step.Fail()
	step.End()
	step.End()
	step.Set("late", "is not added")
	request.SetInt("http.response.status_code", 500)
	request.Later("mail attempt").End()
	request.End()
	e.Flush(t.Context())
	if c.taken() != 4 || e.Dropped() != 0 { // three, and the link's id
		t.Fatalf("%d ids taken, %d dropped", c.taken(), e.Dropped())
	}
	text := string(c.bodies[0])
	for _, want := range []string{`"traceId":"0af7651916cd43dd8448eb211c80319c"`, `"parentSpanId":"b7ad6b7169203331"`,
		`"parentSpanId":"` + request.ID().SpanID(), `"intValue":"500"`, `"links":[{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"` + request.ID().SpanID(),
		`"status":{"code":2}`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
	if strings.Contains(text, "late") || !json.Valid(c.bodies[0]) {
		t.Errorf("bad body: %s", text)
	}
}

// TestNothingIsTraced: without a sampled span, all of it is nil, and does not allocate.
func TestNothingIsTraced(t *testing.T) {
	ctx := t.Context()
	unsampled := parent(t, strings.TrimSuffix(sampled, "1")+"0")
	e := newCollector(t).exporter()
	if e.Begin(unsampled, trace.Server, "", time.Now()) != nil || (*trace.Exporter)(nil).Begin(parent(t, sampled),
		trace.Server, "", time.Now()) != nil {
		t.Fatal("a span without a reason")
	}
	if n := testing.AllocsPerRun(100, func() {
		ctx, s := trace.Start(ctx, "files.lock")
		s.Set("a", "b")
		s.SetInt("a", 1)
		s.Child("x").Calls().Later("y").EndWith(context.Canceled)
		s.Fail()
		s.End()
		_ = trace.Into(ctx, s)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestFloodStaysInTheRing: spans beyond 4,096 push out the oldest, which are counted.
func TestFloodStaysInTheRing(t *testing.T) {
	c := newCollector(t)
	e := c.exporter()
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() { spans(t, e, 2500) })
	}
	writers.Wait()
	if e.Dropped() != 10_000-4096 {
		t.Errorf("%d dropped", e.Dropped())
	}
	if e.Flush(t.Context()); c.taken() != 4096 || e.Dropped() != 10_000-4096 {
		t.Errorf("%d taken, %d dropped", c.taken(), e.Dropped())
	}
	for _, body := range c.bodies {
		if n := strings.Count(string(body), `"spanId"`); n > 512 {
			t.Errorf("a batch of %d spans", n)
		}
	}
}

// TestCollectorComesBack: a collector that is away for a while gets the spans of the meantime.
func TestCollectorComesBack(t *testing.T) {
	c := newCollector(t)
	e := c.exporter()
	c.status.Store(503)
	ctx, stop := context.WithCancel(t.Context())
	running := make(chan struct{})
	go func() { defer close(running); e.Run(ctx) }()
	spans(t, e, 600)
	<-c.asked
	c.status.Store(200)
	for c.taken() < 600 {
		select {
		case <-c.asked:
		case <-time.After(time.Minute):
			t.Fatalf("%d spans taken", c.taken())
		}
	}
	stop()
	<-running
	if e.Dropped() != 0 {
		t.Errorf("%d dropped", e.Dropped())
	}
}

// TestRefusedSpans: what the collector refuses is counted and not sent again.
func TestRefusedSpans(t *testing.T) {
	c := newCollector(t)
	e := c.exporter()
	try := func(status int, answer string, dropped uint64) {
		t.Helper()
		before := e.Dropped()
		c.status.Store(int64(status))
		c.answer.Store(answer)
		spans(t, e, 5)
		if e.Flush(t.Context()); e.Dropped()-before != dropped {
			t.Errorf("%d %s: %d dropped", status, answer, e.Dropped()-before)
		}
	}
	try(200, `{"partialSuccess":{"rejectedSpans":"2"}}`, 2)
	try(200, `{"partialSuccess":{"rejectedSpans":3}}`, 3)
	try(200, `{"partialSuccess":{"rejectedSpans":"-3"}}`, 0)
	try(200, `{"partialSuccess":{"rejectedSpans":99}}`, 5)
	try(200, "not JSON", 0)
	try(400, "", 5)
	try(302, "", 5)
	try(503, "", 5) // at the end there is no later
}

func TestParseParent(t *testing.T) {
	f := func(text string, want bool) {
		t.Helper()
		if _, ok := trace.ParseParent([]byte(text)); ok != want {
			t.Errorf("%q: %v", text, ok)
		}
	}
	f(sampled, true)
	f(strings.ToUpper(sampled), false)
	f(sampled+"-x", false)
	f("cc"+sampled[2:]+"-what-ever", true)
	f("cc"+sampled[2:]+"x", false)
	f("ff"+sampled[2:], false)
	f("00-00000000000000000000000000000000-b7ad6b7169203331-01", false)
	f("00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", false)
	f(sampled[1:], false)
	f("", false)
}

func FuzzParseParent(f *testing.F) {
	f.Add([]byte(sampled))
	f.Add([]byte("cc" + sampled[2:] + "-x"))
	f.Fuzz(func(t *testing.T, b []byte) {
		id, ok := trace.ParseParent(b)
		if !ok {
			if id != (trace.ID{}) {
				t.Error("an id of a bad value")
			}
			return
		}
		if again, ok := trace.ParseParent([]byte(id.Parent())); !ok || again != id {
			t.Errorf("%q becomes %s", b, id.Parent())
		}
	})
}

// BenchmarkSpan is what the span of a sampled resolve costs, with its part of a batch.
func BenchmarkSpan(b *testing.B) {
	sink := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	defer sink.Close()
	e, id := trace.New(trace.Options{URL: sink.URL, Logger: slog.New(slog.DiscardHandler)}), parent(b, sampled)
	b.ReportAllocs()
	for i := range b.N {
		s := e.Begin(id, trace.Server, "GET /api/platform/projects/resolve", time.Now())
		s.Set("http.request.method", "GET")
		s.Set("http.route", "/api/platform/projects/resolve")
		s.Set("fingerpost.key", "shop")
		s.Set("fingerpost.cache", "hit")
		s.Set("fingerpost.project", "acme")
		s.SetInt("http.response.status_code", 200)
		s.SetInt("fingerpost.generation", 12)
		s.End()
		if i%512 == 511 {
			e.Flush(b.Context())
		}
	}
}
