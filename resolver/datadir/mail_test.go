package datadir_test

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/datadir"
	"fingerpost/resolver/ledger"
	"fingerpost/resolver/store"

	"github.com/cockroachdb/pebble/v2"
)

var mailEpoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const mails, everyThirdIsSent = 40, 3

// fillMail accepts mails 1 to mails, takes every third to its final status, and records a gap.
func fillMail(t *testing.T, l *ledger.Ledger) {
	t.Helper()
	for id := int64(1); id <= mails; id++ {
		log := &catalog.MailLog{ID: id, ProjectID: id%2 + 1, ToEmail: fmt.Sprintf("u%d@to.example", id), Status: catalog.MailPending,
			Subject: fmt.Sprint("Subject ", id), CreatedAt: mailEpoch.Add(time.Duration(id) * time.Second)}
		mail := &catalog.QueuedMail{LogID: id, ProjectID: log.ProjectID, To: log.ToEmail, Message: fmt.Appendf(nil, "Message %d", id)}
		idem := &catalog.Idempotency{ProjectID: log.ProjectID, Key: fmt.Sprint("key ", id), LogID: id, ExpiresAt: mailEpoch.Add(time.Hour)}
		if _, err := l.AcceptMail(log, mail, idem, mailEpoch); err != nil {
			t.Fatal(err)
		}
		if id%everyThirdIsSent == 0 {
			log.Status = catalog.MailSent
			if err := l.UpdateMail(log); err != nil {
				t.Fatal(err)
			}
		}
	}
	note := ledger.DomainNote{Project: catalog.UUID{1}, Domain: "shop.example", Note: []byte("proven")}
	if err := errors.Join(l.ChangeDomainNotes([]ledger.DomainNote{note}), l.SetNamed(map[string][]byte{"links": []byte("key")})); err != nil {
		t.Fatal(err)
	}
	if err := l.NoteGap(&ledger.MailGap{Found: mailEpoch, MovedTo: "data.damaged-1", Reason: "a table is missing", Lost: 3}); err != nil {
		t.Fatal(err)
	}
}

// checkMail checks for the content of fillMail after a restore: queued mails may have been sent since, and are marked
// so.
func checkMail(t *testing.T, l *ledger.Ledger) {
	t.Helper()
	if note, _, err := l.DomainNote(catalog.UUID{1}, "shop.example"); string(note) != "proven" || err != nil {
		t.Errorf("the note of a domain is %q, %v", note, err)
	}
	if value, _, err := l.Named("links"); string(value) != "key" || err != nil {
		t.Errorf("the named value is %q, %v", value, err)
	}
	waiting := 0
	if err := l.EachQueued(func(log catalog.MailLog, mail catalog.QueuedMail) error {
		waiting++
		whole, found, err := l.QueuedMail(log.ID)
		if !log.Uncertain || log.ID%everyThirdIsSent == 0 || !found || string(whole.Message) != fmt.Sprint("Message ", log.ID) {
			t.Errorf("%+v, %+v, %v", log, whole, found)
		}
		return err
	}); err != nil || waiting != mails-mails/everyThirdIsSent {
		t.Errorf("%d mails wait, %v", waiting, err)
	}
	for _, project := range []int64{1, 2} {
		if _, total, err := l.MailLogs(project, catalog.MailQuery{Page: 1, Limit: 100}); total != mails/2 || err != nil {
			t.Errorf("%d entries of project %d, %v", total, project, err)
		}
	}
	log, found, err := l.MailLog(1, 30)
	if err != nil || !found || log.Status != catalog.MailSent || log.Uncertain || log.Subject != "Subject 30" {
		t.Errorf("%+v, %v, %v", log, found, err)
	}
	if i, found, err := l.Idempotency(2, "key 7", mailEpoch); !found || i.LogID != 7 || err != nil {
		t.Errorf("%+v, %v, %v", i, found, err)
	}
	if l.MailIDBound() < mails {
		t.Error("ids begin anew")
	}
	if err := l.Verify(); err != nil {
		t.Error(err)
	}
}

// TestBackupCarriesMail: a restored ledger has all mail of the backup, and so has a backup of it.
func TestBackupCarriesMail(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	s := open(t, newDir(t), store.Options{})
	fillMail(t, s.ledger)
	packed := backup(t, s)
	for range 2 {
		dir := newDir(t)
		if _, err := restore(dir, packed, datadir.RestoreOptions{}); err != nil {
			t.Fatal(err)
		}
		r := open(t, dir, store.Options{})
		checkMail(t, r.ledger)
	}
}

// TestRestoreBeginsAnEpoch: the events of a restored ledger get ids that no event had before, and webhooks go on where
// they were.
func TestRestoreBeginsAnEpoch(t *testing.T) {
	t.Parallel()
	s := open(t, newDir(t), store.Options{})
	fillMail(t, s.ledger)
	cursor := ledger.HookCursor{Hook: "crm", Mail: 3}
	if err := s.ledger.ChangeHooks([]ledger.HookChange{{Hook: "crm", Cursor: &cursor}}); err != nil {
		t.Fatal(err)
	}
	dir := newDir(t)
	if _, err := restore(dir, backup(t, s), datadir.RestoreOptions{}); err != nil {
		t.Fatal(err)
	}
	r := open(t, dir, store.Options{}).ledger
	was, _ := s.ledger.Events()
	is, _ := r.Events()
	if is.Epoch == was.Epoch || is.Epoch == "" || is.Mail != mails/everyThirdIsSent || is.Entry != 1 {
		t.Errorf("%+v, before %+v", is, was)
	}
	if all, err := r.Hooks(); err != nil || len(all) != 1 || all[0].Mail != 3 {
		t.Errorf("%+v, %v", all, err)
	}
}

type silent struct{}

func (silent) Infof(string, ...any)  {}
func (silent) Errorf(string, ...any) {}
func (silent) Fatalf(string, ...any) {}

// TestBackupWithWrongCounts: a ledger whose counts differ from its mail is not accepted as valid.
func TestBackupWithWrongCounts(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	s := open(t, dir, store.Options{})
	fillMail(t, s.ledger)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := pebble.Open(filepath.Join(dir, ledger.Folder), &pebble.Options{FormatMajorVersion: pebble.FormatValueSeparation, Logger: silent{}})
	if err != nil {
		t.Fatal(err)
	}
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: []byte("N"), UpperBound: []byte("O")})
	if err != nil || !it.First() {
		t.Fatal("no counts", err)
	}
	key, counts := bytes.Clone(it.Key()), bytes.Clone(it.Value())
	counts[1]++ // behind the version
	if err := errors.Join(it.Close(), db.Set(key, counts, pebble.Sync), db.Close()); err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	if err := datadir.BackupDir(&packed, dir, mailEpoch); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("a backup of %d bytes, %v", packed.Len(), err)
	}
}
