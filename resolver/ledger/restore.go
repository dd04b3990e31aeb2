package ledger

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net/mail"
	"slices"

	"fingerpost/resolver/catalog"
)

// This file puts the records of a damaged ledger into the new one, each as the ledger puts one of its kind: counts and
// indexes follow. What the new ledger has already stays as it is, so a copy that was interrupted is simply repeated.

// A kind is how the records of a prefix are put.
type kind struct {
	prefix byte
	put    func(key, rec []byte) error
}

// Copy copies all records but the log and its gaps. Until it returns, a mail may be accepted twice, and the new ledger
// must not get entries of the audit trail. The errors of Copy and CopyLog are those of the new ledger.
func (v *Salvage) Copy(ctx context.Context) error {
	err := v.copy(ctx, kind{prefixAuditChain, chainRecord(v.beginChain)}, kind{prefixAudit, v.putAudit},
		kind{prefixAuditChain, chainRecord(v.endChain)}, kind{prefixAuditGap, v.putAuditGap},
		kind{prefixEvents, v.putEvents}, kind{prefixEnded, v.putEndedMail})
	if err == nil && (!v.gap.Complete || len(v.from.problems) > 0) {
		any := v.auditGap(0, 0) // entries may be lost which no chain tells of
		any.Any = true
		err = errors.Join(v.noteAuditGap(any), v.noteLostEvents())
	}
	if err == nil && v.bound > v.to.MailIDBound() {
		err = v.to.ReserveMailIDs(v.bound, false)
	}
	if err != nil {
		return err
	}
	return v.copy(ctx, kind{prefixCommit, checked(v, decodeCommit)}, kind{prefixDomainNote, checked(v, readOpaque)},
		kind{prefixNamed, checked(v, readOpaque)}, kind{prefixSuppression, v.putSuppression}, kind{prefixHook, v.putHook},
		kind{prefixDelivery, checked(v, decodeDelivery)}, kind{prefixIdempotency, v.putKey}, kind{prefixQueue, v.putQueued})
}

// CopyLog copies the log, after Copy.
func (v *Salvage) CopyLog(ctx context.Context) error {
	return v.copy(ctx, kind{prefixGap, checked(v, decodeGap)}, kind{prefixMailLog, v.putEntry})
}

