package catalog

import (
	"slices"
	"strings"
)

// The events of webhooks that are no action of the audit trail.
const (
	EventMailSent    = "mail.sent"
	EventMailFailed  = "mail.failed"
	EventMailExpired = "mail.expired"

	EventMailSuppressed = "mail.suppressed"
)

// mailEvents is the pattern of the events that a webhook without a list does not get: a service sends more mails than all
// else that happens in it.
const mailEvents = "mail.*"

// WebhookEvents lists the names of all events: the actions of the audit trail, and those of mails.
func WebhookEvents() (names []string) {
	for _, noun := range AuditObjects {
		for _, verb := range auditVerbs {
			names = append(names, noun+"."+verb)
		}
	}
	names = append(names, AuditOthers...)
	return append(names, EventMailSent, EventMailFailed, EventMailExpired, EventMailSuppressed)
}

// WebhookPatterns lists all that a webhook's list of events may hold.
func WebhookPatterns() []string {
	names := WebhookEvents()
	patterns := []string{"*"}
	for _, name := range names {
		if p := kindOfEvent(name) + ".*"; !slices.Contains(patterns, p) {
			patterns = append(patterns, p)
		}
	}
	return append(patterns, names...)
}

func kindOfEvent(name string) string {
	kind, _, _ := strings.Cut(name, ".")
	return kind
}

// CheckWebhookEvent returns what is wrong with an element of a webhook's list of events, "" for nothing.
func CheckWebhookEvent(pattern string) string {
	patterns := WebhookPatterns()
	if slices.Contains(patterns, pattern) {
		return ""
	}
	kind, _, star := strings.Cut(pattern, "*")
	if !star {
		return `is no event: events are the actions of the audit trail, and mail.*`
	}
	example := "domain.*"
	if i := slices.IndexFunc(patterns, func(p string) bool { return kind != "" && strings.HasPrefix(p, kind) }); i >= 0 {
		example = kindOfEvent(patterns[i]) + ".*"
	}
	return `is no event: a star stands alone or for all events of a kind, as in "` + example + `"`
}

// Wants reports whether the webhook's list has the event. It does not look at Active and Projects.
func (w *Webhook) Wants(event string) bool {
	matches := func(pattern string) bool {
		kind, star := strings.CutSuffix(pattern, "*")
		return pattern == event || star && strings.HasPrefix(event, kind)
	}
	if w.Events == nil {
		return !matches(mailEvents)
	}
	return slices.ContainsFunc(w.Events, matches)
}
