package logs

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"fingerpost/api/client"
	"fingerpost/resolver/catalog"
)

// mailLine returns an entry of the mail log for people.
func mailLine(e *client.LoggedMail) string {
	var b strings.Builder
	status := e.Status
	if e.ProviderType == catalog.ProviderSink {
		status = catalog.ProviderSink // it is SENT, and nobody has got it
	}
	fmt.Fprintf(&b, "%-26s  %-8s  %s  to %s", e.CreatedAt, status, e.Project, e.ToEmail)
	if code := orEmpty(e.TemplateCode); code != "" {
		fmt.Fprintf(&b, "  %s", code)
	}
	if locale := orEmpty(e.Locale); locale != "" { // of the template
		fmt.Fprintf(&b, " (%s)", locale)
	}
	fmt.Fprintf(&b, "  %q  #%d", e.Subject, e.ID)
	if e.Attempts > 1 {
		fmt.Fprintf(&b, "  attempt %d", e.Attempts)
	}
	if e.Uncertain {
		b.WriteString("  uncertain")
	}
	if code := orEmpty(e.ErrorCode); code != "" && e.Status != string(catalog.MailSent) {
		fmt.Fprintf(&b, "  %s: %s", code, orEmpty(e.ErrorMessage))
	}
	if next := orEmpty(e.NextAttemptAt); next != "" {
		fmt.Fprintf(&b, "  next %s", next)
	}
	if what := orEmpty(e.WaitingFor); what != "" {
		fmt.Fprintf(&b, "  waits for %s", what)
	}
	return b.String()
}

// maxShown is how much of a value a line shows, in bytes.
const maxShown = 60

// auditLine returns an entry of the audit trail for people.
func auditLine(e *client.AuditEntry) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-26s  %-18s", e.Time, e.Action)
	if object := orEmpty(e.Object); object != "" {
		fmt.Fprintf(&b, "  %s", object)
	}
	if condition := conditionOf(e); condition != "" {
		fmt.Fprintf(&b, "  %s  #%d", condition, e.ID)
		return b.String()
	}
	by := orEmpty(e.Actor)
	if key := orEmpty(e.Key); key != "" && key != by {
		by += " with " + key
	}
	fmt.Fprintf(&b, "  by %s", cmp.Or(by, e.Door))
	for i, c := range e.Changes {
		sep := ", "
		if i == 0 {
			sep = "  "
		}
		b.WriteString(sep + c.Field)
		if !c.Secret {
			fmt.Fprintf(&b, " %s → %s", shorten(c.Before), shorten(c.After))
		}
	}
	if commit := orEmpty(e.Commit); commit != "" {
		fmt.Fprintf(&b, "  commit %.12s", commit)
	}
	fmt.Fprintf(&b, "  #%d", e.ID)
	return b.String()
}

// conditionOf returns what an entry says of a condition, "" if it is about something else.
func conditionOf(e *client.AuditEntry) string {
	if e.Action != catalog.AuditBegins && e.Action != catalog.AuditEnds {
		return ""
	}
	fields := map[string]string{}
	for _, c := range e.Changes {
		for _, value := range []json.RawMessage{c.Before, c.After} {
			if text := ""; json.Unmarshal(value, &text) == nil && text != "" {
				fields[c.Field] = text
			}
		}
	}
	text := fields["severity"] + ": " + fields["sentence"]
	if detail := fields["detail"]; detail != "" {
		text += " (" + detail + ")"
	}
	return client.Printable(text)
}

func shorten(value json.RawMessage) string {
	text := string(value)
	if len(text) <= maxShown {
		return text
	}
	return strings.ToValidUTF8(text[:maxShown], "") + "…"
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
