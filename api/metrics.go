package api

import (
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"
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

// A lane counts the resolve requests of some of the connections: with one for all, the cores would pass its memory to
// and fro with every request.
type lane struct {
	ok, notModified histogram // status 200 and 304
	_               [64]byte
}

// lanes is how many there are; connections get them in turn.
const lanes = 16

func (h *histogram) observe(d time.Duration) {
	i := 0
	for i < len(durationBounds) && d > durationBounds[i] {
		i++
	}
	h.buckets[i].Add(1)
	h.sum.Add(int64(d))
}

// metrics are the request durations by route, method and status. It is a prometheus.Collector of its own because the
// library's histogram would cost the hot path a hash of three labels.
type metrics struct {
	durations *prometheus.Desc
	resolved  [lanes]lane // GET resolve
	others    sync.Map    // requestLabels to *histogram
}

type requestLabels struct {
	route, method string
	status        int
}

func newMetrics() *metrics {
	return &metrics{durations: prometheus.NewDesc("fingerpost_http_request_duration_seconds",
		"Time from a request being read to its answer being ready.", []string{"route", "method", "status"}, nil)}
}

// observeResolve counts a call of resolve. c may be nil.
func (m *metrics) observeResolve(ctx *fasthttp.RequestCtx, c *conn, took time.Duration) {
	lane := &m.resolved[0]
	if c != nil {
		lane = &m.resolved[c.hot.lane]
	}
	status := ctx.Response.StatusCode()
	switch {
	case status == http.StatusOK && ctx.IsGet():
		lane.ok.observe(took)
	case status == http.StatusNotModified && ctx.IsGet():
		lane.notModified.observe(took)
	default:
		m.observe(resolvePath, methodLabel(ctx.Method()), status, took)
	}
}

func (m *metrics) observe(route, method string, status int, took time.Duration) {
	labels := requestLabels{route, method, status}
	h, ok := m.others.Load(labels)
	if !ok {
		h, _ = m.others.LoadOrStore(labels, &histogram{})
	}
	h.(*histogram).observe(took)
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) { ch <- m.durations }

// Collect implements prometheus.Collector.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	var ok, notModified histogram
	for i := range m.resolved {
		ok.add(&m.resolved[i].ok)
		notModified.add(&m.resolved[i].notModified)
	}
	m.collect(ch, &ok, requestLabels{resolvePath, http.MethodGet, http.StatusOK})
	m.collect(ch, &notModified, requestLabels{resolvePath, http.MethodGet, http.StatusNotModified})
	m.others.Range(func(labels, h any) bool {
		m.collect(ch, h.(*histogram), labels.(requestLabels))
		return true
	})
}

func (m *metrics) collect(ch chan<- prometheus.Metric, h *histogram, labels requestLabels) {
	var count uint64
	buckets := make(map[float64]uint64, len(durationBounds))
	for i, bound := range durationBounds {
		count += h.buckets[i].Load()
		buckets[bound.Seconds()] = count
	}
	count += h.buckets[len(durationBounds)].Load()
	ch <- prometheus.MustNewConstHistogram(m.durations, count, time.Duration(h.sum.Load()).Seconds(), buckets,
		labels.route, labels.method, strconv.Itoa(labels.status))
}
