package mailer

import (
	"fingerpost/mailer/smtp"
	"fingerpost/resolver/catalog"
)

// A Send is a request for one mail.
type Send struct {
	Domain    string // finds the project, as resolve does
	ProjectID int64  // the project, if Domain is ""
	ToEmail   string

	TemplateCode string            // "" for raw mail
	Variables    map[string]string // of the template

	Subject, BodyHTML, BodyText string // of raw mail

	Locale string // of the template that is wanted, in BCP 47; "": its own texts
	// Unsubscribe is the caller's own link with which the recipient leaves the template's category, see
	// catalog.CheckUnsubscribe; "": the service makes one.
	Unsubscribe string
	// Ignored are the reasons of the suppression list that do not stop this mail, see Ignorable.
	Ignored []catalog.SuppressionReason

	AgainOf        int64    // the log entry of the project that this mail repeats; 0: none
	Rehearsal      bool     // is allowed while the project's mailEnabled is false (send/test-template)
	IdempotencyKey string   // "" for none
	Request        [32]byte // SHA-256 of the request; used with an IdempotencyKey only
	ServiceName    string   // the name that the caller gives itself
}

// A Receipt reports what happened to a mail within the request.
type Receipt struct {
	LogID     int64
	MessageID string
	Sent      bool           // the server has accepted it, or it was kept
	Kept      bool           // it was kept instead of being sent
	Queued    bool           // attempts go on in the background
	Failed    *catalog.Error // refused for good: SMTP_…; nil otherwise
	Replayed  bool           // the answer to an earlier send with the same IdempotencyKey
	// Suppressed is why the project's suppression list has stopped the mail; "": it has not.
	Suppressed catalog.SuppressionReason `json:",omitempty"`
}

// Step is smtp.Step.
type Step = smtp.Step
