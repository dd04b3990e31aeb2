package conditions

import (
	"slices"
	"time"

	"fingerpost/resolver/catalog"
)

const mailIsLate = 5 * time.Minute

// mail are the conditions of the mail service.
var mail = []Kind{
	{ID: "mail-waits", Severity: Warning, Check: "mail",
		Remedy: `see what the SMTP servers say: "fingerpost logs --status RETRYING"`,
		Alert: Alert{"MailWaits", "fingerpost_mail_queue_oldest_seconds > 300", "1m",
			"{{ $labels.instance }}: a mail waits for {{ $value | humanizeDuration }} already"},
		find: func(s *State) []Condition {
			return told(s.MailWaits > mailIsLate, "A mail has waited for "+catalog.Span(s.MailWaits)+
				": the SMTP servers are away, or ask to wait.", "")
		}},
	{ID: "mail-stopped", Severity: Warning, Broken: true, Check: "mail",
		Remedy: "change what its SMTP config lacks; the console's page Mail names the field",
		Alert: Alert{"MailStopped", "fingerpost_mail_stopped_projects > 0", "15m",
			"{{ $labels.instance }}: the mail of {{ $value }} projects has stopped until their files change"},
		find: stopped},
	{ID: "mail-fails", Severity: Warning, Except: rate, Alert: Alert{"MailFails",
		`sum by (job, instance) (increase(fingerpost_mail_sends_total{result=~"failed|expired"}[30m]))
  / sum by (job, instance) (increase(fingerpost_mail_sends_total{result=~"sent|failed|expired"}[30m])) > 0.1
and sum by (job, instance) (increase(fingerpost_mail_sends_total{result=~"failed|expired"}[30m])) > 4`, "",
		"{{ $labels.instance }}: {{ $value | humanizePercentage }} of the mails of the last half hour have failed"}},
	{ID: "mail-log-gap", Severity: Warning, Check: "mail",
		Remedy: "restore a backup if you need that part; /status has the times under mail",
		Alert: Alert{"MailLogGap", "delta(fingerpost_mail_log_gaps[1h]) > 0", "",
			"{{ $labels.instance }} has lost a part of the mail log with a damaged disk"},
		find: func(s *State) []Condition {
			return gaps(s, s.MailGaps, "A damaged disk has cut a part out of the mail log.")
		}},
	{ID: "mail-disk-low", Severity: Warning, Broken: true, Check: "disk", Remedy: makeRoom,
		Alert: Alert{"MailDiskLow", "fingerpost_mail_disk_low == 1", "5m",
			"{{ $labels.instance }} refuses new mail: too little room on the disk of the data folder"},
		find: func(s *State) []Condition {
			return told(s.MailRoom != "", "New mail is refused until there is room.", s.MailRoom)
		}},
	{ID: "inbound-dropped", Severity: Warning, Check: "mail",
		Remedy: "give the block one project, have the provider send the original headers, or remove entries from a " +
			"list that is full; this ends a week after the last one",
		Alert: Alert{"InboundDropped", `increase(fingerpost_mail_inbound_total{result=~"unmatched|full"}[1h]) > 0`, "",
			"{{ $labels.instance }}: outcomes that the provider {{ $labels.inbound }} has told list nobody"},
		find: dropped},
}

// dropped are the inbound blocks whose outcomes did not reach a list.
func dropped(s *State) (list []Condition) {
	for _, b := range s.Inbound {
		c := Condition{Subject: "inbound " + b.Name, Of: "inbound block"}
		switch {
		case b.Full:
			c.Sentence = "The inbound block " + b.Name + " has had so many outcomes that it takes no more for now."
			c.Many = "%s take no more outcomes for now."
		case s.Time.Sub(b.Dropped) < lossIsNews:
			c.Sentence = "The inbound block " + b.Name + " has dropped an outcome: no project of its list could be told."
			c.Many, c.Since = "%s have dropped outcomes: no project of their lists could be told.", at(b.Dropped)
		case s.Time.Sub(b.ListFull) < lossIsNews:
			c.Sentence = "A suppression list is full, so an outcome of the inbound block " + b.Name + " is not on it."
			c.Many, c.Since = "%s have outcomes that are not on their lists, which are full.", at(b.ListFull)
		default:
			continue
		}
		list = append(list, c)
	}
	return list
}

// closedInbound are the inbound blocks with a secret that cannot be opened.
func closedInbound(s *State) (list []Condition) {
	for _, b := range s.Inbound {
		if b.Closed != "" {
			list = append(list, Condition{Subject: "inbound " + b.Name, Detail: b.Closed, Of: "inbound block",
				Sentence: "A secret of the inbound block " + b.Name + " cannot be opened: providers are told to try again.",
				Many:     "Secrets of %s cannot be opened: providers are told to try again."})
		}
	}
	return list
}

// stopped are the projects whose mail has stopped, those of one reason together.
func stopped(s *State) (list []Condition) {
	var codes []string // each once
	for i := range s.Stopped {
		if !slices.Contains(codes, s.Stopped[i].Code) {
			codes = append(codes, s.Stopped[i].Code)
		}
	}
	for _, code := range codes {
		for _, x := range s.Stopped {
			if x.Code != code {
				continue
			}
			detail := code
			if x.Waiting > 0 {
				detail += ", " + catalog.Count(x.Waiting, "mail") + map[bool]string{true: " waits", false: " wait"}[x.Waiting == 1]
			}
			list = append(list, Condition{Subject: "project " + x.Slug, Since: at(x.Since), Detail: detail, Project: x.Project,
				Code: x.Code, Sentence: "No mail of " + x.Name + " is sent: " + x.Why + ".",
				Many: "No mail of %s is sent: " + x.Why + ".", Of: "project"})
		}
	}
	if s.MoreStopped > 0 {
		more := catalog.Count(s.MoreStopped, "more project")
		list = append(list, Condition{Sentence: "The mail of " + more + " is stopped, too."})
	}
	return list
}
