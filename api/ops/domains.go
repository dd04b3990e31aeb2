package ops

import "github.com/prometheus/client_golang/prometheus"

// Domains is what the ops listener asks of the checks of customers' domains.
type Domains interface {
	// Status is a part of /status; nil: the files have no verification block.
	Status() any
	// EachCount yields how many domains are in each state of each axis; nothing without a verification block.
	EachCount(yield func(axis, state string, n int))
	Facts
}

// domainMetrics shows the domains in each state: one series for each state of an axis, whose name is the only label. It
// describes nothing, because the series come and go with the verification block.
type domainMetrics struct{ domains Domains }

// Describe implements prometheus.Collector.
func (domainMetrics) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (m domainMetrics) Collect(ch chan<- prometheus.Metric) {
	m.domains.EachCount(func(axis, state string, n int) {
		desc := prometheus.NewDesc("fingerpost_domains",
			"Customers' domains in each state of one axis: ownership, pointing or certificate.", []string{axis}, nil)
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(n), state)
	})
}
