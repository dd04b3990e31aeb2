package conditions

import (
	"time"

	"fingerpost/resolver/catalog"
)

// eventIsLate is how old an event may be before its receiver has it: four attempts have failed by then.
const eventIsLate = 15 * time.Minute

const hookGuide = "/docs/alerts#webhooks"

// webhooks are the conditions of webhooks, of which there are at most 100.
var webhooks = []Kind{
	{ID: "webhook-off", Severity: Warning, Broken: true, Check: "webhooks", Guide: hookGuide,
		Remedy: `mend its receiver, then "fingerpost webhooks resume": it goes on with what was refused`,
		Alert: Alert{"WebhookOff", "fingerpost_webhook_off == 1", "5m",
			"{{ $labels.instance }}: the webhook {{ $labels.webhook }} is switched off"},
		find: func(s *State) []Condition {
			return hooks(s, "%s are switched off.", func(w *Webhook) (sentence, detail string, since time.Time) {
				if !w.OffSince.IsZero() {
					sentence = "is switched off."
				}
				return sentence, w.OffReason, w.OffSince
			})
		}},
	{ID: "webhook-waits", Severity: Warning, Broken: true, Check: "webhooks", Guide: hookGuide,
		Remedy: `see what its receiver answers ("fingerpost webhooks deliveries"); what waits goes out once it answers 2xx`,
		Alert: Alert{"WebhookWaits", "fingerpost_webhook_oldest_seconds > 900\n" +
			"unless on (job, instance, webhook) fingerpost_webhook_off == 1", "5m",
			"{{ $labels.instance }}: an event for the webhook {{ $labels.webhook }} waits for " +
				"{{ $value | humanizeDuration }} already"},
		find: func(s *State) []Condition {
			return hooks(s, "Events for %s wait.", func(w *Webhook) (sentence, detail string, since time.Time) {
				late := !w.Oldest.IsZero() && s.Time.Sub(w.Oldest) > eventIsLate
				switch {
				case !w.OffSince.IsZero(), w.NoSecret: // told already
				case late && w.Failing > 0:
					sentence = "has an event that has waited for " + catalog.Span(s.Time.Sub(w.Oldest)) +
						": its receiver is away, or refuses it."
				case late:
					sentence = "has an event that has waited for " + catalog.Span(s.Time.Sub(w.Oldest)) + "."
				}
				return sentence, detail, w.Oldest
			})
		}},
	{ID: "webhook-gave-up", Severity: Warning, Check: "webhooks", Guide: hookGuide,
		Remedy: `find it with "fingerpost webhooks deliveries", and send it again; this ends a week after the last one`,
		Alert: Alert{"WebhookGaveUp", "time() - (fingerpost_webhook_last_dead_timestamp_seconds > 0) < 3600", "",
			"{{ $labels.instance }} has given up a delivery to the webhook {{ $labels.webhook }}"},
		find: func(s *State) []Condition {
			return hooks(s, "Deliveries to %s were given up.", func(w *Webhook) (sentence, detail string, since time.Time) {
				if s.Time.Sub(w.DeadAt) < lossIsNews {
					sentence = "has given up a delivery: all its repetitions have failed."
				}
				return sentence, "", w.DeadAt
			})
		}},
	{ID: "webhook-gap", Severity: Warning, Check: "webhooks", Guide: hookGuide,
		Remedy: "have its receiver read the present state; this ends a week after the last gap",
		Alert: Alert{"WebhookGap", "time() - (fingerpost_webhook_last_gap_timestamp_seconds > 0) < 3600", "",
			"{{ $labels.instance }}: the webhook {{ $labels.webhook }} has missed events that are no longer kept"},
		find: func(s *State) []Condition {
			return hooks(s, "%s have missed events that are no longer kept.",
				func(w *Webhook) (sentence, detail string, since time.Time) {
					if s.Time.Sub(w.GapAt) < lossIsNews {
						sentence = "has missed events that are no longer kept."
					}
					return sentence, "", w.GapAt
				})
		}},
	{ID: "webhooks-stopped", Severity: Warning, Broken: true, Check: "webhooks", Guide: hookGuide,
		Remedy: "repair what the detail names; deliveries go on by themselves, and nothing is lost",
		Alert: Alert{"WebhooksStopped", "fingerpost_webhooks_problem == 1", "5m",
			"{{ $labels.instance }} delivers nothing to webhooks; the events wait"},
		find: func(s *State) []Condition { // a ledger that is not in use explains it
			return told(s.WebhookProblem != "" && s.Store == "" && !s.Unaudited,
				"Nothing is delivered to webhooks; the events wait.", s.WebhookProblem)
		}},
}

// hooks are those of which is says something; "": nothing.
func hooks(s *State, many string,
	is func(w *Webhook) (sentence, detail string, since time.Time)) (list []Condition) {
	for i := range s.Webhooks {
		w := &s.Webhooks[i]
		if sentence, detail, since := is(w); sentence != "" {
			list = append(list, Condition{Subject: "webhook " + w.Name, Detail: detail, Since: at(since), Many: many,
				Of: "webhook", Sentence: "The webhook " + w.Name + " " + sentence})
		}
	}
	return list
}
