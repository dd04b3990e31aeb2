package store

import (
	"context"
	"errors"

	"fingerpost/resolver/catalog"

	"github.com/cockroachdb/pebble/v2"
)

func (s *Store) queued(id int64) (q queued, found bool, err error) {
	found, err = now{s.db}.get(appendQueueKey(nil, prefixQueue, id), func(rec []byte) (err error) {
		q, err = decodeQueued(rec)
		return err
	})
	return q, found, err
}

func (q *queued) mail(id int64) catalog.QueuedMail {
	return catalog.QueuedMail{LogID: id, ProjectID: q.project, From: q.from, To: q.to, ExpiresAt: q.expiresAt}
}

// QueuedMail returns a mail that has not reached its end, with its message; false for any other id.
func (s *Store) QueuedMail(id int64) (m catalog.QueuedMail, found bool, err error) {
	err = s.View(func(v *View) error { // of one moment: the end takes both away
		found, err = v.get(appendQueueKey(nil, prefixQueue, id), func(rec []byte) error {
			q, err := decodeQueued(rec)
			m = q.mail(id)
			return err
		})
		if err != nil || !found {
			return err
		}
		whole, err := v.get(appendQueueKey(nil, prefixMessage, id), func(message []byte) error {
			m.Message = append([]byte{}, message...)
			return nil
		})
		if err == nil && !whole {
			err = errRecord
		}
		return err
	})
	return m, found, err
}

// EachQueued calls f for all mails that have not reached their end, by id, as they are at one moment, with an empty
// Message. f must not call the Store; its error ends the walk and is returned.
func (s *Store) EachQueued(f func(log catalog.MailLog, mail catalog.QueuedMail) error) error {
	var stopped error
	err := s.read(func() error {
		it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{prefixQueue}, UpperBound: []byte{prefixQueue + 1}})
		if err != nil {
			return err
		}
		logs, err := it.Clone(pebble.CloneOptions{IterOptions: &pebble.IterOptions{}})
		if err != nil {
			return errors.Join(err, it.Close())
		}
		for ok := it.First(); ok && err == nil && stopped == nil; ok = it.Next() {
			stopped, err = eachQueued(it, &View{logs}, f)
		}
		return errors.Join(err, it.Error(), it.Close(), logs.Close())
	})
	if err != nil {
		return err
	}
	return stopped
}

func eachQueued(it *pebble.Iterator, logs *View, f func(log catalog.MailLog, mail catalog.QueuedMail) error) (stopped, err error) {
	id, err := lastID(it.Key())
	if err != nil {
		return nil, err
	}
	rec, err := it.ValueAndErr()
	if err != nil {
		return nil, err
	}
	q, err := decodeQueued(rec)
	if err != nil {
		return nil, err
	}
	var log catalog.MailLog
	pos := posOf(q.created, id)
	found, err := logs.get(appendMailKey(nil, q.project, pos), func(rec []byte) error {
		return decodeMailLog(&log, q.project, pos, append([]byte(nil), rec...))
	})
	if err == nil && !found {
		err = errRecord
	}
	if err != nil {
		return nil, err
	}
	return f(log, q.mail(id)), nil
}

// ReclaimMail merges the tables of the messages, so that those that were deleted leave the disk.
func (s *Store) ReclaimMail(ctx context.Context) error {
	return s.read(func() error { return s.db.Compact(ctx, []byte{prefixMessage}, []byte{prefixMessage + 1}, false) })
}

func (s *Store) anyQueued() (any bool, err error) {
	err = s.scan([]byte{prefixQueue}, func(_, _ []byte) error {
		any = true
		return errStop
	})
	return any, err
}

// doubtQueue marks all queued mails as uncertain, in one batch; nobody else may use the store.
func (s *Store) doubtQueue() error {
	return s.writeMail(s.newBatch(), mailSubject{}, func(t *mailTurn) error {
		return s.EachQueued(func(log catalog.MailLog, _ catalog.QueuedMail) error {
			log.Uncertain = true
			return t.b.Set(appendMailKey(nil, log.ProjectID, posOf(log.CreatedAt, log.ID)), appendMailLog(nil, &log), nil)
		})
	})
}
