package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"fingerpost/resolver/catalog"
)

func suppression(address string, reason catalog.SuppressionReason, category string) catalog.Suppression {
	return catalog.Suppression{Address: address, Reason: reason, Category: category, Note: "note of " + address,
		CreatedAt: mailEpoch, By: "support"}
}

// changeList makes a change of a list with an entry of the trail.
func changeList(t testing.TB, l *Ledger, c catalog.SuppressionChange) {
	t.Helper()
	if _, err := l.AppendAuditWith([]catalog.AuditEntry{auditEntry(1)}, 0, nil, AuditWith{List: &c}); err != nil {
		t.Fatal(err)
	}
}

// pageOfList returns a page as short texts.
func pageOfList(t testing.TB, l *Ledger, project int64, q catalog.SuppressionQuery) (rows []string, total int) {
	t.Helper()
	q.Page, q.Limit = max(q.Page, 1), cmp.Or(q.Limit, 100)
	list, total, err := l.SuppressionPage(project, q)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range list {
		rows = append(rows, strings.TrimSuffix(fmt.Sprintf("%s %s %s", s.Address, s.Reason, s.Category), " "))
	}
	return rows, total
}

// TestSuppressions: a list has each address, reason and category once, in its own project, over restarts.
func TestSuppressions(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "ledger")
	l := mailStore(t, dir, Options{Logger: quiet})
	ada := suppression("Ada@a.example", catalog.SuppressUnsubscribe, "news")
	changeList(t, l, catalog.SuppressionChange{ProjectID: 1, Add: []catalog.Suppression{
		ada, suppression("ada@a.example", catalog.SuppressComplaint, ""), suppression("ADA@a.example", catalog.SuppressUnsubscribe, "news"),
		suppression("ada@a.example", catalog.SuppressUnsubscribe, ""), suppression("bob@a.example", catalog.SuppressManual, ""),
		suppression("ada@a.example.org", catalog.SuppressManual, "")}})
	changeList(t, l, catalog.SuppressionChange{ProjectID: 2, Add: []catalog.Suppression{suppression("ada@a.example", catalog.SuppressManual, "")}})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = mailStore(t, dir, Options{Logger: quiet})
	of := func(project int64, address string, want ...catalog.SuppressionReason) {
		t.Helper()
		list, err := l.Suppressions(project, address)
		var got []catalog.SuppressionReason
		for _, s := range list {
			got = append(got, s.Reason)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%d %s: %q, %v, want %q", project, address, got, err, want)
		}
	}
	of(1, "aDa@a.example", catalog.SuppressComplaint, catalog.SuppressUnsubscribe, catalog.SuppressUnsubscribe)
	of(1, "bob@a.example", catalog.SuppressManual)
	of(1, "ada@a")
	of(2, "ada@a.example", catalog.SuppressManual)
	of(2, "bob@a.example")
	of(3, "ada@a.example")
	list, err := l.Suppressions(1, "ada@a.example")
	if err != nil || !reflect.DeepEqual(list[2], ada) { // the first one stays
		t.Errorf("%+v, %v, want %+v", list[2], err, ada)
	}
	page := func(q catalog.SuppressionQuery, total int, want ...string) {
		t.Helper()
		if got, n := pageOfList(t, l, 1, q); n != total || !slices.Equal(got, want) {
			t.Errorf("%+v: %q of %d, want %q of %d", q, got, n, want, total)
		}
	}
	const a1, a2, a3 = "ada@a.example complaint", "ada@a.example unsubscribe", "Ada@a.example unsubscribe news"
	const org, bob = "ada@a.example.org manual", "bob@a.example manual"
	page(catalog.SuppressionQuery{}, 5, a1, a2, a3, org, bob)
	page(catalog.SuppressionQuery{Descending: true, Limit: 2}, 5, bob, org)
	page(catalog.SuppressionQuery{Page: 2, Limit: 2}, 5, a3, org)
	page(catalog.SuppressionQuery{Page: 4, Limit: 2}, 5)
	page(catalog.SuppressionQuery{Address: "ADA@a.example", Limit: 1, Page: 2}, 3, a2)
	page(catalog.SuppressionQuery{Reason: catalog.SuppressManual}, 2, org, bob)
	page(catalog.SuppressionQuery{Category: "news"}, 1, a3)
	page(catalog.SuppressionQuery{Text: "A.EXAMPLE.O"}, 1, org)
	changeList(t, l, catalog.SuppressionChange{ProjectID: 1, Remove: []catalog.Suppression{
		suppression("ada@A.example", catalog.SuppressComplaint, ""), suppression("eve@a.example", catalog.SuppressComplaint, "")}})
	page(catalog.SuppressionQuery{}, 4, a2, a3, org, bob)
	if err := l.Verify(); err != nil {
		t.Error(err)
	}
}

