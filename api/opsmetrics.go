package api

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// registry gathers all metrics (contract cli.md). Each is read when it is asked for.
func (o *Ops) registry() (*prometheus.Registry, error) {
	registry := prometheus.NewRegistry()
	status := o.config.Status
	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
	}
	all := []prometheus.Collector{
		o.server.metrics,
		counters{
			desc: prometheus.NewDesc("fingerpost_auth_failures_total", "Requests refused for want of a good key or token.", []string{"reason"}, nil),
			read: o.server.keys.eachFailure,
		},
		counters{
			desc: prometheus.NewDesc("fingerpost_resolve_cache_total", "Resolve answers, by how the cache did.", []string{"result"}, nil),
			read: o.eachCacheResult,
		},
		gauge("fingerpost_resolve_cache_bytes", "Memory that cached answers take.",
			func() float64 { m := o.server.resolver.Metrics(); return float64(m.CacheBytes + m.UnknownBytes) }),
		gauge("fingerpost_config_last_reload_success_timestamp_seconds", "When the files were last looked at without a failure, 0 if never.",
			func() float64 {
				if t := status().LastSuccess; !t.IsZero() {
					return float64(t.UnixMilli()) / 1000
				}
				return 0
			}),
		gauge("fingerpost_config_problems", "Errors in the config files.", func() float64 { return float64(status().Errors) }),
		gauge("fingerpost_config_quarantined_files", "Config files whose last good state is served.",
			func() float64 { return float64(status().Quarantined) }),
		gauge("fingerpost_config_held", "1 while a mass deletion is held back.", func() float64 { return boolValue(status().Held != nil) }),
		gauge("fingerpost_config_disk_low", "1 while the config folder's disk has too little room for API writes.",
			func() float64 { return boolValue(status().LowDisk != "") }),
		gauge("fingerpost_config_generation", "The generation that is being served.",
			func() float64 { return float64(o.server.resolver.Generation()) }),
		gauge("fingerpost_store_degraded", "1 while the store cannot be written and one in memory takes its place.",
			func() float64 { _, bad := o.server.resolver.Degraded(); return boolValue(bad) }),
		gauge("fingerpost_http_connections", "Open connections of the platform and mail APIs.",
			func() float64 { return float64(o.server.gate.Open()) }),
		gauge("fingerpost_event_streams", "Open streams of the change feed.",
			func() float64 { return float64(o.server.streams.len()) }),
		counters{
			desc: prometheus.NewDesc("fingerpost_event_streams_ended_total", "Streams of the change feed that have ended, by reason.", []string{"reason"}, nil),
			read: o.server.streams.eachEnding,
		},
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	}
	if o.after != nil {
		all = append(all, counters{
			desc: prometheus.NewDesc("fingerpost_after_write_runs_total", "Runs of the command after writes.", []string{"result"}, nil),
			read: o.eachAfterWrite,
		}, gauge("fingerpost_after_write_pending", "Writes that the command after writes has yet to be run for.",
			func() float64 { return float64(o.after().Pending) }))
	}
	if o.mail != nil {
		all = append(all, o.mailMetrics(gauge)...)
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

func (o *Ops) eachCacheResult(yield func(label string, count uint64)) {
	m := o.server.resolver.Metrics()
	yield("hit", m.Hits)
	yield("negative_hit", m.NegativeHits)
	yield("miss", m.Misses)
}

func (o *Ops) eachAfterWrite(yield func(label string, count uint64)) {
	st := o.after()
	yield("ok", st.Runs-st.Failures)
	yield("failed", st.Failures)
}

// counters show counts that are kept elsewhere, told apart by one label.
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
