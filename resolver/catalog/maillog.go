package catalog

import (
	"slices"
	"time"
)

// A MailStatus is the status of a mail (mailer/README.md).
type MailStatus string

// The statuses of a mail. The last four are final.
const (
	MailPending  MailStatus = "PENDING"  // stored, no attempt yet
	MailSending  MailStatus = "SENDING"  // an attempt is under way, or was when the process ended
	MailRetrying MailStatus = "RETRYING" // the last attempt failed temporarily
	MailSent     MailStatus = "SENT"     // accepted by the server
	MailFailed   MailStatus = "FAILED"   // refused permanently
	MailExpired  MailStatus = "EXPIRED"  // not accepted within its template's max_age
	// MailSuppressed is the status of a mail that was not sent, because the project's suppression list has its recipient.
	MailSuppressed MailStatus = "SUPPRESSED"
)

// MailStatuses lists the statuses.
var MailStatuses = []string{
	string(MailPending), string(MailSending), string(MailSent), string(MailRetrying), string(MailFailed),
	string(MailExpired), string(MailSuppressed),
}

// Ended reports whether the status is final.
func (s MailStatus) Ended() bool {
	return s == MailSent || s == MailFailed || s == MailExpired || s == MailSuppressed
}

// The values of MailLog.ProviderType: what has taken the mail, or will.
const (
	ProviderSMTP = "SMTP" // the SMTP server of the project
	ProviderSink = "SINK" // nothing: the mail was kept instead of being sent
)

// A MailLog is the log entry of one mail. It contains no body, and no variable values except in the subject.
type MailLog struct {
	ID            int64 // increases with time, see Ledger.NewMailID
	ProjectID     int64
	ProviderType  string
	ToEmail       string
	Subject       string
	TemplateCode  string // "" for raw mail
	Locale        string // the tag of the template's locale that was sent; "" for its own texts and for raw mail
	Status        MailStatus
	ErrorCode     Code   // of the last attempt, "" if none failed
	ErrorMessage  string // without credentials; "" if none failed
	SMTPCode      int    // the server's reply code to the last attempt, 0 if none
	MessageID     string // with its angle brackets
	ServiceName   string // X-Internal-Service-Name of the caller
	Attempts      int
	Uncertain     bool // some attempt ended without the server's reply to the final dot
	CreatedAt     time.Time
	SentAt        time.Time // zero unless SENT
	NextAttemptAt time.Time // zero unless PENDING or RETRYING; RETRYING without it is SENDING that outlived its request
	History       []MailAttempt
	AgainOf       int64  // the entry of the mail that was sent again as this one; 0: none
	WaitingFor    string // why there is no next attempt yet, in words; the Mailer knows it, it is not stored
}

// MaxMailHistory is how many attempts the History of a mail has at most: its first one, and the latest ones.
const MaxMailHistory = 8

// A MailAttempt is how one attempt has ended.
type MailAttempt struct {
	Number   int // from 1
	At       time.Time
	Stage    string // how far it got, see package smtp
	Code     Code   // SMTP_…; "" if the server has taken the mail
	SMTPCode int    // the server's reply code, 0 if none
	Message  string // what happened, in words, and what the server said
}

// Attempted adds an attempt to the history.
func (l *MailLog) Attempted(a MailAttempt) {
	if len(l.History) == MaxMailHistory {
		l.History = append(slices.Clone(l.History[:1]), l.History[2:]...)
	}
	l.History = append(l.History[:len(l.History):len(l.History)], a)
}

// A QueuedMail is the data needed to send a mail, stored until its status is final.
type QueuedMail struct {
	LogID     int64
	ProjectID int64
	From, To  string // envelope addresses, bare and ASCII
	ExpiresAt time.Time
	Message   []byte // the exact bytes, CRLF lines, not dot-stuffed
	// Category is that of its template; "": it has none. Ignored are the reasons of the suppression list that do not stop
	// the mail.
	Category string
	Ignored  []SuppressionReason
}

// An Idempotency is the record of a send with an Idempotency-Key, kept for 24 hours (mailer/README.md).
type Idempotency struct {
	ProjectID int64
	Key       string
	Request   [32]byte // SHA-256 of the request, to detect another body
	LogID     int64
	ExpiresAt time.Time
	Answer    []byte // the first answer as encoded; nil while the send runs, or was interrupted
}

// A MailQuery selects log entries of a project (api/README.md, Lists). Zero values do not filter.
type MailQuery struct {
	Page, Limit  int    // both from 1
	Sort         string // a scalar field of the rows; "" means createdAt, then id
	Ascending    bool
	Status       MailStatus
	TemplateCode string
	ToEmail      string
	MessageID    string    // with its angle brackets; exact
	Text         string    // part of the address, the subject or the Message-ID, in any case
	From, To     time.Time // range of createdAt; From is included, To is not
}

// A MailFound is a page of the newest entries of several projects.
type MailFound struct {
	Entries []MailLog
	Total   int // entries on all pages
	// SearchedTo is zero if all entries were looked at. Else the search has ended before: it has seen all that were
	// created at this time or later, and a query with it as To goes on. An entry created within the microsecond before To
	// may come twice.
	SearchedTo time.Time
}