// copy puts all readable records of the kinds. It skips those that cannot be decoded.
func (v *Salvage) copy(ctx context.Context, kinds ...kind) error {
	for _, k := range kinds {
		err := v.from.each(k.prefix, func(key, rec []byte) error {
			err := k.put(key, rec)
			if errors.Is(err, errRecord) || errors.Is(err, ErrNewer) {
				v.lacks(err)
				err = nil
			}
			return cmp.Or(err, ctx.Err())
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// turn is a write into the new ledger. Close makes all of them durable.
func (v *Salvage) turn(finish func(t *mailTurn) error) error {
	return v.to.writeMail(v.to.newBatch(), func(t *mailTurn) error {
		t.unsynced = true
		return finish(t)
	})
}

// put stores a record with its keys in indexes, unless one exists.
func (v *Salvage) put(key, rec []byte, indexes ...[]byte) error {
	return v.turn(func(t *mailTurn) error {
		found, err := now{t.l.db}.get(key, func([]byte) error { return nil })
		if t.idle = found || err != nil; t.idle {
			return err
		}
		for _, index := range indexes {
			err = errors.Join(err, t.b.Set(index, nil, nil))
		}
		return errors.Join(err, t.b.Set(key, rec, nil))
	})
}

// checked puts records that can be decoded.
func checked[T any](v *Salvage, decode func(rec []byte) (T, error)) func(key, rec []byte) error {
	return func(key, rec []byte) error {
		if _, err := decode(rec); err != nil {
			return err
		}
		return v.put(key, rec)
	}
}

// beginChain stores how much of a chain retention has cut off.
func (v *Salvage) beginChain(c *AuditChain) error {
	c.Head, c.Last, c.Entries = c.Cut, 0, 0
	return v.put(appendChainKey(nil, c.Project), appendChain(nil, c))
}

// putAudit adds an entry at the end of its chain. It keeps its hashes, so that a chain whose entries are all readable still
// holds. What is missing before it becomes an AuditGap.
func (v *Salvage) putAudit(key, rec []byte) error {
	var e catalog.AuditEntry
	if err := decodeAudit(&e, key, rec); err != nil {
		return err
	}
	if e.ID <= v.to.LastAudit() { // copied by an earlier attempt
		same := false
		err := v.to.read(func() error {
			_, err := now{v.to.db}.get(key, func(has []byte) error {
				same = bytes.Equal(has, rec)
				return nil
			})
			return err
		})
		if err == nil && !same {
			v.lacks(errors.New("entries of the audit trail cannot be put back between others"))
		}
		return err
	}
	return v.turn(func(t *mailTurn) error {
		c, err := t.l.chain(e.ProjectID)
		if err != nil {
			return err
		}
		if e.Prev != c.Head {
			err = t.noteAuditGap(v.auditGap(c.Project, c.Last))
		}
		return errors.Join(err, t.place(c, e.ID, e.Time, e.Hash, rec),
			t.putChains(map[int64]*AuditChain{c.Project: c}, e.ID))
	})
}

// endChain notes that the last entries of a chain are missing.
func (v *Salvage) endChain(was *AuditChain) error {
	return v.turn(func(t *mailTurn) error {
		is, err := t.l.chain(was.Project)
		if err != nil || was.Entries == 0 || is.Last >= was.Last {
			return err
		}
		return t.noteAuditGap(v.auditGap(is.Project, is.Last))
	})
}

// putAuditGap replaces the gap that putAudit has found at the same place: the missing entries are in an older ledger.
func (v *Salvage) putAuditGap(_, rec []byte) error {
	g, err := decodeAuditGap(rec)
	if err != nil {
		return err
	}
	return v.noteAuditGap(&g)
}

func (v *Salvage) noteAuditGap(g *AuditGap) error {
	return v.turn(func(t *mailTurn) error { return t.noteAuditGap(g) })
}

// auditGap is a gap that this salvage has found.
func (v *Salvage) auditGap(project, after int64) *AuditGap {
	return &AuditGap{Found: v.began, MovedTo: v.gap.MovedTo, Project: project, After: after}
}

func (v *Salvage) putKey(key, rec []byte) error {
	if len(key) < 1+8 {
		return errRecord
	}
	i, err := decodeIdempotency(projectIn(key), string(key[1+8:]), rec)
	if err != nil || slices.Contains(v.refused, i.LogID) {
		return err
	}
	return v.put(key, rec, appendExpiryKey(nil, i.ExpiresAt, i.ProjectID, i.Key))
}

// putQueued recreates an unreadable entry from message and envelope, because the mail matters more. It is unknown then
// whether the mail was being sent.
func (v *Salvage) putQueued(key, rec []byte) error {
	id, err := lastID(key)
	if err != nil || slices.Contains(v.refused, id) {
		return err
	}
	q, err := decodeQueued(rec)
	if err != nil {
		return err
	}
	m := q.mail(id)
	if m.Message, err = v.from.value(string(appendQueueKey(nil, prefixMessage, id))); err != nil {
		v.lacks(err)
		return nil // CopyLog will finish it
	}
	pos := posOf(q.created, id)
	log := catalog.MailLog{ID: id, ProjectID: q.project, ProviderType: catalog.ProviderSMTP, ToEmail: q.to,
		CreatedAt: pos.created(), Status: catalog.MailRetrying}
	entry, err := v.from.value(string(appendMailKey(nil, q.project, pos)))
	if err == nil {
		err = decodeMailLog(&log, q.project, pos, entry)
	}
	if log.Status.Ended() {
		return nil // CopyLog will copy it: the deletion of the queued mail was in an unreadable file
	}
	log.Uncertain = true // a record of its attempts may be unreadable, too
	if err != nil {
		v.lacks(err)
		if m, err := mail.ReadMessage(bytes.NewReader(m.Message)); err == nil {
			log.MessageID, log.Subject = m.Header.Get("Message-Id"), m.Header.Get("Subject")
		}
	}
	copied, err := v.putMail(&log, &m)
	if copied {
		v.gap.Queued++
	}
	return err
}

// putEntry copies an entry of the log. A mail that was not final and is not in the queue has lost its message: it becomes
// FAILED.
func (v *Salvage) putEntry(key, rec []byte) error {
	pos, err := posIn(key)
	if err != nil || len(key) != len(appendMailKey(nil, 0, pos)) {
		return errRecord
	}
	var log catalog.MailLog
	if err := decodeMailLog(&log, projectIn(key), pos, rec); err != nil || slices.Contains(v.refused, log.ID) {
		return err
	}
	lost := !log.Status.Ended()
	if lost {
		log.Status, log.NextAttemptAt = catalog.MailFailed, log.SentAt
		log.ErrorCode, log.ErrorMessage = catalog.CodeInternal, "the message was lost with a damaged store"
	}
	copied, err := v.putMail(&log, nil)
	if copied && lost {
		v.gap.Lost++
		v.lacks(errors.New("messages of queued mails cannot be read"))
	}
	return err
}

// errThere refuses to copy a mail that the new ledger has.
var errThere = errors.New("there is such a mail")

// putMail stores a mail, without its message if m is nil, unless an entry with its id and time exists.
func (v *Salvage) putMail(log *catalog.MailLog, m *catalog.QueuedMail) (copied bool, err error) {
	pos := posOf(log.CreatedAt, log.ID)
	err = v.turn(func(t *mailTurn) error {
		there, err := t.stored(log.ProjectID, pos)
		if err != nil || there != 0 {
			t.refused = errThere
			return err
		}
		t.bound = log.ID
		return errors.Join(setMail(t.b, log, m), t.noteSpread(log), t.count(log.ProjectID, 0, statusCode(log.Status)))
	})
	if errors.Is(err, errThere) {
		return false, nil
	}
	if copied = err == nil; copied {
		v.to.mail.newest.raise(log.ProjectID, pos)
		v.gap.Entries++
	}
	return copied, err
}
