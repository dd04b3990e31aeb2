package ledger

import (
	"errors"
	"testing"
	"time"
)

// TestMailLogByID finds entries by their ids, also those that got theirs after the clock was set back, and after a
// restart; an unknown id costs no walk through the whole log.
func TestMailLogByID(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := mailStore(t, dir, Options{})
	id := func(at time.Time) int64 { return at.Sub(MailIDEpoch).Microseconds() }
	accept := func(id int64, created time.Time) {
		t.Helper()
		log, mail := newMail(1, id, created)
		if _, err := l.AcceptMail(log, mail, nil, mailEpoch); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 50 {
		accept(id(mailEpoch)+int64(i), mailEpoch.Add(time.Duration(i)*time.Microsecond))
	}
	if l.mail.spread.Load() != int64(nearID) {
		t.Error("a clock that runs well makes the search wider")
	}
	back := mailEpoch.AddDate(0, 0, -3) // the clock is set back; ids go on
	accept(id(mailEpoch)+60, back)
	accept(id(mailEpoch)+61, back.Add(time.Hour))
	for range 2 {
		for _, n := range []int64{0, 49, 60, 61} {
			if log, found, err := l.MailLog(1, id(mailEpoch)+n); err != nil || !found || log.ID != id(mailEpoch)+n {
				t.Errorf("%d: %v, %v", n, found, err)
			}
		}
		for _, unknown := range []int64{1, id(mailEpoch) + 50, id(mailEpoch.AddDate(10, 0, 0))} {
			if _, found, err := l.MailLog(1, unknown); err != nil || found {
				t.Errorf("%d: %v, %v", unknown, found, err)
			}
		}
		if far := time.Duration(l.mail.spread.Load()); far < 72*time.Hour || far > 73*time.Hour {
			t.Errorf("the search reaches %s", far)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		l = mailStore(t, dir, Options{})
	}
}

// TestSpreadOfARefusedWrite: what was not stored widens no search; else the next entry as far away would not be noted, and
// after a restart nobody would find it by its id.
func TestSpreadOfARefusedWrite(t *testing.T) {
	t.Parallel()
	l := mailStore(t, t.TempDir(), Options{})
	log, _ := newMail(1, mailEpoch.Sub(MailIDEpoch).Microseconds(), mailEpoch.AddDate(0, 0, -3))
	refused := errors.New("refused")
	err := l.writeMail(l.newBatch(), func(m *mailTurn) error {
		m.refused = refused
		return m.noteSpread(log)
	})
	if !errors.Is(err, refused) {
		t.Fatal(err)
	}
	if far := time.Duration(l.mail.spread.Load()); far != nearID {
		t.Errorf("the search reaches %s", far)
	}
}
