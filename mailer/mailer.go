package mailer

import "fingerpost/resolver/catalog"

// A Send is one mail that somebody asks for.
type Send struct {
	Domain    string // finds the project, see api/README.md, Resolve
	ProjectID int64  // the project, where Domain is ""
	ToEmail   string

	TemplateCode string            // "" for raw mail
	Variables    map[string]string // of the template

	Subject, BodyHTML, BodyText string // of raw mail

	Rehearsal      bool     // goes on where the project's mailEnabled is false (send/test-template)
	IdempotencyKey string   // "" for none
	Request        [32]byte // SHA-256 of what was asked; looked at with an IdempotencyKey only
	ServiceName    string   // who asks
}

// A Receipt says what became of a mail within the request.
type Receipt struct {
	LogID     int64
	MessageID string
	Sent      bool           // the server has taken it
	Queued    bool           // it is tried again, or still, in the background
	Failed    *catalog.Error // refused for good: SMTP_…; nil otherwise
	Replayed  bool           // the answer to an earlier send with the same IdempotencyKey
}
