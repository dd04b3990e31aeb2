package ledger

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

// A mailModel is the expected mail of a ledger, stored in the simplest way.
type mailModel struct {
	logs   map[int64]catalog.MailLog
	queued map[int64]catalog.QueuedMail
}

func mailStore(t testing.TB, dir string, o Options) *Ledger {
	t.Helper()
	s, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

var mailEpoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// newMail makes a mail whose content depends only on its id.
func newMail(project, id int64, created time.Time) (*catalog.MailLog, *catalog.QueuedMail) {
	log := &catalog.MailLog{
		ID: id, ProjectID: project, ProviderType: catalog.ProviderSMTP, ToEmail: fmt.Sprintf("user%d@to.example", id%7),
		Subject: fmt.Sprintf("Subject %d", id%11), Status: catalog.MailPending, MessageID: fmt.Sprintf("<%d@acme.example>", id),
		ServiceName: "shop", CreatedAt: created, NextAttemptAt: created,
	}
	if id%3 > 0 {
		log.TemplateCode = [...]string{"WELCOME", "RESET"}[id%2]
	}
	mail := &catalog.QueuedMail{LogID: id, ProjectID: project, From: "a@acme.example", To: log.ToEmail,
		ExpiresAt: created.Add(time.Hour), Message: fmt.Appendf(nil, "Message %d\r\n", id)}
	return log, mail
}

func (m *mailModel) accept(t *testing.T, l *Ledger, project, id int64, created time.Time) {
	t.Helper()
	log, mail := newMail(project, id, created)
	if there, err := l.AcceptMail(log, mail, nil, created); err != nil || there != nil {
		t.Fatal(there, err)
	}
	m.logs[id], m.queued[id] = *log, *mail
}

func (m *mailModel) update(t *testing.T, l *Ledger, id int64, status catalog.MailStatus) {
	t.Helper()
	log := m.logs[id]
	was := log.Status
	log.Status = status
	log.Attempts++
	if status == catalog.MailSent {
		log.SentAt = log.CreatedAt.Add(time.Second)
	}
	err := l.UpdateMail(&log)
	if was.Ended() && was != status {
		if !errors.Is(err, ErrMailEnded) {
			t.Fatalf("from %s to %s: %v", was, status, err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	m.logs[id] = log
	if status.Ended() {
		delete(m.queued, id)
	}
}

func (m *mailModel) prune(t *testing.T, l *Ledger, before time.Time) {
	t.Helper()
	if err := l.PruneMail(before, before); err != nil {
		t.Fatal(err)
	}
	for id, log := range m.logs {
		if log.Status.Ended() && log.CreatedAt.Before(before) {
			delete(m.logs, id)
		}
	}
}

// list is MailLogs by brute force.
func (m *mailModel) list(project int64, q catalog.MailQuery) (page []catalog.MailLog, total int) {
	var all []catalog.MailLog
	for _, log := range m.logs {
		if (project == 0 || log.ProjectID == project) && m.has(&log, q.Text) && (q.Status == "" || q.Status == log.Status) &&
			(q.TemplateCode == "" || q.TemplateCode == log.TemplateCode) && (q.ToEmail == "" || strings.EqualFold(q.ToEmail, log.ToEmail)) &&
			(q.From.IsZero() || !log.CreatedAt.Before(q.From)) && (q.To.IsZero() || log.CreatedAt.Before(q.To)) {
			all = append(all, log)
		}
	}
	by := func(a, b *catalog.MailLog) int { return 0 }
	for _, sort := range mailSorts {
		if sort.field == q.Sort && sort.key != nil {
			by = func(a, b *catalog.MailLog) int { return bytes.Compare(sort.key(nil, a), sort.key(nil, b)) }
		}
	}
	slices.SortFunc(all, func(a, b catalog.MailLog) int {
		if !q.Ascending {
			a, b = b, a
		}
		return cmp.Or(by(&a, &b), a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	from := min(len(all), (q.Page-1)*q.Limit)
	return all[from:min(len(all), from+q.Limit)], len(all)
}

func (m *mailModel) has(log *catalog.MailLog, text string) bool {
	all := log.ToEmail + "\n" + log.Subject + "\n" + log.MessageID
	return strings.Contains(strings.ToLower(all), strings.ToLower(text))
}

// compareAcross compares MailAcross of some projects, or of all if they are nil, with the model.
func (m *mailModel) compareAcross(t *testing.T, l *Ledger, projects []int64, q catalog.MailQuery) {
	t.Helper()
	other := mailModel{logs: maps.Clone(m.logs)}
	maps.DeleteFunc(other.logs, func(_ int64, log catalog.MailLog) bool {
		return projects != nil && !slices.Contains(projects, log.ProjectID)
	})
	want, total := other.list(0, q)
	if total > MaxAcross {
		t.Fatal("the model has more mail than one call finds")
	}
	got, err := l.MailAcross(projects, q)
	if err != nil || got.Total != total || !got.SearchedTo.IsZero() || !slices.EqualFunc(got.Entries, want,
		func(a, b catalog.MailLog) bool { return reflect.DeepEqual(a, b) }) {
		t.Fatalf("%+v of %v: %d of %d entries to %v, %v, want %d of %d\n%+v\n%+v", q, projects, len(got.Entries), got.Total,
			got.SearchedTo, err, len(want), total, got.Entries, want)
	}
}

func (m *mailModel) compare(t *testing.T, l *Ledger, project int64, q catalog.MailQuery) {
	t.Helper()
	want, wantTotal := m.list(project, q)
	got, total, err := l.MailLogs(project, q)
	if err != nil {
		t.Fatalf("%+v: %v", q, err)
	}
	if total != wantTotal || len(got) != len(want) {
		t.Fatalf("%+v of %d: %d of %d entries, want %d of %d", q, project, len(got), total, len(want), wantTotal)
	}
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Fatalf("%+v of %d: entry %d is\n%+v, want\n%+v", q, project, i, got[i], want[i])
		}
	}
}

// check compares the results of every read.
func (m *mailModel) check(t *testing.T, l *Ledger, projects int64, r *rand.Rand) {
	t.Helper()
	if err := l.Verify(); err != nil {
		t.Fatal(err)
	}
	checkCounts(t, l)
	states := append([]catalog.MailStatus{""}, statusCodes[1:]...)
	some := func() time.Time {
		if r.IntN(2) == 0 {
			return time.Time{}
		}
		return mailEpoch.Add(time.Duration(r.IntN(4000)) * time.Second)
	}
	for project := int64(1); project <= projects+1; project++ {
		for range 60 {
			q := catalog.MailQuery{Page: 1 + r.IntN(40), Limit: 1 + r.IntN(30), Ascending: r.IntN(2) == 0, Status: states[r.IntN(len(states))], From: some(), To: some()}
			if r.IntN(3) == 0 {
				q.Page = 1
			}
			switch r.IntN(6) {
			case 0:
				q.TemplateCode = "WELCOME"
			case 1:
				q.ToEmail = "USER3@to.example"
			case 2:
				q.Sort = mailSorts[r.IntN(len(mailSorts))].field
			case 3:
				q.Text = [...]string{"SER3@", "subject 1", "<11", "no such"}[r.IntN(4)]
			}
			m.compare(t, l, project, q)
			q.Sort, q.Ascending = "", false
			some := []int64{}
			for p := int64(1); p <= projects+1; p++ {
				if r.IntN(2) == 0 {
					some = append(some, p)
				}
			}
			m.compareAcross(t, l, some, q)
			m.compareAcross(t, l, nil, q)
		}
	}
	n := int64(0)
	err := l.EachQueued(func(log catalog.MailLog, mail catalog.QueuedMail) error {
		if log.ID <= n || !reflect.DeepEqual(log, m.logs[log.ID]) || mail.Message != nil {
			t.Errorf("%+v, %+v after %d", log, mail, n)
		}
		n = log.ID
		whole, found, err := l.QueuedMail(log.ID)
		if err != nil || !found || !reflect.DeepEqual(whole, m.queued[log.ID]) {
			t.Errorf("%+v, %v, %v", whole, found, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for id := range m.logs {
		log, found, err := l.MailLog(m.logs[id].ProjectID, id)
		if err != nil || !found || !reflect.DeepEqual(log, m.logs[id]) {
			t.Fatalf("%d: %+v, %v, %v", id, log, found, err)
		}
		if _, found, _ := l.QueuedMail(id); found != !log.Status.Ended() {
			t.Fatalf("%d is queued: %v", id, found)
		}
	}
}

// checkCounts compares the counts with the entries.
func checkCounts(t *testing.T, l *Ledger) {
	t.Helper()
	if err := l.read(func() error { return l.checkMailCounts() }); err != nil {
		t.Fatal(err)
	}
}

// TestMailLogAgainstModel makes random writes and compares every kind of read with the model.
func TestMailLogAgainstModel(t *testing.T) {
	steps := testrig.Size(t, 3000, 200)
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 7))
			s := mailStore(t, "", Options{})
			m := &mailModel{map[int64]catalog.MailLog{}, map[int64]catalog.QueuedMail{}}
			const projects = 3
			var ids []int64
			for step := range steps {
				switch n := r.IntN(100); {
				case n < 40 || len(ids) == 0:
					id := int64(1000 + step)
					created := mailEpoch.Add(time.Duration(step) * time.Second)
					if r.IntN(10) == 0 { // the clock jumps
						created = mailEpoch.Add(time.Duration(r.IntN(4000)) * time.Second)
					}
					m.accept(t, s, 1+r.Int64N(projects), id, created)
					ids = append(ids, id)
				case n < 98:
					id := ids[max(0, len(ids)-1-r.IntN(1+r.IntN(len(ids))))]
					if _, there := m.logs[id]; there {
						m.update(t, s, id, statusCodes[1+r.IntN(len(statusCodes)-1)])
					}
				case n < 99:
					m.prune(t, s, mailEpoch.Add(time.Duration(r.IntN(1+step*3/4))*time.Second))
				default:
					id := ids[r.IntN(len(ids))]
					if err := s.ForgetMail([]int64{id}); err != nil {
						t.Fatal(err)
					}
					log, there := m.logs[id]
					if there && !log.Status.Ended() && (log.Attempts == 0 || log.Attempts == 1 && log.Status == catalog.MailSending) {
						delete(m.logs, id)
						delete(m.queued, id)
					}
				}
				if step%500 == 499 {
					m.check(t, s, projects, r)
				}
			}
			m.prune(t, s, mailEpoch.Add(10000*time.Second))
			m.check(t, s, projects, r)
			for id, log := range m.logs {
				if !log.Status.Ended() {
					m.update(t, s, id, catalog.MailSent)
				}
			}
			m.prune(t, s, mailEpoch.Add(10000*time.Second))
			m.check(t, s, projects, r)
			if n, err := countKeys(s, "ELNQ"); n != 0 || err != nil {
				t.Errorf("%d keys are left over, %v", n, err)
			}
		})
	}
}

// countKeys counts the keys with any of the prefixes.
func countKeys(l *Ledger, prefixes string) (n int, err error) {
	for _, prefix := range []byte(prefixes) {
		err = errors.Join(err, l.scan(under(prefix), func(_, _ []byte) error { n++; return nil }))
	}
	return n, err
}
