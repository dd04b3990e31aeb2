package ledger

import (
	"context"
	"errors"

	"fingerpost/resolver/catalog"

	"github.com/cockroachdb/pebble/v2"
)

func (l *Ledger) queued(id int64) (q queued, found bool, err error) {
	found, err = now{l.db}.get(appendQueueKey(nil, prefixQueue, id), func(rec []byte) (err error) {
		q, err = decodeQueued(rec)
		return err
	})
	return q, found, err
}

func (q *queued) mail(id int64) catalog.QueuedMail {
	return catalog.QueuedMail{LogID: id, ProjectID: q.project, From: q.from, To: q.to, ExpiresAt: q.expiresAt,
		Category: q.category, Ignored: q.ignored.list()}
}

// QueuedMail returns a mail whose status is not final, with its message; false for any other id.
func (l *Ledger) QueuedMail(id int64) (m catalog.QueuedMail, found bool, err error) {
	err = l.read(func() error {
		it, err := l.db.NewIter(nil) // one moment: the final status deletes both records
		if err != nil {
			return err
		}
		found, err = (moment{it}).queued(id, &m)
		return errors.Join(err, it.Close())
	})
	return m, found, err
}

func (v moment) queued(id int64, m *catalog.QueuedMail) (found bool, err error) {
	found, err = v.get(appendQueueKey(nil, prefixQueue, id), func(rec []byte) error {
		q, err := decodeQueued(rec)
		*m = q.mail(id)
		return err
	})
	if err != nil || !found {
		return found, err
	}
	whole, err := v.get(appendQueueKey(nil, prefixMessage, id), func(message []byte) error {
		m.Message = append([]byte{}, message...)
		return nil
	})
	if err == nil && !whole {
		err = errRecord
	}
	return true, err
}

// EachQueued calls f for all mails whose status is not final, by id, as of one moment, with an empty Message. f must
// not call the Ledger; its error ends the walk and is returned.
func (l *Ledger) EachQueued(f func(log catalog.MailLog, mail catalog.QueuedMail) error) error {
	var stopped error
	err := l.read(func() error {
		it, err := l.db.NewIter(nil)
		if err != nil {
			return err
		}
		logs, err := it.Clone(pebble.CloneOptions{IterOptions: &pebble.IterOptions{}})
		if err != nil {
			return errors.Join(err, it.Close())
		}
		err = walk(it, under(prefixQueue), func(key, rec []byte) error {
			log, mail, err := queuedLog(moment{logs}, key, rec)
			if err != nil {
				return err
			}
			if stopped = f(log, mail); stopped != nil {
				return errStop
			}
			return nil
		})
		return errors.Join(err, it.Close(), logs.Close())
	})
	if err != nil {
		return err
	}
	return stopped
}

// queuedLog returns the mail in a record of the queue, without its message, and its entry.
func queuedLog(logs moment, key, rec []byte) (log catalog.MailLog, mail catalog.QueuedMail, err error) {
	id, err := lastID(key)
	if err != nil {
		return log, mail, err
	}
	q, err := decodeQueued(rec)
	if err != nil {
		return log, mail, err
	}
	pos := posOf(q.created, id)
	found, err := logs.get(appendMailKey(nil, q.project, pos), func(rec []byte) error {
		return decodeMailLog(&log, q.project, pos, rec)
	})
	if err == nil && !found {
		err = errRecord
	}
	return log, q.mail(id), err
}

// ReclaimMail merges the tables of the messages, which frees the disk space of deleted ones.
func (l *Ledger) ReclaimMail(ctx context.Context) error {
	return l.read(func() error { return l.db.Compact(ctx, []byte{prefixMessage}, []byte{prefixMessage + 1}, false) })
}

// AnyQueued reports whether the queue holds a mail.
func (l *Ledger) AnyQueued() (any bool, err error) {
	err = l.scan(under(prefixQueue), func(_, _ []byte) error {
		any = true
		return errStop
	})
	return any, err
}

// DoubtQueue marks all queued mails as uncertain, in one batch; the ledger must have no other user.
func (l *Ledger) DoubtQueue() error {
	return l.writeMail(l.newBatch(), func(t *mailTurn) error {
		return l.EachQueued(func(log catalog.MailLog, _ catalog.QueuedMail) error {
			log.Uncertain = true
			return t.b.Set(appendMailKey(nil, log.ProjectID, posOf(log.CreatedAt, log.ID)), appendMailLog(nil, &log), nil)
		})
	})
}
