package api_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"fingerpost/api"
	"fingerpost/api/ops"
	"fingerpost/resolver/trace"
)

const (
	sampledTrace = "0af7651916cd43dd8448eb211c80319c"
	sampledBy    = "traceparent: 00-" + sampledTrace + "-b7ad6b7169203331-01"
)

// collected returns an exporter to a collector; sent sends the waiting spans and returns all that the collector has got.
func collected(t *testing.T) (e *trace.Exporter, sent func() string) {
	var mu sync.Mutex
	var got strings.Builder
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = io.Copy(&got, r.Body)
	}))
	t.Cleanup(collector.Close)
	e = trace.New(trace.Options{URL: collector.URL, Service: "test", Logger: slog.New(slog.DiscardHandler)})
	return e, func() string {
		e.Flush(t.Context())
		mu.Lock()
		defer mu.Unlock()
		return got.String()
	}
}

// traced is a house whose spans go to a collector.
func traced(t *testing.T) (h *house, sent func() string) {
	e, sent := collected(t)
	return start(t, func(o *api.Options) { o.Trace, o.AccessLogResolve = e, true }), sent
}

// TestPlainWriteIsTraced: a PUT without git shows how long it waited for the audit trail's disk.
func TestPlainWriteIsTraced(t *testing.T) {
	t.Parallel()
	e, sent := collected(t)
	d := &desk{dir: t.TempDir(), trace: e}
	d.open(t, map[string]string{"acme.hcl": "project \"acme\" {\n  name = \"Acme\"\n}\n"})
	d.askBody("PUT", d.path(t, "/api/platform/projects/@acme"), d.key, `{"name":"Renamed"}`, sampledBy).check(t, 200, "")
	got := sent()
	for _, name := range []string{"files.lock", "files.prove", "files.place", "files.publish", "ledger.sync"} {
		if n := strings.Count(got, `"name":"`+name+`"`); n != 1 {
			t.Errorf("%d spans %s in %s", n, name, got)
		}
	}
}

// TestOnlyGoodKeysAreTraced: neither a bad key nor a bad traceparent makes a span.
func TestOnlyGoodKeysAreTraced(t *testing.T) {
	h, sent := traced(t)
	const target = "/api/platform/projects/resolve?domain=shop.acme.example"
	for _, key := range []string{"", "fpk_wrong", h.expired, h.revoked} {
		h.ask("GET", target, key, sampledBy)
		h.ask("GET", "/api/platform/projects", key, sampledBy)
	}
	h.ask("GET", "/api/platform/health", "", sampledBy)
	h.ask("GET", "/nowhere", h.all, sampledBy)
	for _, bad := range []string{"", "x", "00-" + sampledTrace + "-b7ad6b7169203331-00", strings.ToUpper(sampledBy[13:]),
		sampledBy[13:] + "\r\n" + sampledBy} {
		h.ask("GET", target, h.all, "traceparent: "+bad)
	}
	if got := sent(); got != "" {
		t.Fatalf("spans without a reason: %s", got)
	}
	h.ask("GET", target, h.all, sampledBy)
	h.ask("GET", "/api/platform/projects/resolve?domain=never.asked.example", h.all, sampledBy)
	got := sent()
	for _, want := range []string{`"name":"GET /api/platform/projects/resolve"`, `"traceId":"` + sampledTrace, `"name":"store.miss"`,
		`"key":"fingerpost.cache","value":{"stringValue":"hit"}`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
	if log := h.log.String(); !strings.Contains(log, `"trace_id":"`+sampledTrace+`","span_id":"`) {
		t.Errorf("no ids in the access log: %.2000s", log)
	}
	samples := 0
	h.server.EachRequest(func(r ops.Requests) {
		for _, s := range r.Samples {
			if samples++; s.TraceID != sampledTrace || !strings.HasSuffix(r.Route, "/resolve") {
				t.Errorf("%s has the sample %s", r.Route, s.TraceID)
			}
		}
	})
	if samples == 0 {
		t.Error("no request is a sample")
	}
}

// TestGateIsTraced: a gateway's question needs no key, and its span shows what the cache did.
func TestGateIsTraced(t *testing.T) {
	h, sent := traced(t)
	w := h.gate().dial()
	defer w.Close()
	before := ""
	ask := func(target, name, header string, status int, want ...string) {
		t.Helper()
		if a := onWire(w, "GET", target, name, header); a.StatusCode != status {
			t.Errorf("%s %s is answered %d", target, name, a.StatusCode)
		}
		all := sent()
		got := strings.TrimPrefix(all, before)
		before = all
		for _, want := range want {
			if !strings.Contains(got, want) {
				t.Errorf("%s %s: no %s in %s", target, name, want, got)
			}
		}
		if len(want) == 0 && got != "" {
			t.Errorf("%s %s, %s: spans without a reason: %s", target, name, header, got)
		}
	}
	const miss, hit, unknown = `{"stringValue":"miss"}`, `{"stringValue":"hit"}`, `{"stringValue":"negative_hit"}`
	const check, certificate = `"name":"GET /check"`, `"name":"GET /ask"`
	ask("/check", "shop.acme.example", sampledBy, 200, check, miss, `"name":"store.miss"`, `{"stringValue":"acme"}`)
	ask("/check", "shop.acme.example", sampledBy, 200, check, hit, `{"stringValue":"acme"}`)
	ask("/check", "shop.acme.example", strings.ToUpper(sampledBy[:11])+sampledBy[11:], 200, check, hit)
	ask("/check", "never.asked.example", sampledBy, 403, check, miss)
	ask("/check", "never.asked.example", sampledBy, 403, check, unknown)
	ask("/ask?domain=shop.acme.example", "gateway.example", sampledBy, 200, certificate, hit)
	later := "traceparent: cc" + sampledBy[15:] // of a later version, which may have more fields
	ask("/check", "shop.acme.example", later+"-00", 200, check, hit)
	ask("/check", "shop.acme.example", later[:len(later)-1]+"0-01", 200)
	ask("/nowhere", "shop.acme.example", sampledBy, 404, `"name":"GET"`)
}
