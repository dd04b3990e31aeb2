package mailer

import (
	"sync"

	"fingerpost/mailer/message"
	"fingerpost/mailer/smtp"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/trace"
)

// A Kept is a mail that a Mailer with Options.Keep has kept instead of sending it.
type Kept struct {
	From, To           string // of the envelope
	Subject            string
	BodyHTML, BodyText string // "" for one that the mail lacks
	Source             string // the message, as a server would have got it
}

// The texts of kept mails are in memory alone, because codes and links that open accounts stand in them. When there are
// more than these, the oldest texts are dropped; the log keeps its entries.
const (
	MaxKept      = 1000     // mails
	MaxKeptBytes = 32 << 20 // of their messages
)

// keptMails are the texts of the mails that were kept last. Any goroutine may call the methods.
type keptMails struct {
	mu    sync.Mutex
	mails map[int64]*catalog.QueuedMail // by the id of the log entry
	order []int64                       // ids, the oldest first
	bytes int
}

// add keeps a mail. A mail of which the process had no time to note that it was kept is kept again, with the same id.
func (k *keptMails) add(mail *catalog.QueuedMail) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.mails[mail.LogID] == nil {
		k.order = append(k.order, mail.LogID)
		k.bytes += len(mail.Message)
	}
	k.mails[mail.LogID] = mail
	for len(k.order) > MaxKept || k.bytes > MaxKeptBytes {
		k.bytes -= len(k.mails[k.order[0]].Message)
		delete(k.mails, k.order[0])
		k.order = k.order[1:]
	}
}

func (k *keptMails) mail(id int64) *catalog.QueuedMail {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.mails[id]
}

// carry makes an attempt: it hands the mail to its server, or keeps it.
func (m *Mailer) carry(span *trace.Span, d destination, mail *catalog.QueuedMail) smtp.Outcome {
	if !m.options.Keep {
		return m.options.Carrier.Send(trace.Into(m.inflight.attempts, span), d.server,
			smtp.Envelope{From: mail.From, To: mail.To},
			mail.Message)
	}
	m.kept.add(mail)
	return smtp.Outcome{Class: smtp.Accepted, Stage: smtp.StageEOD}
}

// Kept returns the text of a mail that was kept; false if it was not, or not by this process, or if later mails have
// taken its place.
func (m *Mailer) Kept(log *catalog.MailLog) (Kept, bool) {
	mail := m.kept.mail(log.ID)
	if mail == nil || mail.ProjectID != log.ProjectID {
		return Kept{}, false
	}
	html, text, err := message.Bodies(mail.Message)
	if err != nil {
		m.options.Logger.Error("a kept mail cannot be read", "project", log.ProjectID, "logId", log.ID, "error", err)
	}
	return Kept{From: mail.From, To: mail.To, Subject: log.Subject, BodyHTML: html, BodyText: text,
		Source: string(mail.Message)}, true
}
