package ops

import (
	"runtime"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// registry gathers all metrics. Each is read when it is asked for.
func (o *Server) registry() (*prometheus.Registry, error) {
	registry := prometheus.NewRegistry()
	status := o.Config.Status
	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
	}
	all := []prometheus.Collector{
		durations{o.Figures},
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "fingerpost_build_info", Help: "1, with what is running.",
			ConstLabels: prometheus.Labels{"version": o.Version, "commit": o.Commit, "goversion": runtime.Version()}},
			func() float64 { return 1 }),
		counters{
			desc: prometheus.NewDesc("fingerpost_auth_failures_total", "Requests refused for want of a good key or token.",
				[]string{"reason"}, nil),
			read: o.Figures.EachAuthFailure,
		},
		counters{
			desc: prometheus.NewDesc("fingerpost_resolve_cache_total", "Resolve answers, by how the cache did.",
				[]string{"result"}, nil),
			read: o.eachCacheResult,
		},
		gauge("fingerpost_resolve_cache_bytes", "Memory that cached answers take.",
			func() float64 { m := o.Resolver.Metrics(); return float64(m.CacheBytes + m.UnknownBytes) }),
		gauge("fingerpost_config_last_reload_success_timestamp_seconds",
			"When the files were last looked at without a failure, 0 if never.",
			func() float64 {
				if t := status().LastSuccess; !t.IsZero() {
					return float64(t.UnixMilli()) / 1000
				}
				return 0
			}),
		gauge("fingerpost_config_problems", "Errors in the config files.",
			func() float64 { return float64(status().Errors) }),
		gauge("fingerpost_config_quarantined_files", "Config files whose last good state is served.",
			func() float64 { return float64(status().Quarantined) }),
		gauge("fingerpost_config_held", "1 while a mass deletion is held back.",
			func() float64 { return boolValue(status().Held != nil) }),
		gauge("fingerpost_config_disk_low", "1 while the config folder's disk has too little room for API writes.",
			func() float64 { return boolValue(status().LowDisk != "") }),
		gauge("fingerpost_config_generation", "The generation that is being served.",
			func() float64 { return float64(o.Resolver.Generation()) }),
		gauge("fingerpost_store_degraded", "1 while the store cannot be written and one in memory takes its place.",
			func() float64 { _, bad := o.Resolver.Degraded(); return boolValue(bad) }),
		gauge("fingerpost_http_connections", "Open connections of the platform and mail APIs.",
			func() float64 { return float64(o.Figures.Connections()) }),
		gauge("fingerpost_event_streams", "Open streams of the change feed.",
			func() float64 { return float64(o.Streams.Len()) }),
		counters{
			desc: prometheus.NewDesc("fingerpost_event_streams_ended_total",
				"Streams of the change feed that have ended, by reason.", []string{"reason"}, nil),
			read: o.Streams.EachEnding,
		},
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	}
	if o.Git != nil {
		all = append(all, o.gitMetrics(gauge)...)
	}
	if o.Mail != nil {
		all = append(all, o.mailMetrics(gauge)...)
	}
	if o.Cluster != nil {
		all = append(all, clusterMetrics{o.Cluster})
	}
	for _, c := range all {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return registry, nil
}

func boolValue(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func (o *Server) eachCacheResult(yield func(label string, count uint64)) {
	m := o.Resolver.Metrics()
	yield("hit", m.Hits)
	yield("negative_hit", m.NegativeHits)
	yield("miss", m.Misses)
}

// counters shows counts that are kept elsewhere, with one label.
type counters struct {
	desc *prometheus.Desc
	read func(yield func(label string, count uint64))
}

// Describe implements prometheus.Collector.
func (c counters) Describe(ch chan<- *prometheus.Desc) { ch <- c.desc }

// Collect implements prometheus.Collector.
func (c counters) Collect(ch chan<- prometheus.Metric) {
	c.read(func(label string, count uint64) {
		ch <- prometheus.MustNewConstMetric(c.desc, prometheus.CounterValue, float64(count), label)
	})
}

// Requests are the durations of the requests of one route, method and status.
type Requests struct {
	Route, Method string
	Status        int
	// Buckets are the numbers of requests by the upper bound of their duration in seconds, each with those of the
	// bounds below it; Count has those above the last bound too.
	Buckets map[float64]uint64
	Count   uint64
	Sum     time.Duration
}

var durationsDesc = prometheus.NewDesc("fingerpost_http_request_duration_seconds",
	"Time from a request being read to its answer being ready.", []string{"route", "method", "status"}, nil)

// durations shows the durations of requests, which the HTTP server counts.
type durations struct{ figures Figures }

// Describe implements prometheus.Collector.
func (durations) Describe(ch chan<- *prometheus.Desc) { ch <- durationsDesc }

// Collect implements prometheus.Collector.
func (d durations) Collect(ch chan<- prometheus.Metric) {
	d.figures.EachRequest(func(r Requests) {
		ch <- prometheus.MustNewConstHistogram(durationsDesc, r.Count, r.Sum.Seconds(), r.Buckets, r.Route, r.Method,
			strconv.Itoa(r.Status))
	})
}
