package mailer

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"fingerpost/resolver/catalog"
)

const (
	keepIdempotency   = 24 * time.Hour
	maxIdempotencyKey = 255
)

// A runningKey is an Idempotency-Key of a project.
type runningKey struct {
	project int64
	key     string
}

var (
	errStillRuns = &catalog.Error{Code: catalog.CodeConflict,
		Message: "the first request with this Idempotency-Key is still under way"}
	errMismatch = &catalog.Error{Code: catalog.CodeIdempotencyMismatch,
		Message: "this Idempotency-Key was used for another request"}
)

// sendOnce is send under an Idempotency-Key: one mail is accepted under the key, and a repeat gets the first answer.
// The key is stored in the batch that accepts the mail, so a refused request leaves the key free.
func (m *Mailer) sendOnce(ctx context.Context, s *Send, p *catalog.ProjectConfig) (Receipt, error) {
	if len(s.IdempotencyKey) > maxIdempotencyKey || strings.ContainsFunc(s.IdempotencyKey,
		func(r rune) bool { return r < ' ' || r > '~' }) {
		e := &catalog.Error{Code: catalog.CodeValidation, Message: "the Idempotency-Key is no good"}
		e.Problems.Addf("Idempotency-Key", "must be 1 to %d printable ASCII characters", maxIdempotencyKey)
		return Receipt{}, e
	}
	key := runningKey{p.Project.ID, s.IdempotencyKey}
	if err := m.enterKey(key, s.Request); err != nil {
		return Receipt{}, err
	}
	defer m.leaveKey(key)
	there, found, err := m.options.Ledger.Idempotency(p.Project.ID, s.IdempotencyKey)
	switch {
	case err != nil:
		return Receipt{}, err
	case found:
		return m.replay(&there, s.Request)
	}
	r, err := m.send(ctx, s, p)
	if err == nil && !r.Replayed && !r.Sent && r.Suppressed == "" {
		m.keepAnswer(key, &r)
	}
	return r, err
}

// Repeat returns the answer to a repeat of a request that this project has accepted under an Idempotency-Key. found is
// false if it has not, or not this request. A repeat is answered also when the project does not send any more.
func (m *Mailer) Repeat(project int64, key string, request [32]byte) (r Receipt, found bool, err error) {
	there, found, err := m.options.Ledger.Idempotency(project, key)
	if err != nil || !found || there.Request != request {
		return r, false, err
	}
	r, err = m.replay(&there, request)
	return r, err == nil, err
}

// ProjectsWithKey lists the projects that may have accepted a request under an Idempotency-Key.
func (m *Mailer) ProjectsWithKey(key string) ([]int64, error) {
	return m.options.Ledger.ProjectsWithKey(key)
}

// enterKey admits one request at a time per key.
func (m *Mailer) enterKey(key runningKey, request [32]byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	first, runs := m.running[key]
	switch {
	case runs && first != request:
		return errMismatch
	case runs:
		return errStillRuns
	}
	m.running[key] = request
	return nil
}

func (m *Mailer) leaveKey(key runningKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.running, key)
}

// keepAnswer stores the answer for a repeat, because the log entry will not show it later: "queued" for a mail that
// goes on, and a whole failure. The entry of a sent mail does not change.
func (m *Mailer) keepAnswer(key runningKey, r *Receipt) {
	answer, err := json.Marshal(r)
	if err != nil {
		panic("mailer: a Receipt cannot be encoded: impossible, it has plain fields only: " + err.Error())
	}
	stored := catalog.Idempotency{ProjectID: key.project, Key: key.key, LogID: r.LogID, Answer: answer}
	if err := m.options.Ledger.AnswerMail(&stored); err != nil && !unavailable(err) {
		m.options.Logger.Error("the answer to a send cannot be kept", "project", key.project, "logId", r.LogID, "error", err)
	}
}

// replay returns the answer to a repeat. If the process ended between accepting the mail and answering, there was no
// first answer, and the log entry's current state takes its place.
func (m *Mailer) replay(there *catalog.Idempotency, request [32]byte) (r Receipt, err error) {
	if there.Request != request {
		return r, errMismatch
	}
	if there.Answer != nil {
		if err := json.Unmarshal(there.Answer, &r); err != nil {
			return r, fmt.Errorf("read the kept answer of mail %d: %w", there.LogID, err)
		}
		r.Replayed = true
		return r, nil
	}
	log, found, err := m.options.Ledger.MailLog(there.ProjectID, there.LogID)
	switch {
	case err != nil:
		return r, err
	case !found:
		return r, &catalog.Error{Code: catalog.CodeConflict,
			Message: "a mail was accepted under this Idempotency-Key, and what became of it is not known any more"}
	}
	r = Receipt{LogID: log.ID, MessageID: log.MessageID, Replayed: true}
	switch log.Status {
	case catalog.MailSent:
		r.Sent, r.Kept = true, log.ProviderType == catalog.ProviderSink
	case catalog.MailSuppressed: // after it was queued
		r.Suppressed = m.reasonNow(&log)
	case catalog.MailFailed, catalog.MailExpired:
		r.Failed = &catalog.Error{
			Code:    cmp.Or(log.ErrorCode, "SMTP_TEMPORARY"),
			Message: cmp.Or(log.ErrorMessage, "the mail was not taken in time"),
		}
	default:
		r.Queued = true
	}
	return r, nil
}
