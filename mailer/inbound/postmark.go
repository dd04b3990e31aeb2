package inbound

import (
	"strconv"
	"strings"
	"time"

	"fingerpost/resolver/catalog"
)

// A postmarkMessage is a message of Postmark: a bounce, a complaint, or a change of its own suppression list.
type postmarkMessage struct {
	RecordType string
	ID         int64
	MessageID  string // Postmark's: it replaces ours
	Type       string // of a bounce
	Email      string
	Details    string
	BouncedAt  string

	Recipient         string // of a change of the list, as what follows
	ChangedAt         string
	SuppressSending   bool
	SuppressionReason string
	Origin            string
}

// noMessage is the id of no message.
const noMessage = "00000000-0000-0000-0000-000000000000"

// readPostmark reads a message of Postmark. Soft and transient bounces list nobody, nor do blocks, which are about the
// sender.
func readPostmark(message []byte) (list []outcome, ignored int, err error) {
	var m postmarkMessage
	if err := decode(message, &m); err != nil {
		return nil, 0, err
	}
	o := outcome{detail: m.Details}
	address, when := m.Email, m.BouncedAt
	switch m.RecordType {
	case "":
		return nil, 0, invalid(catalog.Problem{Path: "RecordType", Message: "is missing: this is no message of Postmark"})
	case "Bounce":
		o.reason = map[string]catalog.SuppressionReason{"HardBounce": catalog.SuppressHardBounce,
			"BadEmailAddress": catalog.SuppressHardBounce, "SpamComplaint": catalog.SuppressComplaint,
			"Unsubscribe": catalog.SuppressUnsubscribe}[m.Type]
	case "SpamComplaint":
		o.reason = catalog.SuppressComplaint
	case "SubscriptionChange":
		address, when = m.Recipient, m.ChangedAt
		o.reason, o.detail = m.suppression(), "suppressed at Postmark: "+m.SuppressionReason
	}
	if o.reason == "" { // opens, clicks, deliveries, soft bounces; what was taken off its list
		return nil, 1, nil
	}
	var ps catalog.Problems
	if o.address, err = addressOf(address); err != nil {
		ps.Addf("Email", "%v", err)
	}
	if o.at, err = time.Parse(time.RFC3339, when); err != nil {
		ps.Addf("BouncedAt", "must be a time, as ChangedAt")
	}
	// A bounce and the change of the list that follows it are one outcome of one mail.
	switch message := strings.ToLower(m.MessageID); {
	case message != "" && message != noMessage:
		o.id = message
	case m.ID != 0:
		o.id = strconv.FormatInt(m.ID, 10)
	default:
		o.id = when
	}
	if len(ps) > 0 {
		return nil, 0, invalid(ps...)
	}
	return []outcome{o}, 0, nil
}

// suppression is the reason of a change of Postmark's list, "" for one that lists nobody here. What the operator has done
// there by hand is not the recipient's wish.
func (m *postmarkMessage) suppression() catalog.SuppressionReason {
	if !m.SuppressSending {
		return ""
	}
	switch m.SuppressionReason {
	case "HardBounce":
		return catalog.SuppressHardBounce
	case "SpamComplaint":
		return catalog.SuppressComplaint
	case "ManualSuppression":
		if m.Origin == "Recipient" {
			return catalog.SuppressUnsubscribe
		}
	}
	return ""
}
