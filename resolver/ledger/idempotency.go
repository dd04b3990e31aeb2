package ledger

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"fingerpost/resolver/catalog"
)

// An expiringKey identifies the record of a send with an idempotency key.
type expiringKey struct {
	project int64
	key     string
}

func (l *Ledger) idempotency(k expiringKey) (i *catalog.Idempotency, err error) {
	_, err = now{l.db}.get(appendIdempotencyKey(nil, k.project, k.key), func(rec []byte) (err error) {
		i, err = decodeIdempotency(k.project, k.key, rec)
		return err
	})
	return i, err
}

func expired(i *catalog.Idempotency, now time.Time) bool { return !now.Before(i.ExpiresAt) }

// replaceable returns the unexpired record under a key, or nil after deleting the expired one.
func (t *mailTurn) replaceable(k expiringKey, now time.Time) (*catalog.Idempotency, error) {
	there, err := t.l.idempotency(k)
	if err != nil || there == nil || !expired(there, now) {
		return there, err
	}
	return nil, t.b.Delete(appendExpiryKey(nil, there.ExpiresAt, k.project, k.key), nil)
}

// Idempotency returns the record under a project's key; false if there is none or it has expired by now.
func (l *Ledger) Idempotency(project int64, key string, now time.Time) (i catalog.Idempotency, found bool, err error) {
	err = l.read(func() error {
		there, err := l.idempotency(expiringKey{project, key})
		if there != nil && !expired(there, now) {
			i, found = *there, true
		}
		return err
	})
	return i, found, err
}

// AnswerMail stores idem.Answer as the answer to the send idem.LogID, if its key still exists and has no answer.
func (l *Ledger) AnswerMail(idem *catalog.Idempotency) error {
	k, id, answer := expiringKey{idem.ProjectID, idem.Key}, idem.LogID, append([]byte{}, idem.Answer...)
	err := l.writeMail(l.newBatch(), func(t *mailTurn) error {
		there, err := t.l.idempotency(k)
		if err != nil || there == nil || there.LogID != id || there.Answer != nil {
			t.idle = true
			return err
		}
		there.Answer = answer
		return t.b.Set(appendIdempotencyKey(nil, k.project, k.key), appendIdempotency(nil, there), nil)
	})
	if err != nil {
		return fmt.Errorf("note an answer: %w", err)
	}
	return nil
}

func expiryOf(key []byte) (expires time.Time, k expiringKey, err error) {
	if len(key) < 1+8+8 {
		return expires, k, errRecord
	}
	return microsOf(key[1:9]), expiringKey{int64(binary.BigEndian.Uint64(key[9:17])), string(key[17:])}, nil
}

// expiries calls f with all keys, the earliest expiry first, until f returns an errStop.
func (l *Ledger) expiries(f func(expires time.Time, k expiringKey) error) error {
	return l.walk(under(prefixExpiry), func(key, _ []byte) error {
		expires, k, err := expiryOf(key)
		if err != nil {
			return err
		}
		return f(expires, k)
	})
}

// keysSearched bounds the keys among which ProjectsWithKey looks: half a second's work on one core.
const keysSearched = 500_000

// ProjectsWithKey lists the projects that have an unexpired record under an idempotency key, the latest first. It looks
// through the newest 500,000 records of all projects.
func (l *Ledger) ProjectsWithKey(key string, now time.Time) (projects []int64, err error) {
	n := 0
	unexpired := span{appendMicros([]byte{prefixExpiry}, now), []byte{prefixExpiry + 1}, true}
	err = l.scan(unexpired, func(record, _ []byte) error {
		_, k, err := expiryOf(record)
		if err == nil && k.key == key {
			projects = append(projects, k.project)
		}
		if n++; err == nil && n == keysSearched {
			err = errStop
		}
		return err
	})
	return projects, err
}

// forgetKeys deletes the keys that refer to a mail.
func (t *mailTurn) forgetKeys(project, id int64) error {
	return t.l.expiries(func(expires time.Time, k expiringKey) error {
		if k.project != project {
			return nil
		}
		there, err := t.l.idempotency(k)
		if err != nil || there == nil || there.LogID != id {
			return err
		}
		return t.dropKey(expires, k)
	})
}

func (t *mailTurn) dropKey(expires time.Time, k expiringKey) error {
	return errors.Join(t.b.Delete(appendExpiryKey(nil, expires, k.project, k.key), nil),
		t.b.Delete(appendIdempotencyKey(nil, k.project, k.key), nil))
}

// keysPerTurn bounds how long the expiry of keys blocks other writes.
const keysPerTurn = 1000

// pruneKeys deletes keys that have expired by now; more reports that others may be left.
func (t *mailTurn) pruneKeys(now time.Time) (more bool, err error) {
	n := 0
	err = t.l.expiries(func(expires time.Time, k expiringKey) error {
		if now.Before(expires) {
			return errStop
		}
		if n++; n > keysPerTurn {
			more = true
			return errStop
		}
		return t.dropKey(expires, k)
	})
	t.idle = n == 0
	return more, err
}
