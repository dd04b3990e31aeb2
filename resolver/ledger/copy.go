package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/mail"

	"fingerpost/resolver/catalog"
)

// This file copies the mail of a damaged ledger. What the new ledger has already stays as it is, so a copy that was
// interrupted is simply made again.

// Queue copies the bound of ids, the idempotency keys and the queued mails; until it returns, a mail may be accepted
// twice. Errors are those of the new ledger.
func (v *Salvage) Queue(ctx context.Context) error {
	if v.files == nil {
		return nil
	}
	var bound int64
	_, err := v.files.Get(keyMailState, func(value []byte) (err error) {
		bound, _, err = decodeMailState(value)
		return err
	})
	if err != nil {
		v.lacks(err)
	} else if bound > v.to.MailIDBound() {
		if err := v.to.ReserveMailIDs(bound, false); err != nil {
			return err
		}
	}
	err = v.each(ctx, prefixIdempotency, func(key, rec []byte) error {
		if len(key) < 9 {
			return errRecord
		}
		project, err := lastID(key[:9])
		if err != nil {
			return err
		}
		i, err := decodeIdempotency(project, string(key[9:]), rec)
		if err != nil || v.refused[i.LogID] {
			return err
		}
		return v.to.copyKey(i)
	})
	if err != nil {
		return err
	}
	return v.each(ctx, prefixQueue, func(key, rec []byte) error {
		id, err := lastID(key)
		if err != nil || v.refused[id] {
			return err
		}
		q, err := decodeQueued(rec)
		if err != nil {
			return err
		}
		return v.queued(id, &q)
	})
}

// queued copies one mail. It recreates an unreadable entry from message and envelope, because the mail matters more. It
// is unknown then whether the mail was being sent.
func (v *Salvage) queued(id int64, q *queued) error {
	message, err := v.value(appendQueueKey(nil, prefixMessage, id))
	if err != nil {
		v.lacks(err)
		return nil // Log will finish it
	}
	pos := posOf(q.created, id)
	log := catalog.MailLog{
		ID: id, ProjectID: q.project, ProviderType: catalog.ProviderSMTP, ToEmail: q.to, CreatedAt: pos.created(),
		Status: catalog.MailRetrying, Uncertain: true,
	}
	rec, err := v.value(appendMailKey(nil, q.project, pos))
	if err == nil {
		err = decodeMailLog(&log, q.project, pos, rec)
	}
	if log.Status.Ended() {
		return nil // Log will copy it: the deletion of the queued mail was in an unreadable file
	}
	log.Uncertain = true // a record of its attempts may be unreadable, too
	if err != nil {
		v.lacks(err)
		if m, err := mail.ReadMessage(bytes.NewReader(message)); err == nil {
			log.MessageID, log.Subject = m.Header.Get("Message-Id"), m.Header.Get("Subject")
		}
	}
	m := q.mail(id)
	m.Message = message
	copied, err := v.to.copyMail(&log, &m)
	if copied {
		v.gap.Entries++
		v.gap.Queued++
	}
	return err
}

// gaps copies the records of earlier gaps.
func (v *Salvage) gaps(ctx context.Context) error {
	return v.each(ctx, prefixGap, func(_, rec []byte) error {
		gap, err := decodeGap(rec)
		if err != nil {
			return err
		}
		return v.to.NoteGap(&gap)
	})
}

// Log copies the records of gaps and the log. A mail that was not final and is not in the queue has lost its message:
// it becomes FAILED.
func (v *Salvage) Log(ctx context.Context) error {
	if v.files == nil {
		return nil
	}
	if err := v.gaps(ctx); err != nil {
		return err
	}
	return v.each(ctx, prefixMailLog, func(key, rec []byte) error {
		var log catalog.MailLog
		pos, err := posIn(key)
		if err != nil || len(key) != len(appendMailKey(nil, 0, pos)) {
			return errRecord
		}
		project, err := lastID(key[:9])
		if err != nil {
			return err
		}
		if err := decodeMailLog(&log, project, pos, rec); err != nil || v.refused[log.ID] {
			return err
		}
		lost := !log.Status.Ended()
		if lost {
			log.Status, log.NextAttemptAt = catalog.MailFailed, log.SentAt
			log.ErrorCode, log.ErrorMessage = catalog.CodeInternal, "the message was lost with a damaged store"
		}
		copied, err := v.to.copyMail(&log, nil)
		if copied {
			v.gap.Entries++
			if lost {
				v.gap.Lost++
				v.lacks(errors.New("messages of queued mails cannot be read"))
			}
		}
		return err
	})
}

// copyKey stores the record of an idempotency key, unless one exists.
func (l *Ledger) copyKey(i *catalog.Idempotency) error {
	return l.writeMail(l.newBatch(), func(t *mailTurn) error {
		t.unsynced = true
		there, err := l.idempotency(expiringKey{i.ProjectID, i.Key})
		if err != nil || there != nil {
			t.idle = true
			return err
		}
		return errors.Join(t.b.Set(appendIdempotencyKey(nil, i.ProjectID, i.Key), appendIdempotency(nil, i), nil),
			t.b.Set(appendExpiryKey(nil, i.ExpiresAt, i.ProjectID, i.Key), nil, nil))
	})
}

// errThere refuses to copy a mail that the new ledger has.
var errThere = errors.New("there is such a mail")

// copyMail stores an entry, and its message if m is not nil, unless one with its id and time exists. A later write must
// sync it.
func (l *Ledger) copyMail(log *catalog.MailLog, m *catalog.QueuedMail) (copied bool, err error) {
	project, id, pos, status := log.ProjectID, log.ID, posOf(log.CreatedAt, log.ID), statusCode(log.Status)
	b := l.newBatch()
	if b == nil {
		return false, ErrClosed
	}
	err = b.Set(appendMailKey(nil, project, pos), appendMailLog(nil, log), nil)
	if m != nil {
		q := queued{project, log.CreatedAt, m.From, m.To, m.ExpiresAt}
		err = errors.Join(err, b.Set(appendQueueKey(nil, prefixQueue, id), appendQueued(nil, &q), nil),
			b.Set(appendQueueKey(nil, prefixMessage, id), m.Message, nil))
	}
	if err != nil {
		return false, errors.Join(err, b.Close())
	}
	err = l.writeMail(b, func(t *mailTurn) error {
		t.unsynced, t.bound = true, id
		there, err := t.stored(project, pos)
		if err != nil || there != 0 {
			t.refused = errThere
			return err
		}
		return errors.Join(t.noteSpread(log), t.count(project, 0, status))
	})
	if errors.Is(err, errThere) {
		return false, nil
	}
	if err == nil {
		l.mail.newest.raise(project, pos)
	}
	return err == nil, err
}

// value reads a key of the other database.
func (v *Salvage) value(key []byte) (value []byte, err error) {
	found, err := v.files.Get(key, func(b []byte) error { value = bytes.Clone(b); return nil })
	if err == nil && !found {
		err = fmt.Errorf("%w: a record is missing", ErrDamaged)
	}
	return value, err
}

// each calls f with all readable keys of a prefix. Records that f cannot decode are skipped; errors of the new ledger,
// and of the context, end it.
func (v *Salvage) each(ctx context.Context, prefix byte, f func(key, rec []byte) error) error {
	return v.files.Each(prefix, func(key, rec []byte) error {
		if err := f(key, rec); errors.Is(err, errRecord) || errors.Is(err, ErrNewer) {
			v.lacks(err)
		} else if err != nil {
			return err
		}
		return ctx.Err()
	})
}
