package ledger

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestSalvageLeavesOut: a mail whose sender was told that it is refused is not recovered from a damaged store, nor is its key.
func TestSalvageLeavesOut(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	before, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	const mails, refused = 3, 2
	at := func(id int64) time.Time { return mailEpoch.Add(time.Duration(id) * time.Second) }
	for id := int64(1); id <= mails; id++ {
		log, mail := newMail(1, id, at(id))
		if _, err := before.AcceptMail(log, mail, idempotencyOf(log, fmt.Sprint("key-", id)), mailEpoch); err != nil {
			t.Fatal(err)
		}
	}
	if err := before.Close(); err != nil {
		t.Fatal(err)
	}
	aside := dir + ".damaged-1"
	if err := os.Rename(dir, aside); err != nil {
		t.Fatal(err)
	}
	s := mailStore(t, dir, Options{}, maxTally)
	v, err := s.OpenSalvage(aside, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	v.LeaveOut([]int64{refused})
	if err := v.Queue(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := v.Log(t.Context()); err != nil {
		t.Fatal(err)
	}
	if gap, err := v.Close(mailEpoch); err != nil || gap.Entries != mails-1 || gap.Queued != mails-1 || !gap.Complete {
		t.Errorf("%+v, %v", gap, err)
	}
	for id := int64(1); id <= mails; id++ {
		_, entry, err1 := s.MailLog(1, id)
		_, queued, err2 := s.QueuedMail(id)
		key, kept, err3 := s.Idempotency(1, fmt.Sprint("key-", id), mailEpoch)
		if want := id != refused; entry != want || queued != want || kept != want || err1 != nil || err2 != nil || err3 != nil {
			t.Errorf("mail %d: entry %v, queued %v, key %v %v, want %v; %v, %v, %v", id, entry, queued, kept, key, want, err1, err2, err3)
		}
	}
}