// TestListsAreAsTheModel changes lists at random and compares them with a map.
func TestListsAreAsTheModel(t *testing.T) {
	t.Parallel()
	l := mailStore(t, "", Options{Logger: quiet})
	r, model := rand.New(rand.NewPCG(1, 2)), map[string]bool{}
	for range 300 {
		var c catalog.SuppressionChange
		c.ProjectID = int64(1 + r.IntN(3))
		for range 1 + r.IntN(4) {
			s := suppression(fmt.Sprintf("u%d@a.example", r.IntN(20)), catalog.SuppressManual, []string{"", "a", "b"}[r.IntN(3)])
			key := fmt.Sprint(c.ProjectID, s.Address, s.Category)
			if r.IntN(2) == 0 {
				if c.Remove == nil { // a batch does not remove what it adds
					c.Add = append(c.Add, s)
					model[key] = true
				}
			} else if c.Add == nil {
				c.Remove = append(c.Remove, s)
				delete(model, key)
			}
		}
		changeList(t, l, c)
	}
	sum := 0
	for project := int64(1); project <= 3; project++ {
		_, total := pageOfList(t, l, project, catalog.SuppressionQuery{})
		if n, err := l.SuppressionCount(project); err != nil || int(n) != total {
			t.Errorf("project %d has %d entries, a page says %d, %v", project, n, total, err)
		}
		sum += total
	}
	if err := l.Verify(); err != nil || sum != len(model) {
		t.Errorf("%d entries, want %d, %v", sum, len(model), err)
	}
}

// TestBouncesAreOneBatch: the end of a mail, the entry that it causes and the entry of the trail are stored together or
// not at all.
func TestBouncesAreOneBatch(t *testing.T) {
	t.Parallel()
	l := mailStore(t, "", Options{Logger: quiet})
	log, mail := newMail(1, 7, mailEpoch)
	if _, err := l.AcceptMail(log, mail, nil, mailEpoch); err != nil {
		t.Fatal(err)
	}
	bounce := func(status catalog.MailStatus, address string) error {
		ended := *log
		ended.Status = status
		_, err := l.AppendAuditWith([]catalog.AuditEntry{auditEntry(2)}, 0, nil, AuditWith{Ended: &ended,
			List: &catalog.SuppressionChange{ProjectID: 1, Add: []catalog.Suppression{suppression(address, catalog.SuppressHardBounce, "")}}})
		return err
	}
	if err := bounce(catalog.MailFailed, "ada@a.example"); err != nil {
		t.Fatal(err)
	}
	_, queued, err := l.QueuedMail(7)
	if got := endedMails(t, l, 0); queued || err != nil || !slices.Equal(got, []string{"1: FAILED of 1/7"}) {
		t.Errorf("%q, queued %v, %v", got, queued, err)
	}
	if err := bounce(catalog.MailExpired, "bob@a.example"); !errors.Is(err, ErrMailEnded) {
		t.Errorf("a mail that has ended: %v", err)
	}
	if rows, _ := pageOfList(t, l, 1, catalog.SuppressionQuery{}); !slices.Equal(rows, []string{"ada@a.example hard_bounce"}) || l.LastAudit() != 1 {
		t.Errorf("%q, %d entries of the trail", rows, l.LastAudit())
	}
}

