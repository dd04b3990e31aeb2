package api

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"fingerpost/api/gate"
	"fingerpost/api/gateway"
	"fingerpost/api/ops"
)

// durationBounds are the histogram's upper bounds. A resolve hit takes a few microseconds, a long list seconds.
var durationBounds = [...]time.Duration{
	2 * time.Microsecond, 5 * time.Microsecond, 10 * time.Microsecond, 25 * time.Microsecond, 100 * time.Microsecond,
	500 * time.Microsecond, 2 * time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond, 250 * time.Millisecond,
	time.Second, 10 * time.Second,
}

// A histogram counts durations with two atomic adds each.
type histogram struct {
	buckets [len(durationBounds) + 1]atomic.Uint64
	sum     atomic.Int64 // nanoseconds
}

func (h *histogram) add(other *histogram) {
	for i := range h.buckets {
		h.buckets[i].Add(other.buckets[i].Load())
	}
	h.sum.Add(other.sum.Load())
}

// A shard counts the resolve requests of some of the connections. With one counter for all connections, the cores would
// compete for its cache line at every request.
type shard struct {
	ok, notModified histogram // status 200 and 304
	_               [64]byte
}

// shards is the number of shards; connections get them round-robin.
const shards = 16

func (h *histogram) observe(d time.Duration) {
	h.buckets[bucketOf(d)].Add(1)
	h.sum.Add(int64(d))
}

func bucketOf(d time.Duration) int {
	i := 0
	for i < len(durationBounds) && d > durationBounds[i] {
		i++
	}
	return i
}

// metrics are the request durations by route, method and status.
type metrics struct {
	resolved [shards]shard // GET resolve
	checked  [shards]struct {
		histogram // GET check on a gateway listener, status 200
		_         [64]byte
	}
	told     *histogram // one of others: GET of me, status 200
	others   sync.Map   // requestLabels to *histogram
	samples  sync.Map   // requestLabels to *samples
	admitted atomic.Uint64
}

func newMetrics() *metrics {
	m := &metrics{}
	m.told = m.of(requestLabels{gateway.MePath, http.MethodGet, http.StatusOK})
	return m
}

// nextShard returns the shard of a new connection.
func (m *metrics) nextShard() int { return int(m.admitted.Add(1) % shards) }

type requestLabels struct {
	route, method string
	status        int
}

// observeResolve counts a call of resolve.
func (m *metrics) observeResolve(ctx *fasthttp.RequestCtx, c *conn, took time.Duration) {
	counts := &m.resolved[c.shard]
	status := ctx.Response.StatusCode()
	switch {
	case status == http.StatusOK && ctx.IsGet():
		counts.ok.observe(took)
	case status == http.StatusNotModified && ctx.IsGet():
		counts.notModified.observe(took)
	default:
		m.observe(resolvePath, methodLabel(ctx.Method()), status, took)
	}
}

func (m *metrics) observe(route, method string, status int, took time.Duration) {
	m.of(requestLabels{route, method, status}).observe(took)
}

// of returns the durations with some labels.
func (m *metrics) of(labels requestLabels) *histogram {
	h, ok := m.others.Load(labels)
	if !ok {
		h, _ = m.others.LoadOrStore(labels, &histogram{})
	}
	return h.(*histogram)
}

// samples are the last traced request of each bucket. They are apart from the histograms, which untraced requests share.
type samples [len(durationBounds) + 1]atomic.Pointer[ops.Sample]

// sample keeps a traced request as an example of its bucket.
func (m *metrics) sample(ctx *fasthttp.RequestCtx, route string, took time.Duration) {
	span := connOf(ctx).span
	if span == nil {
		return
	}
	labels := requestLabels{route, methodLabel(ctx.Method()), ctx.Response.StatusCode()}
	list, ok := m.samples.Load(labels)
	if !ok {
		list, _ = m.samples.LoadOrStore(labels, new(samples))
	}
	list.(*samples)[bucketOf(took)].Store(&ops.Sample{TraceID: span.ID().TraceID(), Took: took, At: time.Now()})
}

// each yields the durations of all requests.
func (m *metrics) each(to func(ops.Requests)) {
	yield := func(r ops.Requests) {
		if list, ok := m.samples.Load(requestLabels{r.Route, r.Method, r.Status}); ok {
			for i := range list.(*samples) {
				if sample := list.(*samples)[i].Load(); sample != nil {
					r.Samples = append(r.Samples, *sample)
				}
			}
		}
		to(r)
	}
	var ok, notModified histogram
	for i := range m.resolved {
		ok.add(&m.resolved[i].ok)
		notModified.add(&m.resolved[i].notModified)
	}
	yield(ok.requests(requestLabels{resolvePath, http.MethodGet, http.StatusOK}))
	yield(notModified.requests(requestLabels{resolvePath, http.MethodGet, http.StatusNotModified}))
	var checked histogram
	for i := range m.checked {
		checked.add(&m.checked[i].histogram)
	}
	if r := checked.requests(requestLabels{gate.CheckPath, http.MethodGet, http.StatusOK}); r.Count > 0 {
		yield(r)
	}
	m.others.Range(func(labels, h any) bool {
		if r := h.(*histogram).requests(labels.(requestLabels)); r.Count > 0 {
			yield(r)
		}
		return true
	})
}

func (h *histogram) requests(l requestLabels) ops.Requests {
	r := ops.Requests{Route: l.route, Method: l.method, Status: l.status, Buckets: make(map[float64]uint64,
		len(durationBounds)), Sum: time.Duration(h.sum.Load())}
	for i, bound := range durationBounds {
		r.Count += h.buckets[i].Load()
		r.Buckets[bound.Seconds()] = r.Count
	}
	r.Count += h.buckets[len(durationBounds)].Load()
	return r
}
