package catalog

import "time"

// A MailStatus is how far a mail has come (mailer/README.md).
type MailStatus string

// The states of a mail. The last three are ends.
const (
	MailPending  MailStatus = "PENDING"  // stored, no attempt yet
	MailSending  MailStatus = "SENDING"  // an attempt is under way, or was when the process ended
	MailRetrying MailStatus = "RETRYING" // the last attempt failed for now
	MailSent     MailStatus = "SENT"     // the server has taken it
	MailFailed   MailStatus = "FAILED"   // refused for good
	MailExpired  MailStatus = "EXPIRED"  // not taken within its template's max_age
)

// Ended reports whether nothing will change any more.
func (s MailStatus) Ended() bool { return s == MailSent || s == MailFailed || s == MailExpired }

// ProviderSMTP is MailLog.ProviderType of all mail: no other way is there yet.
const ProviderSMTP = "SMTP"

// A MailLog is the log entry of one mail. It has no body and no value of a variable but for what the subject shows.
type MailLog struct {
	ID            int64 // see Ledger.NewMailID: rises with time
	ProjectID     int64
	ProviderType  string
	ToEmail       string
	Subject       string
	TemplateCode  string // "" for raw mail
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
}

// A QueuedMail is what it takes to send a mail, kept until the mail's end.
type QueuedMail struct {
	LogID     int64
	ProjectID int64
	From, To  string // envelope addresses, bare and ASCII
	ExpiresAt time.Time
	Message   []byte // the exact bytes, CRLF lines, not dot-stuffed
}

// An Idempotency is what is kept of a send that carried an Idempotency-Key, for 24 hours (mailer/README.md).
type Idempotency struct {
	ProjectID int64
	Key       string
	Request   [32]byte // SHA-256 of what was asked, to tell another body
	LogID     int64
	ExpiresAt time.Time
	Answer    []byte // the first answer, as its writer encoded it; nil while that runs, or was cut off
}

// A MailQuery says which log entries of a project are wanted (api/README.md, Lists). Zero values do not filter.
type MailQuery struct {
	Page, Limit  int    // both from 1
	Sort         string // a scalar field of the rows; "" means createdAt, then id
	Ascending    bool
	Status       MailStatus
	TemplateCode string
	ToEmail      string
	From, To     time.Time // of createdAt; From is included, To is not
}
