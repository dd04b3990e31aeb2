package mailer

import (
	"time"

	"fingerpost/resolver/catalog"
)

// A Ledger keeps mails, their log and idempotency keys. *resolver.Resolver satisfies it. What a method that writes has
// returned nil for survives a power cut: each is one synced batch. A ledger that cannot write returns a *catalog.Error
// UNAVAILABLE, and has then changed nothing. All methods may be called from any goroutine.
type Ledger interface {
	// NewMailID returns an id that rises with time and is larger than every id that was ever given out or stored: the
	// microseconds since 2020, moved up by one where that is taken. It is below 2^53.
	NewMailID() int64
	// AcceptMail stores a new mail: its log entry, its message, and the idempotency key where idem is not nil. Where
	// that key is there already and not expired, nothing is stored and what is there is returned.
	AcceptMail(log *catalog.MailLog, mail *catalog.QueuedMail, idem *catalog.Idempotency) (there *catalog.Idempotency, err error)
	// UpdateMail replaces the log entry. Where its status is an end, the queued mail goes in the same batch. NOT_FOUND for
	// an entry that was lost, CONFLICT for one that has ended: then there is nothing more to do about the mail.
	UpdateMail(log *catalog.MailLog) error
	// AnswerMail notes the first answer to a send with an idempotency key.
	AnswerMail(idem *catalog.Idempotency) error
	// Idempotency returns what is kept under a key; false where there is nothing, or it has expired.
	Idempotency(projectID int64, key string) (catalog.Idempotency, bool, error)
	// QueuedMail returns a mail that has not reached its end.
	QueuedMail(logID int64) (catalog.QueuedMail, bool, error)
	// EachQueued calls f for all mails that have not reached their end, by id, with an empty Message. f must not call
	// the Ledger, and its error ends the walk. It is UNAVAILABLE also while mail is being salvaged from a damaged store,
	// since not all of it is there yet.
	EachQueued(f func(log catalog.MailLog, mail catalog.QueuedMail) error) error
	// MailLogs returns a page of a project's entries, and how many there are on all pages.
	MailLogs(projectID int64, q catalog.MailQuery) (page []catalog.MailLog, total int, err error)
	// MailLog returns one entry.
	MailLog(projectID, id int64) (catalog.MailLog, bool, error)
	// PruneMail deletes the entries that ended and were created before a moment, of all projects, and expired
	// idempotency keys.
	PruneMail(before, now time.Time) error
}
