package mailer

import (
	"time"

	"fingerpost/resolver/catalog"
)

// A Ledger keeps mails, their log and idempotency keys. *records.Records implements it. Each writing method is one
// synced batch: once it has returned nil, its effect survives a power cut. A ledger that cannot write returns a
// *catalog.Error UNAVAILABLE and has changed nothing. Any goroutine may call the methods.
type Ledger interface {
	// NewMailID returns an id that rises with time and is larger than every id ever returned or stored: the microseconds
	// since 2020, plus one if that is taken. It is below 2^53.
	NewMailID() int64
	// AcceptMail stores a new mail: its log entry, its message, and the idempotency key if idem is not nil. mail is nil for
	// one that is SUPPRESSED. If that key exists and has not expired, AcceptMail stores nothing and returns what is there.
	AcceptMail(log *catalog.MailLog, mail *catalog.QueuedMail, idem *catalog.Idempotency) (there *catalog.Idempotency,
		err error)
	// UpdateMail replaces the log entry. If its status is an end, the queued mail goes in the same batch. It returns
	// NOT_FOUND for an entry that was lost and CONFLICT for one that has ended; in both cases there is nothing left to do
	// about the mail.
	UpdateMail(log *catalog.MailLog) error
	// BounceMail is UpdateMail for a mail that has ended, and adds its recipient to the project's suppression list in the
	// same batch. What the list has stays.
	BounceMail(log *catalog.MailLog, s catalog.Suppression) error
	// Suppressions returns what the suppression list of a project has of an address, in any case.
	Suppressions(projectID int64, address string) ([]catalog.Suppression, error)
	// ListedProjects returns the projects that have a suppression list.
	ListedProjects() ([]int64, error)
	// KeepList notes at a time whether the project of a list is there, and deletes the list of one that has been missed for
	// a grace period.
	KeepList(projectID int64, there bool, at time.Time, grace time.Duration) error
	// AnswerMail stores the first answer to a send with an idempotency key.
	AnswerMail(idem *catalog.Idempotency) error
	// Idempotency returns what is stored under a key; false if there is nothing or it has expired.
	Idempotency(projectID int64, key string) (catalog.Idempotency, bool, error)
	// ProjectsWithKey lists the projects that have something under a key.
	ProjectsWithKey(key string) ([]int64, error)
	// QueuedMail returns a mail that has not reached its end.
	QueuedMail(logID int64) (catalog.QueuedMail, bool, error)
	// EachQueued calls f for all mails that have not reached their end, by id, with an empty Message. f must not call the
	// Ledger; its error ends the iteration. EachQueued is UNAVAILABLE while mail is being salvaged from a damaged store,
	// because not all mail is there yet.
	EachQueued(f func(log catalog.MailLog, mail catalog.QueuedMail) error) error
	// MailLogs returns a page of a project's entries, and the number of entries on all pages.
	MailLogs(projectID int64, q catalog.MailQuery) (page []catalog.MailLog, total int, err error)
	// MailLog returns one entry.
	MailLog(projectID, id int64) (catalog.MailLog, bool, error)
	// PruneMail deletes the entries of all projects that have ended and were created before a moment, and expired
	// idempotency keys.
	PruneMail(before, now time.Time) error
}
