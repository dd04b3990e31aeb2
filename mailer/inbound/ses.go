package inbound

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"time"

	"fingerpost/resolver/catalog"
)

// A sesMessage is a notification of Amazon SES, of an identity or of a configuration set.
type sesMessage struct {
	NotificationType string `json:"notificationType"`
	EventType        string `json:"eventType"`
	Bounce           struct {
		Type       string         `json:"bounceType"`
		Recipients []sesRecipient `json:"bouncedRecipients"`
		Timestamp  string         `json:"timestamp"`
		FeedbackID string         `json:"feedbackId"`
	} `json:"bounce"`
	Complaint struct {
		Recipients []sesRecipient `json:"complainedRecipients"`
		Feedback   string         `json:"complaintFeedbackType"`
		Timestamp  string         `json:"timestamp"`
		FeedbackID string         `json:"feedbackId"`
	} `json:"complaint"`
	Subscription struct {
		Timestamp string `json:"timestamp"`
		Now       struct {
			All bool `json:"unsubscribeAll"`
		} `json:"newTopicPreferences"`
	} `json:"subscription"`
	Mail struct {
		Destination []string `json:"destination"`
		Headers     []struct {
			Name  string `json:"name"`
			Value string `json:"value"`
		} `json:"headers"`
		Common struct {
			MessageID string `json:"messageId"`
		} `json:"commonHeaders"`
	} `json:"mail"`
}

type sesRecipient struct {
	Address    string `json:"emailAddress"`
	Status     string `json:"status"` // enhanced code of RFC 3463
	Diagnostic string `json:"diagnosticCode"`
}

// readSES reads a message of SNS, and the notification of SES in it.
func (d *Desk) readSES(ctx context.Context, b *Block, message []byte, now time.Time) (list []outcome, ignored int,
	err error) {
	m, err := d.readSNS(ctx, b, message, now)
	if err != nil || m.Type != snsNotification {
		return nil, 0, err
	}
	var n sesMessage
	if !json.Valid([]byte(m.Message)) { // SES says in words that a topic is in use
		return nil, 1, nil
	}
	if err := decode([]byte(m.Message), &n); err != nil {
		return nil, 0, err
	}
	messageID := n.messageID()
	add := func(reason catalog.SuppressionReason, address, id, at, detail string) {
		o := outcome{reason: reason, messageID: messageID, id: cmp.Or(id, m.MessageID), detail: detail}
		var ok bool
		if o.at, ok = momentOf(at); !ok {
			o.at = now
		}
		if o.address, err = addressOf(address); err != nil { // of a mail that was sent, but in a form that we do not have
			ignored++
			return
		}
		list = append(list, o)
	}
	switch cmp.Or(n.NotificationType, n.EventType) {
	case "Bounce":
		for _, r := range n.Bounce.Recipients {
			if n.Bounce.Type != "Permanent" || aboutSender(r.Status) {
				ignored++
				continue
			}
			add(catalog.SuppressHardBounce, r.Address, n.Bounce.FeedbackID, n.Bounce.Timestamp,
				cmp.Or(r.Diagnostic, r.Status))
		}
	case "Complaint":
		for _, r := range n.Complaint.Recipients {
			if n.Complaint.Feedback == "not-spam" {
				ignored++
				continue
			}
			add(catalog.SuppressComplaint, r.Address, n.Complaint.FeedbackID, n.Complaint.Timestamp, n.Complaint.Feedback)
		}
	case "Subscription":
		if !n.Subscription.Now.All || len(n.Mail.Destination) != 1 {
			return nil, 1, nil
		}
		add(catalog.SuppressUnsubscribe, n.Mail.Destination[0], "", n.Subscription.Timestamp, "")
	default: // deliveries, opens, clicks
		return nil, 1, nil
	}
	return list, ignored, nil
}

// messageID returns the Message-ID that we gave the mail, "" if SES does not tell it: it sends the mail with another one.
func (n *sesMessage) messageID() string {
	id := n.Mail.Common.MessageID
	for _, h := range n.Mail.Headers {
		if strings.EqualFold(h.Name, "Message-ID") {
			id = h.Value
		}
	}
	if id = strings.TrimSpace(id); id != "" && !strings.HasPrefix(id, "<") {
		id = "<" + id + ">"
	}
	return id
}

// aboutSender reports whether an enhanced code speaks of something else than the address: a full mailbox, the way there,
// or a policy. SES calls some of these permanent, too.
func aboutSender(status string) bool {
	return status == "5.2.2" || strings.HasPrefix(status, "5.4.") || strings.HasPrefix(status, "5.7.")
}
