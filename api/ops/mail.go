package ops

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/records"
)

// mailStatus is the part of /status about the mail service.
type mailStatus struct {
	Queued int64 `json:"queued"`         // mails that are accepted and have not reached their end
	Sink   bool  `json:"sink,omitempty"` // every mail is kept instead of being sent
	// what the disk of the mail store lacks; sends are refused while it does
	LowDisk  string            `json:"lowDisk,omitempty"`
	Attempts int64             `json:"attempts"` // that run now
	Sends    map[string]uint64 `json:"sends"`    // by result, since the start
	Stopped  []stoppedStatus   `json:"stopped"`  // at most maxStopped
	Gaps     []records.MailGap `json:"gaps,omitempty"`
}

// A stoppedStatus is a project whose mail is not tried until its SMTP config changes.
type stoppedStatus struct {
	Project   string       `json:"project"` // its slug, "" where the project is gone
	ProjectID int64        `json:"projectId"`
	Code      catalog.Code `json:"code"`
	Since     time.Time    `json:"since"`
	Waiting   int          `json:"waiting"` // mails
}

// maxStopped bounds how many projects /status names.
const maxStopped = 100

func (o *Server) mailStatus() *mailStatus {
	c, stopped := o.Mail.Counts(), o.Mail.Stopped()
	s := &mailStatus{Queued: c.Waiting, Sink: c.Keeps, LowDisk: c.LowDisk, Attempts: c.Attempts,
		Sends: make(map[string]uint64, len(c.Sends)), Stopped: []stoppedStatus{}}
	for _, send := range c.Sends {
		s.Sends[send.Result] = send.N
	}
	for _, held := range stopped[:min(len(stopped), maxStopped)] {
		status := stoppedStatus{ProjectID: held.ProjectID, Code: held.Code, Since: held.Since.UTC(), Waiting: held.Waiting}
		if project, err := o.Resolver.ProjectByID(held.ProjectID); err == nil {
			status.Project = project.Slug
		}
		s.Stopped = append(s.Stopped, status)
	}
	s.Gaps = o.Resolver.MailGaps()
	return s
}

// mailMetrics are the metrics of the mail service.
func (o *Server) mailMetrics(gauge func(name, help string,
	value func() float64) prometheus.Collector) []prometheus.Collector {
	return []prometheus.Collector{
		outcomes{&o.Readings},
		counters{
			desc: prometheus.NewDesc("fingerpost_mail_sends_total",
				"What came of attempts to send a mail, and of the wait for one; kept: by --mail-sink.", []string{"result"}, nil),
			read: func(yield func(result string, count uint64)) {
				for _, send := range o.Mail.Counts().Sends {
					yield(send.Result, send.N)
				}
			},
		},
		gauge("fingerpost_mail_queue_depth", "Mails that are accepted and have not reached their end.",
			func() float64 { return float64(o.Mail.Counts().Waiting) }),
		gauge("fingerpost_mail_queue_oldest_seconds",
			"Age of the oldest mail that waits, without those of stopped projects; 0 if none waits.", func() float64 {
				if id := o.Mail.Counts().Oldest; id != 0 {
					return max(0, time.Since(records.MailTime(id)).Seconds())
				}
				return 0
			}),
		gauge("fingerpost_mail_disk_low", "1 while the disk has too little room for mail: sends are refused.",
			func() float64 { return boolValue(o.Mail.Counts().LowDisk != "") }),
		gauge("fingerpost_mail_stopped_mails", "Mails that wait in projects whose mail has stopped.",
			func() float64 { return float64(o.Mail.Counts().StoppedMails) }),
		gauge("fingerpost_mail_attempts_running", "Attempts to send a mail that are under way.",
			func() float64 { return float64(o.Mail.Counts().Attempts) }),
		gauge("fingerpost_mail_log_gaps", "Damaged stores whose mail was not recovered whole, or is not yet.",
			func() (n float64) {
				for _, gap := range o.Resolver.MailGaps() {
					n += boolValue(!gap.Complete)
				}
				return n
			}),
		gauge("fingerpost_mail_stopped_projects", "Projects whose mail is not tried until their SMTP config changes.",
			func() float64 { return float64(o.Mail.Counts().StoppedProjects) }),
	}
}

// outcomes shows what has become of the outcomes of mails that providers have told. There are at most 20 inbound blocks.
type outcomes struct{ readings *Readings }

var outcomesDesc = prometheus.NewDesc("fingerpost_mail_inbound_total",
	"Outcomes of mails that a provider has told, by inbound block and by what has become of them.",
	[]string{"inbound", "result"}, nil)

// Describe implements prometheus.Collector.
func (outcomes) Describe(ch chan<- *prometheus.Desc) { ch <- outcomesDesc }

// Collect implements prometheus.Collector.
func (o outcomes) Collect(ch chan<- prometheus.Metric) {
	if o.readings.Outcomes == nil {
		return
	}
	o.readings.Outcomes(func(block, result string, count uint64) {
		ch <- prometheus.MustNewConstMetric(outcomesDesc, prometheus.CounterValue, float64(count), block, result)
	})
}
