package conditions

import (
	"fmt"
	"time"

	"fingerpost/resolver/catalog"
)

// Soon is how long before its end a key or a certificate needs a person.
const Soon = 14 * 24 * time.Hour

// Bounds of what is still well. The expressions of the alerts have the same figures.
const (
	fullDisk   = 0.9                // share of the disk of the data folder
	lossIsNews = 7 * 24 * time.Hour // for so long a loss needs a decision; after that it is history
)

const (
	rate      = "a rate over time, which only Prometheus keeps"
	makeRoom  = "make room, or move the data folder (--data) to a larger disk"
	diskGuide = "/docs/alerts#fingerpostledgerdisklow-and-fingerpostconfigdisklow"
)

// node are the conditions of the process and its data folder.
var node = []Kind{
	{ID: "down", Severity: Critical, Except: "a node that does not run says nothing", Alert: Alert{"Down",
		`up{job=~".*fingerpost.*"} == 0`, "1m", "{{ $labels.instance }} does not answer Prometheus"}},
	{ID: "not-ready", Severity: Critical, Check: "server", Remedy: "wait for it, and look into its log",
		Silent: "it belongs to a start and to an end",
		Alert: Alert{"NotReady", "fingerpost_ready == 0", "2m",
			"{{ $labels.instance }} runs, and is not ready: load balancers send it nothing"},
		find: func(s *State) []Condition {
			return told(s.NotReady, "This node is not ready yet: load balancers send it nothing.", "")
		}},
	{ID: "restarts", Severity: Warning, Except: rate, Alert: Alert{"Restarts",
		"changes(process_start_time_seconds[1h]) > 2 and on (job, instance) fingerpost_build_info", "",
		"{{ $labels.instance }} has started {{ $value }} times within an hour"}},
	{ID: "server-errors", Severity: Critical, Except: rate, Alert: Alert{"ServerErrors",
		`sum by (job, instance) (rate(fingerpost_http_request_duration_seconds_count{status=~"5.."}[5m]))
  / sum by (job, instance) (rate(fingerpost_http_request_duration_seconds_count[5m])) > 0.01`, "5m",
		"{{ $labels.instance }} answers {{ $value | humanizePercentage }} of the requests with an error of its own (5xx)"}},
	{ID: "resolve-slow", Severity: Warning, Except: rate, Alert: Alert{"ResolveSlow",
		`histogram_quantile(0.99, sum by (job, instance, le) (
  rate(fingerpost_http_request_duration_seconds_bucket{route="/api/platform/projects/resolve"}[5m]))) > 0.01`, "10m",
		"{{ $labels.instance }}: one resolve in a hundred takes longer than {{ $value | humanizeDuration }}"}},
	{ID: "store-degraded", Severity: Critical, Broken: true, Check: "store",
		Remedy: "make room on the disk, or repair it; the server recovers by itself",
		Alert: Alert{"StoreDegraded", "fingerpost_store_degraded == 1", "1m",
			"{{ $labels.instance }} answers from memory: its disk fails, and writes and mails are refused"},
		find: func(s *State) []Condition {
			return told(s.Store != "", "The store on disk is not in use: look-ups go on from memory, changes are refused.",
				s.Store)
		}},
	{ID: "ledger-disk-low", Severity: Warning, Check: "disk", Remedy: makeRoom, Guide: diskGuide,
		Alert: Alert{"LedgerDiskLow", "fingerpost_ledger_disk_free_ratio < 0.1", "5m",
			"{{ $labels.instance }}: {{ $value | humanizePercentage }} of the data folder's disk is free"},
		find: func(s *State) []Condition {
			return told(s.DiskUsed > fullDisk, fmt.Sprintf("The disk of the data folder is nearly full: %.1f %% of it is free.",
				100-100*s.DiskUsed), "")
		}},
	{ID: "audit-unavailable", Severity: Critical, Broken: true, Check: "store",
		Remedy: "see why the ledger cannot be written: it is usually the disk of --data",
		Silent: "the trail cannot tell that it takes no entries",
		Alert: Alert{"AuditUnavailable", "fingerpost_audit_available == 0", "5m",
			"{{ $labels.instance }} cannot record who changes what, and refuses all writes"},
		find: func(s *State) []Condition { // a store that is not in use explains it
			return told(s.Unaudited && s.Store == "", "The audit trail takes no entries: all changes are refused.", "")
		}},
	{ID: "audit-gap", Severity: Warning, Check: "store",
		Remedy: "restore a backup if you need the entries; /status has the gaps under audit",
		Alert: Alert{"AuditGap", "delta(fingerpost_audit_gaps[1h]) > 0", "",
			"{{ $labels.instance }} has lost a part of the audit trail with a damaged disk"},
		find: func(s *State) []Condition {
			return gaps(s, s.AuditGaps, "A damaged disk has cut a part out of the audit trail.")
		}},
	{ID: "secret-closed", Severity: Warning, Broken: true, Check: "secrets", Guide: "/docs/keys-and-secrets",
		Remedy: `mend the secret, then "fingerpost reload"`, Except: "no metric counts secrets",
		find: func(s *State) []Condition {
			list := append(secrets(s, false, "cannot be opened"), closedInbound(s)...)
			return append(list, hooks(s, "%s get no events: their secrets cannot be opened.",
				func(w *Webhook) (sentence, detail string, since time.Time) {
					if w.NoSecret {
						sentence = "gets no events: its secret cannot be opened."
					}
					return sentence, "", time.Time{}
				})...)
		}},
	{ID: "secret-weak", Severity: Info, Check: "secrets", Guide: "/docs/keys-and-secrets",
		Remedy: `mend the secret, then "fingerpost reload"`, Except: "no metric counts secrets",
		find: func(s *State) []Condition { return secrets(s, true, "can be opened, and should be another one") }},
	{ID: "key-set-missing", Severity: Warning, Broken: true, Check: "secrets", Guide: "/docs/keys-and-secrets",
		Remedy: "see that this machine reaches the jwks_url; it tries again by itself", Except: "no metric counts key sets",
		find: keySets},
}

