package mailer_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/trace"
)

// A sentSpan is a span as a collector gets it.
type sentSpan struct {
	TraceID, SpanID, ParentSpanID, Name string
	Links                               []struct{ TraceID, SpanID string }
}

// traced returns an exporter, and a function that returns the spans of a name that have ended since its last call.
func traced(t *testing.T) (*trace.Exporter, func(name string) []sentSpan) {
	var got []sentSpan
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var d struct {
			ResourceSpans []struct{ ScopeSpans []struct{ Spans []sentSpan } }
		}
		if err := json.NewDecoder(r.Body).Decode(&d); err != nil {
			t.Error(err)
			return
		}
		got = append(got, d.ResourceSpans[0].ScopeSpans[0].Spans...)
	}))
	t.Cleanup(collector.Close)
	e := trace.New(trace.Options{URL: collector.URL, Logger: slog.New(slog.DiscardHandler)})
	return e, func(name string) (named []sentSpan) {
		got = nil
		e.Flush(t.Context())
		for _, s := range got {
			if s.Name == name {
				named = append(named, s)
			}
		}
		return named
	}
}

// TestLaterAttemptsAreLinks: the first attempt is a part of the trace of its send. Each later one is a trace of its own
// with a link to the send, whose span has ended long ago. A mail of a send that is not traced has none, nor has one that
// a later process takes up.
func TestLaterAttemptsAreLinks(t *testing.T) {
	t.Parallel()
	k := testrig.NewSink(t)
	k.Answer(func(int, testrig.Letter) error { return errGreylisted })
	r := newRig(t, project("acme", k))
	e, ended := traced(t)
	parent, _ := trace.ParseParent([]byte("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"))
	request := e.Begin(parent, trace.Server, "POST", time.Now())
	receipt, err := r.Send(trace.Into(t.Context(), request), raw("acme"))
	if err != nil || !receipt.Queued {
		t.Fatalf("%+v, %v", receipt, err)
	}
	other := r.send(raw("acme")) // is not traced
	request.End()
	both := func(attempt int) time.Time { // returns when both are due again: each wait has its own jitter
		a, b := r.waits("acme", other.LogID, attempt).NextAttemptAt, r.waits("acme", receipt.LogID, attempt).NextAttemptAt
		return a.Add(max(0, b.Sub(a)))
	}
	next := both(1)
	if first := ended("mail.attempt"); len(first) != 1 || first[0].ParentSpanID != request.ID().SpanID() ||
		first[0].TraceID != request.ID().TraceID() || len(first[0].Links) > 0 {
		t.Fatalf("the first attempt: %+v", first)
	}
	seen := map[string]bool{request.ID().TraceID(): true}
	for attempt := 2; attempt <= 3; attempt++ {
		r.reach(next.Add(time.Second)) // the attempt after this one is at least 24 s away
		next = both(attempt)
		later := ended("mail.attempt")
		if len(later) != 1 || seen[later[0].TraceID] || later[0].ParentSpanID != "" || len(later[0].Links) != 1 ||
			later[0].Links[0].TraceID != request.ID().TraceID() || later[0].Links[0].SpanID != request.ID().SpanID() {
			t.Fatalf("attempt %d: %+v", attempt, later)
		}
		seen[later[0].TraceID] = true
	}
	r.kill()
	k.Answer(nil)
	r.reach(next.Add(time.Hour))
	r.becomes("acme", receipt.LogID, catalog.MailSent)
	r.settle()
	if later := ended("mail.attempt"); len(later) > 0 {
		t.Errorf("another process has %+v", later)
	}
	for _, l := range k.Offered() {
		if text := strings.ToLower(l.Text); strings.Contains(text, "trace") || strings.Contains(text, request.ID().TraceID()) {
			t.Errorf("the trace is in the mail:\n%s", text)
		}
	}
}
