package mailer

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	"fingerpost/mailer/smtp"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/signedlink"
	"fingerpost/resolver/trace"
)

// The suppression list is asked when everything else about a send is good, and again before each attempt with queued
// mail: an address may be listed while its mail waits.

// stoppedBy returns the entry of the suppression list that stops a mail, nil if none does.
func (m *Mailer) stoppedBy(mail *catalog.QueuedMail) (*catalog.Suppression, error) {
	entries, err := m.options.Ledger.Suppressions(mail.ProjectID, mail.To)
	if err != nil {
		return nil, err
	}
	return stoppedBy(entries, mail.Category, mail.Ignored), nil
}

// suppress stores that a mail was not sent, with its answer: a repeat gets the same one.
func (m *Mailer) suppress(ctx context.Context, c *prepared, by *catalog.Suppression) (Receipt, error) {
	if err := m.admit(c.log.ProjectID); err != nil {
		return Receipt{}, err
	}
	defer m.waiting.add(c.log.ProjectID, -1, 0)
	r := Receipt{LogID: c.log.ID, MessageID: c.log.MessageID, Suppressed: by.Reason}
	noteSuppressed(&c.log, by)
	if c.idem != nil {
		answer, err := json.Marshal(&r)
		if err != nil {
			panic("mailer: a Receipt cannot be encoded: impossible, it has plain fields only: " + err.Error())
		}
		c.idem.Answer = answer
	}
	_, sync := trace.Start(ctx, "ledger.sync")
	there, err := m.options.Ledger.AcceptMail(&c.log, nil, c.idem)
	sync.EndWith(err)
	switch {
	case err != nil:
		return Receipt{}, err
	case there != nil:
		return m.replay(there, c.idem.Request)
	}
	m.counters.suppressed.Add(1)
	return r, nil
}

// noteSuppressed ends an entry.
func noteSuppressed(log *catalog.MailLog, by *catalog.Suppression) {
	log.Status, log.NextAttemptAt = catalog.MailSuppressed, time.Time{}
	log.ErrorCode, log.SMTPCode = catalog.CodeSuppressed, 0
	log.ErrorMessage = "Not sent: the project's suppression list has the address, as " + string(by.Reason)
	if by.Category != "" {
		log.ErrorMessage += " of " + by.Category
	}
	log.ErrorMessage += "."
}

// endSuppressed ends a queued mail whose recipient has been listed meanwhile.
func (m *Mailer) endSuppressed(s *sending, it item, by *catalog.Suppression) {
	noteSuppressed(&s.log, by)
	m.endAs(catalog.MailSuppressed, s, it, &m.counters.suppressed)
}

// reasonNow returns why a mail would be stopped now; manual if it would not, because a person has changed the list since.
func (m *Mailer) reasonNow(log *catalog.MailLog) catalog.SuppressionReason {
	address, _ := catalog.ParseAddress(log.ToEmail)
	entries, err := m.options.Ledger.Suppressions(log.ProjectID, address)
	if err != nil || len(entries) == 0 {
		return catalog.SuppressManual
	}
	return entries[0].Reason
}

var errNoPublicURL = &catalog.Error{Code: catalog.CodePublicURLMissing,
	Message: "the template has a category, and so its mail needs a link to unsubscribe: start the service with " +
		"--public-url, or give unsubscribe.url"}

// unsubscribeLink returns the link with which the recipient of a mail leaves its category, "" for a template without one.
func (m *Mailer) unsubscribeLink(s *Send, p *catalog.ProjectConfig, t *catalog.Template) (string, error) {
	switch {
	case t.Category == "" && s.Unsubscribe != "":
		e := &catalog.Error{Code: catalog.CodeValidation, Message: "the mail is invalid"}
		e.Problems.Addf("unsubscribe", "is for templates that have a category, and %s has none", t.Code)
		return "", e
	case t.Category == "" || s.Unsubscribe != "":
		return s.Unsubscribe, nil
	case m.options.UnsubscribeLink == nil:
		return "", errNoPublicURL
	}
	address, err := catalog.ParseAddress(s.ToEmail)
	if err != nil { // the check of the whole mail tells it, with all other problems
		address = ""
	}
	link, err := m.options.UnsubscribeLink(signedlink.Subscription{ProjectID: p.Project.ID, Address: address,
		Category: t.Category})
	if err != nil {
		m.options.Logger.Error("a link to unsubscribe cannot be made", "error", err)
		return "", catalog.Unavailable("a link to unsubscribe cannot be made at the moment")
	}
	return link, nil
}

// withUnsubscribeLink adds the link to the variables of a mail; a value of the caller gives way. given is not changed.
func withUnsubscribeLink(given map[string]string, link string) map[string]string {
	if link == "" {
		return given
	}
	all := make(map[string]string, len(given)+1)
	maps.Copy(all, given)
	all[catalog.UnsubscribeVariable] = link
	return all
}

// listsBounces reports whether a project wants its bounces listed.
func (m *Mailer) listsBounces(project int64) bool {
	p, err := m.options.Projects.MailProject(project)
	return err == nil && p.SMTP != nil && p.SMTP.ListsBounces()
}

// bounceNote says which mail has bounced, and what the server said.
func bounceNote(log *catalog.MailLog, o *smtp.Outcome) string {
	said := strings.TrimSpace(fmt.Sprintf("%d %s %s", o.SMTPCode, o.Enhanced, o.Reply))
	note := fmt.Sprintf("mail %d: %s", log.ID, strings.Join(strings.Fields(said), " "))
	if len(note) > catalog.MaxSuppressionNote {
		note = strings.ToValidUTF8(note[:catalog.MaxSuppressionNote], "")
	}
	return note
}

// storeEnd stores the entry of a concluded sending. The recipient of a hard bounce is listed in the same batch: a process
// that dies here leaves both or neither. The caller holds s.mu.
func (m *Mailer) storeEnd(s *sending) error {
	address, err := catalog.ParseAddress(s.log.ToEmail)
	if s.bounce == "" || err != nil {
		return m.options.Ledger.UpdateMail(&s.log)
	}
	return m.options.Ledger.BounceMail(&s.log, catalog.Suppression{Address: address, Reason: catalog.SuppressHardBounce,
		Note: s.bounce, CreatedAt: m.now()})
}

// listGrace is how long a project may be missed until its suppression list goes: a project that comes back later may be
// another one, see catalog.Former.
const listGrace = time.Hour

// pruneLists deletes the suppression lists of projects that are gone.
func (m *Mailer) pruneLists() {
	projects, err := m.options.Ledger.ListedProjects()
	for _, project := range projects {
		_, e := m.options.Projects.MailProject(project)
		if e != nil && !hasCode(e, catalog.CodeNotFound) {
			continue // the store cannot be read: nothing is known of the project
		}
		if e = m.options.Ledger.KeepList(project, e == nil, m.clock.Now(), listGrace); e != nil {
			err = e
		}
	}
	if err != nil && !unavailable(err) {
		m.options.Logger.Error("suppression lists of projects that are gone cannot be deleted", "error", err)
	}
}
