package otlp

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"fingerpost/resolver/trace"
)

// TestCollectorReadsSpans: the parser of the collector's OTLP receiver finds each field of each span.
func TestCollectorReadsSpans(t *testing.T) {
	request := ptraceotlp.NewExportRequest()
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = request.UnmarshalJSON(body)
		}
		if err != nil {
			t.Errorf("%v in %s", err, body)
		}
		answer, _ := ptraceotlp.NewExportResponse().MarshalJSON()
		_, _ = w.Write(answer)
	}))
	defer collector.Close()
	e := trace.New(trace.Options{URL: collector.URL, Service: "fingerpost", Version: "1", Logger: slog.New(slog.DiscardHandler)})
	parent, ok := trace.ParseParent([]byte("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"))
	if !ok {
		t.Fatal("no traceparent")
	}
	began := time.Unix(1_700_000_000, 123)
	root := e.Begin(parent, trace.Server, "PUT /api", began)
	root.Set("fingerpost.project", "acmé \"\x00\xff")
	root.SetInt("http.response.status_code", 503)
	root.Fail()
	step := root.ChildAt("smtp.data", began).Calls()
	step.EndAt(began.Add(time.Second))
	root.Cause().Later("mail.attempt").EndAt(time.Now())
	root.EndAt(began.Add(2 * time.Second))
	e.Flush(t.Context())

	resource := request.Traces().ResourceSpans().At(0)
	if name, _ := resource.Resource().Attributes().Get("service.name"); name.Str() != "fingerpost" {
		t.Errorf("service.name is %q", name.Str())
	}
	spans := map[string]ptrace.Span{}
	for _, s := range resource.ScopeSpans().At(0).Spans().All() {
		spans[s.Name()] = s
	}
	if request.Traces().SpanCount() != 3 || len(spans) != 3 {
		t.Fatalf("%d spans", request.Traces().SpanCount())
	}
	of, child, later := spans["PUT /api"], spans["smtp.data"], spans["mail.attempt"]
	status, _ := of.Attributes().Get("http.response.status_code")
	project, _ := of.Attributes().Get("fingerpost.project")
	switch {
	case of.TraceID() != parent.Trace || of.ParentSpanID() != parent.Span || of.SpanID() != root.ID().Span:
		t.Error("the ids are others")
	case of.Kind() != ptrace.SpanKindServer || child.Kind() != ptrace.SpanKindClient || later.Kind() != ptrace.SpanKindInternal:
		t.Error("the kinds are others")
	case !of.StartTimestamp().AsTime().Equal(began) || of.EndTimestamp()-of.StartTimestamp() != 2e9:
		t.Error("the times are others")
	case status.Int() != 503 || project.Str() != "acmé \"\x00\ufffd":
		t.Errorf("the attributes are %v", of.Attributes().AsRaw())
	case of.Status().Code() != ptrace.StatusCodeError:
		t.Error("the status is another")
	case child.TraceID() != of.TraceID() || child.ParentSpanID() != of.SpanID():
		t.Error("the step is not below the request")
	case later.TraceID() == of.TraceID() || !later.ParentSpanID().IsEmpty() || later.Links().Len() != 1 ||
		later.Links().At(0).SpanID() != of.SpanID() || later.Links().At(0).TraceID() != of.TraceID():
		t.Error("the later attempt has no link to the request")
	}
	if e.Dropped() != 0 {
		t.Errorf("%d dropped", e.Dropped())
	}
}
