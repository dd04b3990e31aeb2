package ledger

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"fingerpost/resolver/catalog"
)

// endMail accepts a mail and ends it.
func endMail(t *testing.T, l *Ledger, project, id int64, status catalog.MailStatus) {
	t.Helper()
	log, mail := newMail(project, id, mailEpoch.Add(time.Duration(id)*time.Second))
	if _, err := l.AcceptMail(log, mail, nil, mailEpoch); err != nil {
		t.Fatal(err)
	}
	log.Status = status
	for range 2 { // the second one changes nothing
		if err := l.UpdateMail(log); err != nil {
			t.Fatal(err)
		}
	}
}

func endedMails(t *testing.T, l *Ledger, after int64) (all []string) {
	t.Helper()
	err := l.EndedSince(after, func(m *EndedMail) bool {
		all = append(all, fmt.Sprintf("%d: %s of %d/%d", m.Seq, m.Status, m.Project, m.Log))
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// TestEvents: the marks follow the trail and the ends of mails, also over a restart, and retention leaves a cut. The epoch
// changes only when it is told to.
func TestEvents(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "ledger")
	l := mailStore(t, dir, Options{Logger: quiet})
	began, changed := l.Events()
	if began.Epoch == "" || began.Entry != 0 || began.Mail != 0 {
		t.Fatalf("%+v", began)
	}
	appendAll(t, l, auditEntry(1), auditEntry(2))
	if at, _ := l.Events(); at.Entry != 2 || !isClosed(changed) {
		t.Errorf("%+v", at)
	}
	_, changed = l.Events()
	endMail(t, l, 1, 7, catalog.MailSent)
	endMail(t, l, 2, 8, catalog.MailFailed)
	if at, _ := l.Events(); at.Mail != 2 || !isClosed(changed) {
		t.Errorf("%+v", at)
	}
	if got, want := endedMails(t, l, 0), []string{"1: SENT of 1/7", "2: FAILED of 2/8"}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
	if err := errors.Join(l.PruneMail(time.Now().Add(time.Hour), mailEpoch),
		l.PruneAudit(t.Context(), mailEpoch.AddDate(1, 0, 0), func(int64) int { return 30 })); err != nil {
		t.Fatal(err)
	}
	want := EventMarks{Entry: 2, Mail: 2, EntryCut: 2, MailCut: 2, Epoch: began.Epoch}
	if at, _ := l.Events(); at != want || len(endedMails(t, l, 0)) != 0 {
		t.Errorf("after retention: %+v", at)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = mailStore(t, dir, Options{Logger: quiet})
	if at, _ := l.Events(); at != want {
		t.Errorf("after a restart: %+v", at)
	}
	endMail(t, l, 1, 9, catalog.MailExpired)
	if got := endedMails(t, l, 2); !reflect.DeepEqual(got, []string{"3: EXPIRED of 1/9"}) {
		t.Errorf("a place that was given out before: %q", got)
	}
	if err := l.NewEpoch(); err != nil {
		t.Fatal(err)
	}
	if at, _ := l.Events(); at.Epoch == began.Epoch || at.Entry != 2 || at.Mail != 3 {
		t.Errorf("after a restore: %+v", at)
	}
}

// TestHeldEvents: entries of an append that failed are not shown by the next ledger before it is known that they hold.
func TestHeldEvents(t *testing.T) {
	t.Parallel()
	l := mailStore(t, "", Options{Logger: quiet})
	appendAll(t, l, auditEntry(1), auditEntry(2), auditEntry(3))
	l.HoldEvents(1)
	if at, _ := l.Events(); at.Entry != 1 {
		t.Errorf("held: %+v", at)
	}
	if err := l.ForgetAudit(1); err != nil {
		t.Fatal(err)
	}
	appendAll(t, l, auditEntry(4))
	if at, _ := l.Events(); at.Entry != 2 {
		t.Errorf("appended: %+v", at)
	}
	l.HoldEvents(1)
	l.SettleEvents()
	if at, _ := l.Events(); at.Entry != 2 {
		t.Errorf("settled: %+v", at)
	}
}

// TestEntriesSince: the entries of one project in order, with commits by AuditEntry.
func TestEntriesSince(t *testing.T) {
	t.Parallel()
	l := mailStore(t, "", Options{Logger: quiet})
	for i := range 9 {
		appendAll(t, l, auditEntry(i))
	}
	var ids []int64
	err := l.ProjectEntriesSince(1, 2, func(e *catalog.AuditEntry) bool {
		ids = append(ids, e.ID)
		return true
	})
	if err != nil || !reflect.DeepEqual(ids, []int64{5, 8}) {
		t.Errorf("%v, %v", ids, err)
	}
	first := 0
	if err := l.EntriesSince(3, func(*catalog.AuditEntry) bool { first++; return false }); err != nil || first != 1 || l.Err() != nil {
		t.Errorf("a walk that is ended: %d, %v, %v", first, err, l.Err())
	}
	e, found, err := l.AuditEntry(5)
	if err != nil || !found || e.ProjectID != 1 || e.Slug != "acme" || e.Commit != "" {
		t.Fatalf("%+v, %v, %v", e, found, err)
	}
	if err := l.Committed([]catalog.WriteCommit{{RequestID: e.RequestID, Generation: e.Generation, Commit: "c1"}}); err != nil {
		t.Fatal(err)
	}
	if e, _, err = l.AuditEntry(5); err != nil || e.Commit != "c1" {
		t.Errorf("the commit: %q, %v", e.Commit, err)
	}
	if _, found, err = l.AuditEntry(50); found || err != nil {
		t.Errorf("no entry: %v, %v", found, err)
	}
}

func someHook() (HookCursor, HookDelivery) {
	at := mailEpoch.Add(time.Minute)
	c := HookCursor{Hook: "crm", Entry: 5, Mail: 2, EntryCut: 1, MailCut: 1, Number: 3, Version: "v1", FailingSince: at,
		OffSince: at, OffReason: "410", DeadAt: at, GapAt: at}
	h := HookDelivery{Number: 3, ID: "e.5.crm", Event: "domain.update", Object: "acme.example", Entry: 5, Project: 1,
		State: HookFailing, Created: at, NextAttemptAt: at.Add(time.Hour), Commit: "c",
		Attempts: []HookAttempt{{Time: at, Status: 500, Took: time.Second, Answer: "no", Error: "500"}, {Time: at, Error: "gone"}}}
	return c, h
}

// TestHookRecords: cursors, projects that wait and deliveries are read as they were stored; the oldest deliveries go.
func TestHookRecords(t *testing.T) {
	t.Parallel()
	l := mailStore(t, "", Options{Logger: quiet})
	c, h := someHook()
	c.Lanes = []HookLane{{Project: 0, Entry: 1, Number: 2}, {Project: 7, Entry: 4, Mail: 1, Number: 3},
		{Project: HookReplay, LastEntry: 4, LastMail: 2, Replay: 9, Number: 4}}
	other := HookCursor{Hook: "crm2", Entry: 9}
	err := l.ChangeHooks([]HookChange{{Hook: "crm", Cursor: &c, Lanes: c.Lanes, Deliveries: []HookDelivery{h}},
		{Hook: "crm2", Cursor: &other}})
	if err != nil {
		t.Fatal(err)
	}
	if all, err := l.Hooks(); err != nil || !reflect.DeepEqual(all, []HookCursor{c, other}) {
		t.Errorf("%+v, %v", all, err)
	}
	if got, found, err := l.HookDelivery("crm", 3); err != nil || !found || !reflect.DeepEqual(got, h) {
		t.Errorf("%+v, %v", got, err)
	}
	later := h
	later.Number, later.ID, later.State, later.Created = MaxHookDeliveries+2, "e.6.crm", HookDelivered, h.Created.Add(time.Hour)
	if err := l.ChangeHooks([]HookChange{{Hook: "crm", Deliveries: []HookDelivery{later}, Done: []int64{7}}}); err != nil {
		t.Fatal(err)
	}
	list := func(q HookQuery, want ...string) {
		t.Helper()
		q.Page, q.Limit = 1, 10
		rows, total, err := l.HookDeliveries("crm", q)
		var ids []string
		for _, r := range rows {
			ids = append(ids, r.ID)
		}
		if err != nil || total != len(want) || !reflect.DeepEqual(ids, want) {
			t.Errorf("%+v: %q of %d, %v", q, ids, total, err)
		}
	}
	list(HookQuery{}, "e.6.crm", "e.5.crm")
	list(HookQuery{State: HookFailing}, "e.5.crm")
	list(HookQuery{Event: "domain.create"})
	list(HookQuery{ID: "e.6.crm"}, "e.6.crm")
	list(HookQuery{From: later.Created}, "e.6.crm")
	list(HookQuery{To: later.Created}, "e.5.crm")
	last := later
	last.Number = MaxHookDeliveries + 3
	if err := l.ChangeHooks([]HookChange{{Hook: "crm", Deliveries: []HookDelivery{last}}}); err != nil {
		t.Fatal(err)
	}
	list(HookQuery{}, "e.6.crm", "e.6.crm")
	if err := l.PruneHooks(last.Created.Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	list(HookQuery{})
	if err := l.ChangeHooks([]HookChange{{Hook: "crm", Gone: true}}); err != nil {
		t.Fatal(err)
	}
	if all, err := l.Hooks(); err != nil || !reflect.DeepEqual(all, []HookCursor{other}) {
		t.Errorf("%+v, %v", all, err)
	}
}

// TestSalvageEvents: cursors, deliveries, the epoch and the index of ended mails are recovered from a damaged ledger. If
// some of it cannot be read, readers see a cut, and no place in the index is given out twice.
func TestSalvageEvents(t *testing.T) {
	t.Parallel()
	check := func(damaged bool) {
		t.Helper()
		dir := filepath.Join(t.TempDir(), "data")
		aside := dir + ".damaged-1"
		before, err := Open(dir, Options{Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		appendAll(t, before, auditEntry(1), auditEntry(2))
		endMail(t, before, 1, 7, catalog.MailSent)
		c, h := someHook()
		c.Lanes = []HookLane{{Project: 7, Entry: 4, Number: 3}}
		change := HookChange{Hook: "crm", Cursor: &c, Lanes: c.Lanes, Deliveries: []HookDelivery{h}}
		was, _ := before.Events()
		if err := errors.Join(before.ChangeHooks([]HookChange{change}), before.Close(), os.Rename(dir, aside)); err != nil {
			t.Fatal(err)
		}
		if damaged {
			if err := os.WriteFile(filepath.Join(aside, "000999.sst"), []byte("no table"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		l := mailStore(t, dir, Options{Logger: quiet})
		for range 2 {
			v, err := l.OpenSalvage(t.Context(), aside, nil, quiet)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(v.Copy(t.Context()), v.CopyLog(t.Context()), v.Abandon()); err != nil {
				t.Fatal(err)
			}
		}
		l.SettleEvents()
		at, _ := l.Events()
		if damaged {
			if at.EntryCut != 2 || at.Mail != at.MailCut || at.Mail <= skippedAfterDamage || at.Epoch != was.Epoch {
				t.Errorf("damaged: %+v", at)
			}
		} else if at != was {
			t.Errorf("%+v, want %+v", at, was)
		}
		if got := endedMails(t, l, 0); !reflect.DeepEqual(got, []string{"1: SENT of 1/7"}) {
			t.Errorf("%q", got)
		}
		if all, err := l.Hooks(); err != nil || !reflect.DeepEqual(all, []HookCursor{c}) {
			t.Errorf("%+v, %v", all, err)
		}
		if got, _, err := l.HookDelivery("crm", 3); err != nil || !reflect.DeepEqual(got, h) {
			t.Errorf("%+v, %v", got, err)
		}
		endMail(t, l, 1, 70, catalog.MailSent)
		if is, _ := l.Events(); is.Mail != at.Mail+1 {
			t.Errorf("the next mail has place %d after %d", is.Mail, at.Mail)
		}
	}
	check(false)
	check(true)
}
