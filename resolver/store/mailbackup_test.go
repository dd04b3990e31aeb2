package store

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"
	"time"

	"fingerpost/resolver/catalog"
)

// TestBackupCarriesMail: a restored store has all mail of the backup; what waits in its queue may have been sent since,
// and says so.
func TestBackupCarriesMail(t *testing.T) {
	s := mailStore(t, t.TempDir()+"/data", Options{}, maxTally)
	m := &mailModel{map[int64]catalog.MailLog{}, map[int64]catalog.QueuedMail{}}
	for id := int64(1); id <= 40; id++ {
		m.accept(t, s, id%2+1, id, mailEpoch.Add(time.Duration(id)*time.Second))
		if id%3 == 0 {
			m.update(t, s, id, catalog.MailSent)
		}
	}
	keyed, mail := newMail(1, 41, mailEpoch)
	if _, err := s.AcceptMail(keyed, mail, idempotencyOf(keyed, "k"), mailEpoch); err != nil {
		t.Fatal(err)
	}
	m.logs[41], m.queued[41] = *keyed, *mail
	gap := MailGap{Found: mailEpoch, MovedTo: "data.damaged-1", Reason: "a table is missing", Lost: 3}
	if err := s.NoteGap(&gap); err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	if err := s.Backup(&archive, mailEpoch); err != nil {
		t.Fatal(err)
	}
	for round := range 2 { // a backup of the restored one is as good
		dir := t.TempDir() + "/data"
		if _, err := Restore(dir, bytes.NewReader(archive.Bytes()), RestoreOptions{Now: mailEpoch}); err != nil {
			t.Fatal(round, err)
		}
		r := mailStore(t, dir, Options{}, maxTally)
		n := 0
		if err := r.EachQueued(func(log catalog.MailLog, _ catalog.QueuedMail) error {
			want := m.logs[log.ID]
			want.Uncertain = true
			m.logs[log.ID] = want
			n++
			got, found, err := r.QueuedMail(log.ID)
			if !reflect.DeepEqual(log, want) || !found || err != nil || !reflect.DeepEqual(got, m.queued[log.ID]) {
				t.Errorf("%+v, want %+v; %+v, %v", log, want, got, err)
			}
			return nil
		}); err != nil || n != len(m.queued) {
			t.Fatalf("%d queued of %d, %v", n, len(m.queued), err)
		}
		for _, project := range []int64{1, 2} {
			m.compare(t, r, project, catalog.MailQuery{Page: 1, Limit: 100})
		}
		if i, found, err := r.Idempotency(1, "k", mailEpoch); !found || i.LogID != 41 || err != nil {
			t.Errorf("%+v, %v, %v", i, found, err)
		}
		if gaps, err := r.MailGaps(); err != nil || len(gaps) != 1 || gaps[0] != gap {
			t.Errorf("%+v, %v", gaps, err)
		}
		if r.MailIDBound() < 41 {
			t.Error("ids begin anew")
		}
		archive.Reset()
		if err := r.Backup(&archive, mailEpoch); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBackupWithWrongCounts: a store whose counts are not those of its mail is not handed out as sound.
func TestBackupWithWrongCounts(t *testing.T) {
	dir := t.TempDir() + "/data"
	s := mailStore(t, dir, Options{}, maxTally)
	for id := int64(1); id <= 3; id++ {
		log, mail := newMail(1, id, mailEpoch)
		if _, err := s.AcceptMail(log, mail, nil, mailEpoch); err != nil {
			t.Fatal(err)
		}
	}
	row := tally{start: posOf(mailEpoch, 1), minID: 1, maxID: 3, states: [6]uint32{2}}
	if err := s.db.Set(appendCountKey(nil, 1, row.start), appendTally(nil, &row), nil); err != nil {
		t.Fatal(err)
	}
	s.Close()
	var archive bytes.Buffer
	if err := BackupDir(&archive, dir, mailEpoch); err == nil {
		t.Error(fmt.Sprint("a backup of ", archive.Len(), " bytes"))
	}
}
