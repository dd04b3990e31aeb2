package trace

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	ringSpans  = 4096
	batchSpans = 512
	every      = time.Second
	patience   = 10 * time.Second // for the collector's answer
	mostWait   = 30 * time.Second // between two tries while the collector is away
)

// Options say where spans go.
type Options struct {
	URL     string            // of the collector, with its path
	Headers map[string]string // of each request
	Service string            // service.name
	Version string            // service.version
	Logger  *slog.Logger
}

// An Exporter sends ended spans to a collector. A nil Exporter traces nothing.
type Exporter struct {
	o      Options
	head   []byte // of each document
	client http.Client
	full   chan struct{} // a batch is there

	mu      sync.Mutex // guards what follows
	spans   []*Span    // the ring: ended, the oldest first, at most ringSpans
	dropped uint64
}

// New makes an Exporter. It sends while Run runs.
func New(o Options) *Exporter {
	process := appendAttribute(nil, "service.name", "stringValue", quote(o.Service))
	process = appendAttribute(process, "service.version", "stringValue", quote(o.Version))
	e := &Exporter{o: o, head: fmt.Appendf(nil, otlpHead, process), full: make(chan struct{}, 1)}
	// A redirect would carry the headers, which may have a token, to another server.
	e.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return e
}

// Dropped returns how many spans the collector did not get.
func (e *Exporter) Dropped() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.dropped
}

func (e *Exporter) drop(spans int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.dropped += uint64(spans)
}

func (e *Exporter) put(s *Span) {
	e.mu.Lock()
	e.addToRing(append(e.spans, s))
	batch := len(e.spans) == batchSpans // no more: while the collector is away, a full ring is no reason to ask sooner
	e.mu.Unlock()
	if batch {
		select {
		case e.full <- struct{}{}:
		default:
		}
	}
}

// addToRing keeps the newest spans that the ring has room for. The caller holds mu.
func (e *Exporter) addToRing(spans []*Span) {
	over := max(len(spans)-ringSpans, 0)
	e.dropped += uint64(over)
	e.spans = spans[over:]
}

// takeBatch removes and returns the oldest spans.
func (e *Exporter) takeBatch() (batch []*Span) {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := min(len(e.spans), batchSpans)
	batch, e.spans = e.spans[:n:n], e.spans[n:]
	return batch
}

// putBack undoes take as far as the ring has room.
func (e *Exporter) putBack(batch []*Span) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.addToRing(append(batch, e.spans...))
}

// Run sends spans until ctx ends. Flush sends the rest.
func (e *Exporter) Run(ctx context.Context) {
	for wait := every; ; {
		select {
		case <-time.After(wait):
		case <-e.full:
		case <-ctx.Done():
			return
		}
		switch err := e.sendAll(ctx); {
		case ctx.Err() != nil:
			return
		case err != nil:
			if wait == every {
				e.o.Logger.Warn("the collector takes no spans: they wait, the oldest are dropped", "error", err)
			}
			wait = min(2*wait, mostWait)
		case wait > every:
			e.o.Logger.Info("the collector takes spans again", "dropped", e.Dropped())
			wait = every
		}
	}
}

// Flush sends what the ring has until ctx ends, and counts the rest as dropped. Run must have ended.
func (e *Exporter) Flush(ctx context.Context) {
	if err := e.sendAll(ctx); err != nil {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.o.Logger.Warn("spans did not reach the collector before the end", "spans", len(e.spans), "error", err)
		e.dropped += uint64(len(e.spans))
		e.spans = nil
	}
}

// sendAll sends batch after batch. An error is one that may go away; the ring has the batch again.
func (e *Exporter) sendAll(ctx context.Context) error {
	for batch := e.takeBatch(); len(batch) > 0; batch = e.takeBatch() {
		again, err := e.send(ctx, batch)
		if again {
			e.putBack(batch)
			return err
		}
		if err != nil {
			e.drop(len(batch))
			e.o.Logger.Warn("the collector refuses spans", "spans", len(batch), "error", err)
		}
	}
	return nil
}

// retryable are the answers after which OTLP sends the same spans again.
var retryable = []int{http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable,
	http.StatusGatewayTimeout}

// send sends a batch. again says that the collector may take it later.
func (e *Exporter) send(ctx context.Context, batch []*Span) (again bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	body := append(make([]byte, 0, (len(batch)+1)<<10), e.head...) // about the right size: growing would copy it
	for i, s := range batch {
		if i > 0 {
			body = append(body, ',')
		}
		body = s.appendTo(body)
	}
	body = append(body, otlpTail...)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.o.URL, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	request.Header.Set("Content-Type", "application/json")
	for name, value := range e.o.Headers {
		request.Header.Set(name, value)
	}
	answer, err := e.client.Do(request)
	if err != nil {
		return true, err
	}
	defer answer.Body.Close()
	said, _ := io.ReadAll(io.LimitReader(answer.Body, 64<<10)) // it ends with the connection
	if answer.StatusCode/100 != 2 {
		return slices.Contains(retryable, answer.StatusCode), fmt.Errorf("the collector answers %d", answer.StatusCode)
	}
	e.drop(min(rejected(said), len(batch)))
	return false, nil
}

// rejected returns how many spans of a batch a collector refused in an answer of success.
func rejected(answer []byte) int {
	var a struct {
		PartialSuccess struct{ RejectedSpans json.Number } // also one as text
	}
	_ = json.Unmarshal(answer, &a) // other answers reject nothing
	n, _ := a.PartialSuccess.RejectedSpans.Int64()
	return int(max(n, 0))
}
