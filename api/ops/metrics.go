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
		gauge("fingerpost_ready", "1 while the service asks for requests, as /readyz says.",
			func() float64 { return boolValue(o.ready.Load()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "fingerpost_build_info", Help: "1, with what is running.",
			ConstLabels: prometheus.Labels{"version": o.Version, "commit": o.Commit, "goversion": runtime.Version()}},
			func() float64 { return 1 }),
		counters{
			desc: prometheus.NewDesc("fingerpost_auth_failures_total",
				"Requests refused because their key or token was missing or not good.",
				[]string{"reason"}, nil),
			read: o.Figures.EachAuthFailure,
		},
		counters{
			desc: prometheus.NewDesc("fingerpost_gateway_answers_total",
				"Answers to gateways: the request passed, its domain was denied, its token or key was no good, the gateway's "+
					"question was invalid, or the service failed.", []string{"result"}, nil),
			read: o.Figures.EachGatewayAnswer,
		},
		counters{
			desc: prometheus.NewDesc("fingerpost_resolve_cache_total",
				"Resolve answers: from the cache, from that of unknown names, or made new.",
				[]string{"result"}, nil),
			read: o.eachCacheResult,
		},
		gauge("fingerpost_resolve_cache_bytes", "Memory that cached answers take.",
			func() float64 { m := o.Resolver.Metrics(); return float64(m.CacheBytes + m.UnknownBytes) }),
		gauge("fingerpost_config_last_reload_success_timestamp_seconds",
			"When the files were last looked at without a failure, 0 if never.",
			func() float64 { return seconds(status().LastSuccess) }),
		gauge("fingerpost_config_failing", "1 while the config folder cannot be read; its last good content is served.",
			func() float64 { return boolValue(status().Error != "") }),
		gauge("fingerpost_config_files", "Config files that are in force.",
			func() float64 { return float64(status().Files) }),
		gauge("fingerpost_config_projects", "Projects that the config files declare.",
			func() float64 { return float64(status().Projects) }),
		gauge("fingerpost_config_domains", "Domains that the config files declare.",
			func() float64 { return float64(status().Domains) }),
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
		counters{
			desc: prometheus.NewDesc("fingerpost_config_writes_total",
				"Writes of clients into the files: written, refused for what they asked, or failed on this side.",
				[]string{"result"}, nil),
			read: o.Config.EachWrite,
		},
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
		gauge("fingerpost_ledger_disk_free_ratio",
			"Free share of the disk of the data folder; 1 where the system does not tell.", o.Readings.diskFree),
		gauge("fingerpost_audit_available", "1 while the audit trail takes entries; without it writes are refused.",
			func() float64 { return boolValue(o.Resolver.Auditable()) }),
		gauge("fingerpost_audit_gaps", "Places at which damage has cut the audit trail.", func() float64 {
			gaps, _ := o.Resolver.AuditGaps() // a ledger that cannot be read is not available
			return float64(len(gaps))
		}),
		gauge("fingerpost_backup_last_success_timestamp_seconds",
			"When this process has last written a whole backup, 0 if never.",
			func() float64 { return float64(o.backedUp.Load()) / 1000 }),
		gauge("fingerpost_tls_certificate_expiry_timestamp_seconds",
			"When the certificate of --tls-cert ends, 0 without one.",
			func() float64 { return seconds(o.Readings.certificateEnd()) }),
		gauge("fingerpost_key_expiry_timestamp_seconds", "When the next API key ends, 0 if none has an end.",
			func() float64 { return seconds(o.Resolver.NextKeyEnd(time.Now())) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "fingerpost_trace_spans_dropped_total",
			Help: "Spans that the collector of --otlp did not get."}, o.Readings.spansDropped),
		gauge("fingerpost_mail_senders_worse",
			"Projects that send mail, and of whose sender receivers find more wrong than before.", o.Readings.worseSenders),
		webhookMetrics{&o.Readings},
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
	if o.Readings.Domains != nil {
		all = append(all, domainMetrics{o.Readings.Domains})
	}
	for _, c := range all {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return registry, nil
}

// seconds returns a time as Prometheus has it, 0 for the zero time.
func seconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1000
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
	Samples []Sample // traced ones, at most one of each bucket
}

// A Sample is a traced request.
type Sample struct {
	TraceID string
	Took    time.Duration
	At      time.Time
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
		m := prometheus.MustNewConstHistogram(durationsDesc, r.Count, r.Sum.Seconds(), r.Buckets, r.Route, r.Method,
			strconv.Itoa(r.Status))
		if len(r.Samples) > 0 {
			m = prometheus.MustNewMetricWithExemplars(m, exemplars(r.Samples)...)
		}
		ch <- m
	})
}

// exemplars are what OpenMetrics shows of samples; the older format leaves them out.
func exemplars(samples []Sample) (list []prometheus.Exemplar) {
	for _, s := range samples {
		list = append(list, prometheus.Exemplar{Value: s.Took.Seconds(), Labels: prometheus.Labels{"trace_id": s.TraceID},
			Timestamp: s.At})
	}
	return list
}
