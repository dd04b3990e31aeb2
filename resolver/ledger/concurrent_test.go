package ledger

import (
	"errors"
	"sync"
	"testing"
	"time"

	"fingerpost/resolver/catalog"
)

// TestConcurrentWrites starts many writes at once. Each gets the result that it would get alone, including refused
// ones, those about the same mail or key, and those of the same project.
func TestConcurrentWrites(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := mailStore(t, dir, Options{})
	at := func(n int64) time.Time { return mailEpoch.Add(time.Duration(n) * time.Second) }
	accept := func(project, id int64, key string) (*catalog.Idempotency, error) {
		log, mail := newMail(project, id, at(id))
		if key == "" {
			return s.AcceptMail(log, mail, nil, mailEpoch)
		}
		return s.AcceptMail(log, mail, idempotencyOf(log, key), mailEpoch)
	}
	if _, err := accept(1, 1, ""); err != nil {
		t.Fatal(err)
	}
	before := s.mail.number

	var all sync.WaitGroup
	var mu sync.Mutex
	repeats := 0
	run := func(what string, want error, f func() error) {
		all.Go(func() {
			if err := f(); !errors.Is(err, want) || want == nil && err != nil {
				t.Errorf("%s: %v, want %v", what, err, want)
			}
		})
	}
	const mails = 30
	s.mail.turn <- struct{}{} // blocks all writes until it is returned
	for n := range int64(mails) {
		run("accept", nil, func() error { _, err := accept(1+n%2, 100+n, ""); return err })
	}
	const sameKey = 5
	for n := range int64(sameKey) {
		run("accept with the same key", nil, func() error {
			there, err := accept(3, 200+n, "key")
			mu.Lock()
			defer mu.Unlock()
			if there != nil {
				repeats++
			}
			return err
		})
	}
	run("end", nil, func() error {
		log, _ := newMail(1, 1, at(1))
		log.Status = catalog.MailSent
		return s.UpdateMail(log)
	})
	run("update what is not there", ErrNoMail, func() error {
		log, _ := newMail(1, 999, at(999))
		log.Status = catalog.MailRetrying
		return s.UpdateMail(log)
	})
	<-s.mail.turn
	all.Wait()

	if repeats != sameKey-1 {
		t.Errorf("of %d mails with the same key %d were told of the first, want %d", sameKey, repeats, sameKey-1)
	}
	check := func(s *Ledger) {
		t.Helper()
		checkCounts(t, s)
		for project, want := range map[int64]int{1: mails/2 + 1, 2: mails / 2, 3: 1} {
			page, total, err := s.MailLogs(project, catalog.MailQuery{Page: 1, Limit: 100})
			if err != nil || total != want || len(page) != want {
				t.Errorf("project %d has %d mails, %d on the page, %v; want %d", project, total, len(page), err, want)
			}
		}
		if n := s.mail.number - before; n != mails+1+1 {
			t.Errorf("%d writes are counted, want %d", n, mails+2)
		}
		for id, want := range map[int64]bool{1: false, 100: true, 129: true, 999: false} {
			if _, there, err := s.QueuedMail(id); err != nil || there != want {
				t.Errorf("mail %d is queued: %v, %v", id, there, err)
			}
		}
	}
	check(s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	check(again)
	if n := again.MailMissing(); n != 0 {
		t.Errorf("%d writes are missing", n)
	}
}
