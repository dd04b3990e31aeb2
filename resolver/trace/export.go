package trace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
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
	o        Options
	resource []attribute
	client   http.Client
	full     chan struct{} // a batch is there

	mu      sync.Mutex // guards what follows
	ring    [ringSpans]*Span
	first   int // of the ring, the oldest
	spans   int // in the ring
	dropped uint64
}

// New makes an Exporter. It sends while Run runs.
func New(o Options) *Exporter {
	e := &Exporter{o: o, full: make(chan struct{}, 1)}
	e.resource = []attribute{text("service.name", o.Service), text("service.version", o.Version)}
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

func (e *Exporter) put(s *Span) {
	e.mu.Lock()
	if e.spans == ringSpans {
		e.first = (e.first + 1) % ringSpans
		e.spans--
		e.dropped++
	}
	e.ring[(e.first+e.spans)%ringSpans] = s
	e.spans++
	batch := e.spans >= batchSpans
	e.mu.Unlock()
	if batch {
		select {
		case e.full <- struct{}{}:
		default:
		}
	}
}

// take removes and returns the oldest spans.
func (e *Exporter) take() (batch []*Span) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for ; e.spans > 0 && len(batch) < batchSpans; e.spans-- {
		batch = append(batch, e.ring[e.first])
		e.ring[e.first] = nil
		e.first = (e.first + 1) % ringSpans
	}
	return batch
}

// putBack undoes take as far as the ring has room.
func (e *Exporter) putBack(batch []*Span) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for ; len(batch) > 0 && e.spans < ringSpans; e.spans++ {
		e.first = (e.first + ringSpans - 1) % ringSpans
		e.ring[e.first] = batch[len(batch)-1]
		batch = batch[:len(batch)-1]
	}
	e.dropped += uint64(len(batch))
}

func (e *Exporter) drop(spans int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.dropped += uint64(spans)
}

// Run sends spans until ctx ends. Flush sends the rest.
func (e *Exporter) Run(ctx context.Context) {
	wait := every
	for {
		timer := time.NewTimer(wait)
		full := e.full
		if wait > every {
			full = nil // the collector is away: a full batch is no reason to ask sooner
		}
		select {
		case <-timer.C:
		case <-full:
			timer.Stop()
		case <-ctx.Done():
			timer.Stop()
			return
		}
		err := e.sendAll(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && wait == every:
			e.o.Logger.Warn("the collector takes no spans: they wait, the oldest are dropped", "error", err)
			wait = 2 * every
		case err != nil:
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
		rest := 0
		for batch := e.take(); len(batch) > 0; batch = e.take() {
			rest += len(batch)
		}
		e.drop(rest)
		e.o.Logger.Warn("spans did not reach the collector before the end", "spans", rest, "error", err)
	}
}

// sendAll sends batch after batch. An error is one that may go away; the ring has the batch again.
func (e *Exporter) sendAll(ctx context.Context) error {
	for batch := e.take(); len(batch) > 0; batch = e.take() {
		body, err := otlp(e.resource, batch)
		if err == nil {
			err = e.send(ctx, body, len(batch))
		}
		if final := (*refusal)(nil); errors.As(err, &final) {
			e.drop(len(batch))
			e.o.Logger.Warn("the collector refuses spans", "spans", len(batch), "error", err)
		} else if err != nil {
			e.putBack(batch)
			return err
		}
	}
	return nil
}

// A refusal is an answer after which the same spans are not sent again.
type refusal struct{ status int }

func (r *refusal) Error() string { return "the collector answers " + strconv.Itoa(r.status) }

func (e *Exporter) send(ctx context.Context, body []byte, spans int) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.o.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	for name, value := range e.o.Headers {
		request.Header.Set(name, value)
	}
	answer, err := e.client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	said, _ := io.ReadAll(io.LimitReader(answer.Body, 64<<10)) // it ends with the connection
	switch status := answer.StatusCode; {
	case status/100 == 2:
		e.drop(min(rejected(said), spans))
		return nil
	case status == http.StatusTooManyRequests || status == http.StatusBadGateway ||
		status == http.StatusServiceUnavailable || status == http.StatusGatewayTimeout: // what OTLP calls retryable
		return fmt.Errorf("the collector answers %d", status)
	default:
		return &refusal{status}
	}
}

// rejected returns how many spans of a batch a collector refused in an answer of success.
func rejected(answer []byte) int {
	var a struct {
		PartialSuccess struct {
			RejectedSpans json.RawMessage `json:"rejectedSpans"` // a number, or one as text
		} `json:"partialSuccess"`
	}
	if json.Unmarshal(answer, &a) != nil {
		return 0
	}
	n, _ := strconv.Atoi(string(bytes.Trim(a.PartialSuccess.RejectedSpans, `"`)))
	return max(n, 0)
}
