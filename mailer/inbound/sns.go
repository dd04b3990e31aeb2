package inbound

import (
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/sha1" //nolint:gosec // version 1 of the signature is made with it
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"strings"
	"time"

	"fingerpost/resolver/catalog"
)

// The types of messages of SNS.
const (
	snsNotification = "Notification"
	snsConfirmation = "SubscriptionConfirmation"
	snsEnd          = "UnsubscribeConfirmation"
)

// maxAge is how old a message of SNS may be: a captured one cannot be sent again later.
const maxAge = time.Hour

// A snsMessage is a message of Amazon SNS.
type snsMessage struct {
	Type             string
	MessageID        string `json:"MessageId"`
	TopicArn         string
	Subject          *string
	Message          string
	Timestamp        string
	Token            string
	SubscribeURL     string
	SignatureVersion string
	Signature        string
	SigningCertURL   string
}

// signed returns what the signature covers.
func (m *snsMessage) signed() []byte {
	var b strings.Builder
	line := func(name, value string) { b.WriteString(name + "\n" + value + "\n") }
	line("Message", m.Message)
	line("MessageId", m.MessageID)
	if m.Type == snsNotification {
		if m.Subject != nil {
			line("Subject", *m.Subject)
		}
	} else {
		line("SubscribeURL", m.SubscribeURL)
	}
	line("Timestamp", m.Timestamp)
	if m.Type != snsNotification {
		line("Token", m.Token)
	}
	line("TopicArn", m.TopicArn)
	line("Type", m.Type)
	return []byte(b.String())
}

// readSNS reads a message, checks that SNS has signed it, and confirms a subscription if that is what it is about.
// Everything that needs no connection is checked first.
func (d *Desk) readSNS(ctx context.Context, b *Block, message []byte, now time.Time) (*snsMessage, error) {
	m := new(snsMessage)
	if err := decode(message, m); err != nil {
		return nil, err
	}
	if ps := d.checkSNS(m, now); len(ps) > 0 {
		return nil, invalid(ps...)
	}
	signature, err := base64.StdEncoding.DecodeString(m.Signature)
	if err != nil {
		return nil, invalid(catalog.Problem{Path: "Signature", Message: "must be base64"})
	}
	key, err := b.certificates.key(ctx, d.provider, m.SigningCertURL, now)
	if err != nil {
		return nil, err
	}
	if !verifies(key, m.SignatureVersion, m.signed(), signature) {
		return nil, invalid(catalog.Problem{Path: "Signature", Message: "is not that of the message"})
	}
	log := d.o.Logger.With("inbound", b.Name, "topic", m.TopicArn)
	switch m.Type {
	case snsConfirmation:
		if err := d.provider.confirm(ctx, m.SubscribeURL); err != nil {
			log.Warn("a subscription was not confirmed", "error", err)
			return nil, catalog.Unavailable("the subscription cannot be confirmed at the moment")
		}
		log.Info("a subscription of SNS was confirmed")
	case snsEnd:
		log.Warn("a subscription of SNS has ended: the block gets no more outcomes from this topic")
	}
	return m, nil
}

// checkSNS checks what does not need the certificate.
func (d *Desk) checkSNS(m *snsMessage, now time.Time) (ps catalog.Problems) {
	switch m.Type {
	case snsNotification:
	case snsConfirmation, snsEnd:
		if !d.provider.subscribes(m) {
			ps.Addf("SubscribeURL", "must be the provider's address for this topic and token")
		}
	default:
		ps.Addf("Type", "must be %s, %s or %s: raw message delivery must be off", snsNotification, snsConfirmation, snsEnd)
	}
	if m.MessageID == "" || m.TopicArn == "" {
		ps.Addf("MessageId", "is required, as TopicArn")
	}
	switch at, err := time.Parse(time.RFC3339, m.Timestamp); {
	case err != nil:
		ps.Addf("Timestamp", "must be a time")
	case now.Sub(at) > maxAge:
		ps.Addf("Timestamp", "is more than an hour old")
	case at.Sub(now) > ahead:
		ps.Addf("Timestamp", "is in the future: see that the clock of this machine is right")
	}
	if m.SignatureVersion != "1" && m.SignatureVersion != "2" {
		ps.Addf("SignatureVersion", "must be 1 or 2")
	}
	if !d.provider.signs(m.SigningCertURL) {
		ps.Addf("SigningCertURL", "must be an https address of the provider")
	}
	return ps
}

// verifies reports whether a signature of a version is that of a text.
func verifies(key *rsa.PublicKey, version string, text, signature []byte) bool {
	if version == "1" {
		sum := sha1.Sum(text) //nolint:gosec // see the import
		return rsa.VerifyPKCS1v15(key, crypto.SHA1, sum[:], signature) == nil
	}
	sum := sha256.Sum256(text)
	return rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], signature) == nil
}

// subscribes reports whether the address of a confirmation is the provider's, for the topic and token of the message.
func (p *Provider) subscribes(m *snsMessage) bool {
	u, err := url.Parse(m.SubscribeURL)
	if err != nil || !p.own(u) || u.Path != "" && u.Path != "/" {
		return false
	}
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return false
	}
	one := func(name, want string) bool { return want != "" && len(q[name]) == 1 && q[name][0] == want }
	return one("Action", "ConfirmSubscription") && one("TopicArn", m.TopicArn) && one("Token", m.Token)
}
