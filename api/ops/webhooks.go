package ops

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"fingerpost/api/conditions"
)

// A webhooksStatus is the delivery of events in the document of /status.
type webhooksStatus struct {
	Problem string               `json:"problem,omitempty"` // why nothing is delivered
	Active  []conditions.Webhook `json:"active"`
}

func (r *Readings) webhooks() *webhooksStatus {
	if r.Webhooks == nil {
		return nil
	}
	var s conditions.State
	r.Webhooks.AddFacts(&s)
	return &webhooksStatus{Problem: s.WebhookProblem, Active: append([]conditions.Webhook{}, s.Webhooks...)}
}

func webhookDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("fingerpost_webhook_"+name, help, []string{"webhook"}, nil)
}

// hookSeries has the metrics of each active webhook.
var hookSeries = []struct {
	desc  *prometheus.Desc
	value func(w *conditions.Webhook, now time.Time) float64
}{
	{webhookDesc("waiting", "Projects of which something is to be delivered to an active webhook."),
		func(w *conditions.Webhook, _ time.Time) float64 { return float64(w.Waiting) }},
	{webhookDesc("failing", "Projects that wait at a webhook, and whose delivery has failed at least once."),
		func(w *conditions.Webhook, _ time.Time) float64 { return float64(w.Failing) }},
	{webhookDesc("oldest_seconds", "Age of the oldest event that waits at a webhook; 0 if none waits."),
		func(w *conditions.Webhook, now time.Time) float64 {
			if w.Oldest.IsZero() {
				return 0
			}
			return max(0, now.Sub(w.Oldest).Seconds())
		}},
	{webhookDesc("behind", "Entries of the audit trail that a webhook has not come to yet."),
		func(w *conditions.Webhook, _ time.Time) float64 { return float64(w.Behind) }},
	{webhookDesc("off", "1 while a webhook is switched off: its receiver answered 410, or failed for five days."),
		func(w *conditions.Webhook, _ time.Time) float64 { return boolValue(!w.OffSince.IsZero()) }},
	{webhookDesc("last_dead_timestamp_seconds", "When the latest delivery of a webhook was given up, 0 if never."),
		func(w *conditions.Webhook, _ time.Time) float64 { return seconds(w.DeadAt) }},
	{webhookDesc("last_gap_timestamp_seconds",
		"When a webhook has last missed events that were no longer kept, 0 if never."),
		func(w *conditions.Webhook, _ time.Time) float64 { return seconds(w.GapAt) }},
}

var webhooksProblem = prometheus.NewDesc("fingerpost_webhooks_problem",
	"1 while nothing is delivered to webhooks; /status says why. 0 on a node that does not deliver.", nil, nil)

// webhookMetrics shows the active webhooks, of which there are at most 100, from one reading of them all.
type webhookMetrics struct{ readings *Readings }

// Describe implements prometheus.Collector.
func (webhookMetrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- webhooksProblem
	for i := range hookSeries {
		ch <- hookSeries[i].desc
	}
}

// Collect implements prometheus.Collector.
func (m webhookMetrics) Collect(ch chan<- prometheus.Metric) {
	var problem float64
	if st := m.readings.webhooks(); st != nil {
		problem = boolValue(st.Problem != "")
		now := time.Now()
		for i := range hookSeries {
			for j := range st.Active {
				w := &st.Active[j]
				ch <- prometheus.MustNewConstMetric(hookSeries[i].desc, prometheus.GaugeValue, hookSeries[i].value(w, now), w.Name)
			}
		}
	}
	ch <- prometheus.MustNewConstMetric(webhooksProblem, prometheus.GaugeValue, problem)
}
