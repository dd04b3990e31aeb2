package catalog

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
)

// A Webhook is a declared receiver of events: what has an entry in the audit trail, and the end of a mail
// (configsrc/webhooks.md).
type Webhook struct {
	_        struct{} `cbor:",toarray"`
	Name     string   // the block's label, a slug
	UUID     UUID     // see DeriveWebhookUUID
	URL      string
	Secrets  []Secret // newest first; each opens to a text that ParseWebhookSecret accepts, and signs every delivery
	Events   []string // names, "kind.*" or "*"; nil: everything but mail.*
	Projects []string // slugs; nil: every project, and what belongs to none
	Active   bool
}

// Limits on webhooks.
const (
	MaxWebhooks       = 100
	MaxWebhookSecrets = 3
)

// NewWebhook returns a webhook with the values that hold without a line in its block.
func NewWebhook(name string) *Webhook {
	return &Webhook{Name: name, UUID: DeriveWebhookUUID(name), Active: true}
}

// DeriveWebhookUUID returns the identity of a webhook: it follows from the name.
func DeriveWebhookUUID(name string) UUID { return deriveUUID(KindWebhook, name) }

// SecretContext returns the context for which the secrets are sealed. It does not have the address, so that a person may
// change that in the file.
func (w *Webhook) SecretContext() string { return w.UUID.String() + "/secret" }

// AllFields lists the fields of a webhook. The address is private: with some services, who has it may post.
func (w *Webhook) AllFields() []Field {
	return []Field{
		{Name: "name", Value: &w.Name, Heading: true, Label: "Name", Required: true,
			Help: "Lower-case letters, digits and hyphens."},
		{Name: "url", Value: &w.URL, Label: "Address", Required: true, Private: true,
			Help: "Where events are posted to, with https."},
		{Name: "secret", Value: w.Secrets, Label: "Secret",
			Help: "Signs each event. Left empty, one is made and shown once."},
		{Name: "events", Value: w.Events, Label: "Events", Unset: "everything but mail.*",
			Help: "One name a line, such as domain.update, domain.* or *. Left empty, everything but mail.*."},
		{Name: "projects", Value: w.Projects, Label: "Projects",
			Help: "One slug a line. Left empty, the webhook gets the events of every project, and those of none."},
		{Name: "active", Value: &w.Active, Label: "Active", Help: "Nothing is sent while it is not."},
	}
}

// Object returns the webhook.
func (w *Webhook) Object() Object {
	return Object{Kind: KindWebhook, Name: w.Name, UUID: w.UUID, Fields: w.AllFields}
}

// newestSecret returns the newest secret of a webhook's object.
func newestSecret(o *Object) (s Secret) {
	if f := fieldNamed(o.Fields(), "secret"); f != nil {
		if list, is := f.Value.([]Secret); is && len(list) > 0 {
			s = list[0]
		}
	}
	return s
}

// Validate checks the values. With allow nil, http to any literal address is right, for values that another node has
// accepted.
func (w *Webhook) Validate(allow *HTTPAllow) Problems {
	var ps Problems
	if msg := CheckSlug(w.Name); msg != "" {
		ps.Addf("name", "%s", msg)
	}
	if w.URL == "" {
		ps.Addf("url", "is required: the address that events are posted to, with https")
	} else {
		webhookURL.check(&ps, w.URL, allow)
	}
	ps.checkSecrets(w.Secrets, MaxWebhookSecrets, "signs what is sent", CheckWebhookSecret)
	if w.Events != nil && len(w.Events) == 0 {
		ps.Addf("events", `is empty: name some, or leave the line out for everything but "mail.*"`)
	}
	for i, e := range w.Events {
		if msg := CheckWebhookEvent(e); msg != "" {
			ps.Addf("events", "%q %s", e, msg)
		} else if slices.Contains(w.Events[:i], e) {
			ps.Addf("events", "%q is in the list twice", e)
		}
	}
	ps.checkProjects(w.Projects, "webhook", "nothing is sent")
	return ps
}

var webhookURL = urlRule{field: "url", flag: "--webhook-allow", example: "https://hooks.acme.example/fingerpost",
	noUser: "what is sent is signed with the secret"}

const webhookSecretPrefix = "whsec_"

// The length of a webhook's secret, in bytes (Standard Webhooks 1.0).
const (
	minWebhookSecret = 24
	newWebhookSecret = 32
	maxWebhookSecret = 64
)

// NewWebhookSecret returns a new secret in the form of Standard Webhooks: "whsec_" and base64 of random bytes.
func NewWebhookSecret() string {
	b := make([]byte, newWebhookSecret)
	rand.Read(b) // never fails, see crypto/rand
	return webhookSecretPrefix + base64.StdEncoding.EncodeToString(b)
}

// ParseWebhookSecret returns the key that a secret stands for. The error never quotes it.
func ParseWebhookSecret(text string) (key []byte, err error) {
	digits, found := strings.CutPrefix(text, webhookSecretPrefix)
	key, err = base64.StdEncoding.Strict().DecodeString(digits)
	if !found || err != nil || strings.ContainsAny(digits, "\r\n") || len(key) < minWebhookSecret ||
		len(key) > maxWebhookSecret {
		return nil, fmt.Errorf(`must be "%s" and %d to %d random bytes in base64 with its padding`, webhookSecretPrefix,
			minWebhookSecret, maxWebhookSecret)
	}
	return key, nil
}

// CheckWebhookSecret returns what is wrong with a secret in clear text, "" for nothing.
func CheckWebhookSecret(text string) string {
	if _, err := ParseWebhookSecret(text); err != nil {
		return err.Error()
	}
	return ""
}

// Rotate puts a new secret in front. The older ones stay, so that receivers can change to the new one; without an overlap
// they are dropped. Of too many the oldest is dropped.
func (w *Webhook) Rotate(secret Secret, overlap bool) {
	list := []Secret{secret}
	if overlap {
		list = append(list, w.Secrets...)
	}
	w.Secrets = list[:min(len(list), MaxWebhookSecrets)]
}

// EndRotation drops all secrets but the newest, and reports whether there were others.
func (w *Webhook) EndRotation() bool {
	if len(w.Secrets) < 2 {
		return false
	}
	w.Secrets = w.Secrets[:1:1]
	return true
}

// Clone returns a copy of w that shares no mutable memory with it.
func (w *Webhook) Clone() Webhook {
	c := *w
	c.Secrets, c.Events, c.Projects = slices.Clone(w.Secrets), slices.Clone(w.Events), slices.Clone(w.Projects)
	return c
}
