package ledger

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"fingerpost/resolver/catalog"
)

// fillProjects makes logs of projects 1 to projects in turn, a millisecond between entries, without syncs.
func fillProjects(t testing.TB, l *Ledger, projects, entries int) {
	t.Helper()
	for i := range entries {
		log, _ := newMail(int64(1+i%projects), int64(1+i), mailEpoch.Add(time.Duration(i)*time.Millisecond))
		log.Status, log.NextAttemptAt = catalog.MailSent, time.Time{}
		if _, err := (&Salvage{to: l}).putMail(log, nil); err != nil {
			t.Fatal(err)
		}
	}
}

// A search that ends at a bound says where, and a search from there goes on: every entry is found once.
func TestMailAcrossGoesOn(t *testing.T) {
	t.Parallel()
	const projects, entries = 300, 25_000
	l := mailStore(t, "", Options{})
	fillProjects(t, l, projects, entries)
	all := func(of []int64, q catalog.MailQuery) (calls int, ids []int64) {
		q.Limit = 100
		for {
			calls++
			var found catalog.MailFound
			for q.Page = 1; ; q.Page++ {
				var err error
				if found, err = l.MailAcross(of, q); err != nil {
					t.Fatal(err)
				}
				for _, log := range found.Entries {
					ids = append(ids, log.ID)
				}
				if q.Page*q.Limit >= found.Total {
					break
				}
			}
			if found.SearchedTo.IsZero() {
				return calls, ids
			}
			q.To = found.SearchedTo
		}
	}
	check := func(of []int64, q catalog.MailQuery, calls int, matches func(id int64) bool) {
		t.Helper()
		got, ids := all(of, q)
		want := int64(entries)
		for _, id := range ids {
			for want > 0 && !matches(want) {
				want--
			}
			if id != want {
				t.Fatalf("%+v: entry %d, want %d", q, id, want)
			}
			want--
		}
		for ; want > 0; want-- {
			if matches(want) {
				t.Fatalf("%+v: entry %d is missing", q, want)
			}
		}
		if got != calls {
			t.Errorf("%+v: %d calls, want %d", q, got, calls)
		}
	}
	check(nil, catalog.MailQuery{}, entries/MaxAcross, func(int64) bool { return true })
	check(nil, catalog.MailQuery{Text: "<24000@"}, 6, func(id int64) bool { return id == 24_000 })
	check(nil, catalog.MailQuery{Text: "<7@"}, 6, func(id int64) bool { return id == 7 }) // in the second part alone
	check([]int64{7, 30}, catalog.MailQuery{}, 1, func(id int64) bool { return id%projects == 7 || id%projects == 30 })
	check([]int64{}, catalog.MailQuery{}, 1, func(int64) bool { return false })
	check([]int64{9999}, catalog.MailQuery{}, 1, func(int64) bool { return false })
}

// A mail is found by its Message-ID in one call, however much newer mail there is.
func TestMailByMessageID(t *testing.T) {
	t.Parallel()
	const projects, entries = 300, 25_000
	l := mailStore(t, "", Options{})
	var ids []int64
	for i := range entries {
		at := mailEpoch.Add(time.Duration(i) * 100 * time.Millisecond)
		log, _ := newMail(int64(1+i%projects), at.Sub(MailIDEpoch).Microseconds(), at)
		log.Status, log.NextAttemptAt, log.MessageID = catalog.MailSent, time.Time{}, fmt.Sprintf("<%d.0a@acme.example>", log.ID)
		if _, err := (&Salvage{to: l}).putMail(log, nil); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, log.ID)
	}
	f := func(of []int64, messageID string, want ...int64) {
		t.Helper()
		found, err := l.MailAcross(of, catalog.MailQuery{MessageID: messageID, Page: 1, Limit: 10})
		var got []int64
		for _, log := range found.Entries {
			got = append(got, log.ID)
		}
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) || !found.SearchedTo.IsZero() {
			t.Errorf("%s of %v: %v, %v, to %v", messageID, of, got, err, found.SearchedTo)
		}
	}
	oldest := fmt.Sprintf("<%d.0a@acme.example>", ids[1])
	f(nil, oldest, ids[1])
	f([]int64{2}, oldest, ids[1])
	f([]int64{3}, oldest)
	f(nil, fmt.Sprintf("<%d.0b@acme.example>", ids[1]))
	f(nil, "<9999999999999999.0a@acme.example>")
	page, total, err := l.MailLogs(2, catalog.MailQuery{MessageID: oldest, Page: 1, Limit: 10})
	if err != nil || total != 1 || page[0].ID != ids[1] {
		t.Errorf("of one project: %d, %+v, %v", total, page, err)
	}
}

// The positions in memory follow what is written, forgotten and pruned, also while others read.
func TestMailAcrossNewest(t *testing.T) {
	t.Parallel()
	l := mailStore(t, "", Options{})
	newest := func(want ...int64) {
		t.Helper()
		for range 2 { // the second call has what the first one learned
			for _, of := range [][]int64{nil, {1, 2, 3}} {
				found, err := l.MailAcross(of, catalog.MailQuery{Page: 1, Limit: 10})
				var ids []int64
				for _, log := range found.Entries {
					ids = append(ids, log.ID)
				}
				if err != nil || fmt.Sprint(ids) != fmt.Sprint(want) {
					t.Fatalf("of %v: %v, %v, want %v", of, ids, err, want)
				}
			}
		}
	}
	accept := func(project, id int64) {
		t.Helper()
		log, mail := newMail(project, id, mailEpoch.Add(time.Duration(id)*time.Second))
		if _, err := l.AcceptMail(log, mail, nil, mailEpoch); err != nil {
			t.Fatal(err)
		}
	}
	newest()
	accept(1, 10)
	accept(2, 20)
	newest(20, 10)
	accept(1, 30)
	newest(30, 20, 10)
	if err := l.ForgetMail([]int64{20, 30}); err != nil {
		t.Fatal(err)
	}
	newest(10)
	accept(2, 25)
	newest(25, 10)
	var wg sync.WaitGroup
	for project := int64(1); project <= 3; project++ {
		wg.Go(func() {
			for i := int64(0); i < 50; i++ {
				accept(project, 100+10*i+project)
				found, err := l.MailAcross(nil, catalog.MailQuery{Page: 1, Limit: 3})
				if err != nil || len(found.Entries) == 0 || found.Entries[0].ID < 100+10*i+project {
					t.Errorf("after %d the newest is %+v, %v", 100+10*i+project, found.Entries, err)
				}
			}
		})
	}
	wg.Wait()
	newest(593, 592, 591, 583, 582, 581, 573, 572, 571, 563)
}

func BenchmarkMailAcross(b *testing.B) {
	l := mailStore(b, b.TempDir(), Options{})
	const projects = 100_000
	fillProjects(b, l, projects, 3*projects)
	began := time.Now()
	if err := l.fillNewest(); err != nil {
		b.Fatal(err)
	}
	b.Logf("the first call: %v more", time.Since(began))
	for _, c := range []struct {
		name string
		of   []int64
		q    catalog.MailQuery
	}{
		{"all", nil, catalog.MailQuery{}}, {"three", []int64{5, 50_000, 99_000}, catalog.MailQuery{}},
		{"nothing", nil, catalog.MailQuery{Text: "no such text"}},
		{"address", nil, catalog.MailQuery{ToEmail: "user3@to.example"}},
	} {
		c.q.Page, c.q.Limit = 1, 50
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := l.MailAcross(c.of, c.q); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
