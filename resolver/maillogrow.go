package resolver

import (
	"time"

	"fingerpost/resolver/catalog"
)

// AppendMailLog appends a mail's log entry as JSON: the specification's fields, then ours (mailer/README.md). Zero
// times, empty texts and a reply code of 0 are null.
func AppendMailLog(dst []byte, l *catalog.MailLog) []byte {
	e := encoder{b: dst}
	e.mailLog(l)
	return e.b
}

// MailLogETag returns the ETag of a log entry. It changes with every step of the mail.
func MailLogETag(l *catalog.MailLog) string {
	var e encoder
	e.mailLog(l)
	e.times = e.times[:0] // they are stored, and the same on every node that has the entry
	return string(e.appendETag(nil))
}

func (e *encoder) mailLog(l *catalog.MailLog) {
	e.begin()
	e.int("id", l.ID)
	e.int("projectId", l.ProjectID)
	e.string("providerType", l.ProviderType)
	e.string("toEmail", l.ToEmail)
	e.string("subject", l.Subject)
	e.textOrNull("templateCode", l.TemplateCode)
	e.string("status", string(l.Status))
	e.textOrNull("errorMessage", l.ErrorMessage)
	e.time("createdAt", l.CreatedAt, timeMicros)
	e.timeOrNull("sentAt", l.SentAt)
	e.int("attempts", int64(l.Attempts))
	e.timeOrNull("nextAttemptAt", l.NextAttemptAt)
	e.textOrNull("errorCode", string(l.ErrorCode))
	if l.SMTPCode == 0 {
		e.stringOrNull("smtpCode", nil)
	} else {
		e.int("smtpCode", int64(l.SMTPCode))
	}
	e.string("messageId", l.MessageID)
	e.bool("uncertain", l.Uncertain)
	e.string("serviceName", l.ServiceName)
	e.end()
}

// textOrNull writes null for "".
func (e *encoder) textOrNull(name, v string) {
	if v == "" {
		e.stringOrNull(name, nil)
		return
	}
	e.string(name, v)
}

// timeOrNull writes null for the zero time.
func (e *encoder) timeOrNull(name string, t time.Time) {
	if t.IsZero() {
		e.stringOrNull(name, nil)
		return
	}
	e.time(name, t, timeMicros)
}