// gaps are those that are examined, or were found lately.
func gaps(s *State, gaps []Gap, sentence string) (list []Condition) {
	for _, g := range gaps {
		list = append(list, told(g.Found.IsZero() || s.Time.Sub(g.Found) < lossIsNews, sentence, g.Reason, g.Found)...)
	}
	return list
}

// KeySetField is the Field of a Secret that is no secret: the key set of a project, of which no key is known yet.
const KeySetField = "jwksUrl"

func keySets(s *State) (list []Condition) {
	for _, x := range s.Secrets {
		if x.Field == KeySetField {
			list = append(list, Condition{Subject: "project " + x.Project, Project: x.ProjectID, Detail: x.Message,
				Sentence: "There is no key yet of the key set of the project " + x.Project + ": its tokens cannot be verified."})
		}
	}
	return list
}

func secrets(s *State, work bool, is string) (list []Condition) {
	for _, x := range s.Secrets {
		if x.Works == work && x.Field != KeySetField {
			list = append(list, Condition{Subject: "project " + x.Project, Project: x.ProjectID, Detail: x.Message,
				Sentence: "The secret " + x.Field + " of the project " + x.Project + " " + is + "."})
		}
	}
	return list
}

// ends are what ends at a known time, and what is lost on the way.
var ends = []Kind{
	{ID: "certificate-ends", Severity: Warning, Check: "tls",
		Remedy: "renew it; a running server takes the new file by itself",
		Alert: Alert{"CertificateEnds", "(fingerpost_tls_certificate_expiry_timestamp_seconds > 0) - time() < 14 * 86400", "",
			"{{ $labels.instance }}: the TLS certificate {{ if gt $value 0.0 }}ends in {{ $value | humanizeDuration }}" +
				"{{ else }}has ended{{ end }}"},
		find: func(s *State) []Condition {
			left := s.Certificate.Sub(s.Time)
			ends := "ends in " + catalog.Span(left)
			if left <= 0 {
				ends = "has ended"
			}
			return told(!s.Certificate.IsZero() && left < Soon, "The TLS certificate "+ends+".", "")
		}},
	{ID: "key-ends", Severity: Warning, Check: "keys", Remedy: `rotate it ("fingerpost keys rotate"), or let it end`,
		Alert: Alert{"KeyEnds", "(fingerpost_key_expiry_timestamp_seconds > 0) - time() < 14 * 86400", "",
			"{{ $labels.instance }}: an API key ends in {{ $value | humanizeDuration }}"},
		find: func(s *State) (list []Condition) {
			for _, k := range s.Keys {
				left, name := k.Ends.Sub(s.Time), "The key "+k.Name
				if k.Own {
					name = "Your key " + k.Name
				}
				if left >= 0 && left <= Soon {
					list = append(list, Condition{Subject: "key " + k.Name, Sentence: name + " ends in " + catalog.Span(left) + ".",
						Many: "%s end within 14 days.", Of: "key"})
				}
			}
			return list
		}},
	{ID: "spans-dropped", Severity: Info, Except: rate, Alert: Alert{"SpansDropped",
		"increase(fingerpost_trace_spans_dropped_total[10m]) > 0", "10m",
		"{{ $labels.instance }} drops spans: the trace collector does not take them"}},
}