// TestSuppressedMail: a mail that was stopped has an entry, an end in the index and its key, and no message.
func TestSuppressedMail(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "ledger")
	l := mailStore(t, dir, Options{Logger: quiet})
	log, mail := newMail(1, 7, mailEpoch)
	log.Status, log.ErrorCode = catalog.MailSuppressed, catalog.CodeSuppressed
	if _, err := l.AcceptMail(log, mail, nil, mailEpoch); err == nil {
		t.Error("a suppressed mail is queued")
	}
	if _, err := l.AcceptMail(log, nil, idempotencyOf(log, "key"), mailEpoch); err != nil {
		t.Fatal(err)
	}
	if there, err := l.AcceptMail(log, nil, idempotencyOf(log, "key"), mailEpoch); err != nil || there == nil || there.LogID != 7 {
		t.Errorf("%+v, %v", there, err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = mailStore(t, dir, Options{Logger: quiet})
	got, found, err := l.MailLog(1, 7)
	if err != nil || !found || !reflect.DeepEqual(got, *log) {
		t.Errorf("%+v, %v, want %+v", got, err, log)
	}
	if _, total, err := l.MailLogs(1, catalog.MailQuery{Status: catalog.MailSuppressed, Page: 1, Limit: 10}); err != nil || total != 1 {
		t.Errorf("%d suppressed ones, %v", total, err)
	}
	if got := endedMails(t, l, 0); !slices.Equal(got, []string{"1: SUPPRESSED of 1/7"}) {
		t.Errorf("%q", got)
	}
	if err := l.Verify(); err != nil {
		t.Error(err)
	}
}

// TestFormerCounts: counts of a release that had no SUPPRESSED are read, and mail with a category keeps it.
func TestFormerCounts(t *testing.T) {
	t.Parallel()
	e := encoder{}
	e.byte(mailVersion)
	for n := range uint64(formerStatuses) {
		e.uint(n)
	}
	if c, err := decodeCounts(e.b); err != nil || c != (mailCounts{0, 1, 2, 3, 4, 5, 0}) {
		t.Errorf("%v, %v", c, err)
	}
	l := mailStore(t, "", Options{Logger: quiet})
	log, mail := newMail(1, 7, mailEpoch)
	mail.Category, mail.Ignored = "news", []catalog.SuppressionReason{catalog.SuppressHardBounce, catalog.SuppressManual}
	if _, err := l.AcceptMail(log, mail, nil, mailEpoch); err != nil {
		t.Fatal(err)
	}
	if got, _, err := l.QueuedMail(7); err != nil || !reflect.DeepEqual(got, *mail) {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestKeepList: a list ends with its project, once that has been gone for a while, and not with a checkout.
func TestKeepList(t *testing.T) {
	t.Parallel()
	l := mailStore(t, "", Options{Logger: quiet})
	for project := int64(1); project <= 2; project++ {
		changeList(t, l, catalog.SuppressionChange{ProjectID: project, Add: []catalog.Suppression{suppression("a@a.example", catalog.SuppressManual, "")}})
	}
	keep := func(there bool, after time.Duration, want ...int64) {
		t.Helper()
		err := l.KeepList(1, there, mailEpoch.Add(after), time.Hour)
		if got, e := l.ListedProjects(); err != nil || e != nil || !slices.Equal(got, want) {
			t.Errorf("after %v the lists are of %d, %v, %v; want %d", after, got, err, e, want)
		}
	}
	keep(true, 0, 1, 2)
	keep(false, time.Minute, 1, 2)
	keep(false, 59*time.Minute, 1, 2)
	keep(true, time.Hour, 1, 2) // it was moved
	keep(false, 2*time.Hour, 1, 2)
	keep(false, time.Hour, 1, 2) // the clock was ahead
	keep(false, 119*time.Minute, 1, 2)
	keep(false, 2*time.Hour, 2)
	if err := errors.Join(l.KeepList(1, false, mailEpoch, time.Hour), l.Verify()); err != nil {
		t.Error(err)
	}
	if rows, total := pageOfList(t, l, 1, catalog.SuppressionQuery{}); rows != nil || total != 0 {
		t.Errorf("%q of %d", rows, total)
	}
}

// TestSalvageLists: the lists of a damaged ledger are recovered, once.
func TestSalvageLists(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "ledger")
	before := mailStore(t, dir, Options{Logger: quiet})
	changeList(t, before, catalog.SuppressionChange{ProjectID: 1, Add: []catalog.Suppression{
		suppression("Ada@a.example", catalog.SuppressHardBounce, ""), suppression("bob@a.example", catalog.SuppressUnsubscribe, "news")}})
	if err := errors.Join(before.Close(), os.Rename(dir, dir+".damaged-1")); err != nil {
		t.Fatal(err)
	}
	l := mailStore(t, dir, Options{Logger: quiet})
	for range 2 {
		v, err := l.OpenSalvage(t.Context(), dir+".damaged-1", nil, quiet)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(v.Copy(t.Context()), v.Abandon(), l.Verify()); err != nil || !v.gap.Complete {
			t.Fatal(v.gap, err)
		}
		if rows, total := pageOfList(t, l, 1, catalog.SuppressionQuery{}); total != 2 ||
			!slices.Equal(rows, []string{"Ada@a.example hard_bounce", "bob@a.example unsubscribe news"}) {
			t.Errorf("%q of %d", rows, total)
		}
	}
}

// BenchmarkLookup is what a send pays for a list of a million addresses.
func BenchmarkLookup(b *testing.B) {
	for _, size := range []int{0, 1, 1_000_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			l := mailStore(b, filepath.Join(b.TempDir(), "ledger"), Options{Logger: quiet})
			for at := 0; at < size; at += 1000 {
				c := catalog.SuppressionChange{ProjectID: 1}
				for i := at; i < min(at+1000, size); i++ {
					c.Add = append(c.Add, suppression(fmt.Sprintf("user%07d@a.example", i*7919%1_000_003), catalog.SuppressManual, ""))
				}
				changeList(b, l, c)
			}
			if err := l.db.Compact(b.Context(), []byte{prefixListed}, []byte{prefixSuppression + 1}, true); err != nil {
				b.Fatal(err)
			}
			b.ResetTimer()
			for i := range b.N {
				if _, err := l.Suppressions(1, fmt.Sprintf("user%07d@b.example", i*7919%1_000_003)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
