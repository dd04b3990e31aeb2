package ledger

import (
	"encoding/binary"
	"strconv"
	"strings"
	"time"

	"fingerpost/resolver/catalog"
)

// spreadName is the record of mailState.spread.
const spreadName = "spread of mail ids"

// distance returns how far a mail's createdAt lies from the time in its id: a clock that was set back makes later ids
// run ahead.
func distance(log *catalog.MailLog) time.Duration { return idTime(log.ID).Sub(log.CreatedAt).Abs() }

func idTime(id int64) time.Time { return MailIDEpoch.Add(time.Duration(id) * time.Microsecond) }

// noteSpread stores the distance of a new entry if it is the largest, so that MailLog finds each entry by its id without
// reading the whole log.
func (t *mailTurn) noteSpread(log *catalog.MailLog) error {
	far := distance(log)
	if far <= time.Duration(t.l.mail.spread.Load()) {
		return nil
	}
	far += time.Minute // the next ones are a little further; each record costs a write
	t.spread = int64(far)
	return setOpaque(t.b, appendTextKey(nil, prefixNamed, spreadName), binary.BigEndian.AppendUint64(nil, uint64(far)))
}

func (l *Ledger) loadSpread() error {
	l.mail.spread.Store(int64(nearID))
	value, found, err := l.Named(spreadName)
	if err == nil && found && len(value) == 8 {
		l.mail.spread.Store(int64(binary.BigEndian.Uint64(value)))
	}
	return err
}

// aroundMessage narrows a query for a Message-ID, which begins with the id of its mail, to the time at which such a mail
// can have been created: it is found whatever its age.
func (l *Ledger) aroundMessage(q catalog.MailQuery) catalog.MailQuery {
	text, _, _ := strings.Cut(strings.TrimPrefix(q.MessageID, "<"), ".")
	id, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return q
	}
	at, far := idTime(int64(id)), time.Duration(l.mail.spread.Load())
	if from := at.Add(-far); q.From.Before(from) {
		q.From = from
	}
	if to := at.Add(far + time.Microsecond); q.To.IsZero() || q.To.After(to) {
		q.To = to
	}
	return q
}
