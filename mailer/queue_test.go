package mailer_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/mailer"
	"fingerpost/resolver/catalog"
)

// TestKilledInEachState drops the Mailer as kill -9 would, and expects the next one to bring every mail to its end.
func TestKilledInEachState(t *testing.T) {
	t.Parallel()
	t.Run("sending", func(t *testing.T) {
		k := testrig.NewSink(t)
		release := make(chan struct{})
		k.Answer(func(n int, _ testrig.Letter) error {
			if n == 1 {
				<-release
			}
			return nil
		})
		r := newRig(t, project("acme", k))
		cut := r.sendAsync(raw("acme"))
		testrig.Eventually(t, "the message is there", func() bool { return k.Counts().Offered == 1 })
		r.kill()
		id := onlyID(t, k)
		if e := r.becomes("acme", id, catalog.MailSent); !e.Uncertain || e.Attempts != 2 {
			t.Errorf("entry %+v", e)
		}
		close(release)
		<-cut
		if k.Offered()[0] != k.Offered()[1] {
			t.Error("it was sent again as something else")
		}
	})
	t.Run("sending in the background", func(t *testing.T) {
		k := testrig.NewSink(t)
		release := make(chan struct{})
		k.Answer(func(n int, _ testrig.Letter) error {
			if n == 1 {
				<-release
			}
			return nil
		})
		r := newRig(t, project("acme", k))
		cut := r.sendAsync(raw("acme"))
		testrig.Eventually(t, "the message is there", func() bool { return k.Counts().Offered == 1 })
		r.clock.forward(mailer.DefaultBudget)
		id := (<-cut).LogID
		if e := r.entry("acme", id); e.Status != catalog.MailRetrying {
			t.Fatalf("entry %+v", e)
		}
		r.kill()
		if e := r.becomes("acme", id, catalog.MailSent); !e.Uncertain || e.Attempts != 2 {
			t.Errorf("entry %+v", e)
		}
		close(release)
	})
	t.Run("retrying", func(t *testing.T) {
		k := testrig.NewSink(t)
		k.Answer(func(n int, _ testrig.Letter) error {
			if n == 1 {
				return errGreylisted
			}
			return nil
		})
		r := newRig(t, project("acme", k))
		id := r.send(raw("acme")).LogID
		e := r.waits("acme", id, 1)
		r.kill()
		if c := r.Counts(); c.Waiting != 1 {
			t.Errorf("counts %+v", c)
		}
		r.reach(e.NextAttemptAt.Add(-time.Millisecond))
		if e := r.entry("acme", id); e.Attempts != 1 {
			t.Errorf("it is tried too early: %+v", e)
		}
		r.clock.forward(time.Millisecond)
		if e := r.becomes("acme", id, catalog.MailSent); e.Uncertain || e.Attempts != 2 {
			t.Errorf("entry %+v", e)
		}
	})
	t.Run("pending", func(t *testing.T) {
		k := testrig.NewSink(t)
		release := make(chan struct{})
		k.Answer(func(n int, _ testrig.Letter) error {
			if n <= mailer.DefaultPerServer {
				<-release
			}
			return nil
		})
		r := newRig(t, project("acme", k))
		for range mailer.DefaultPerServer {
			r.sendAsync(raw("acme"))
		}
		testrig.Eventually(t, "all places are taken", func() bool { return k.Counts().Offered == mailer.DefaultPerServer })
		last := raw("acme")
		last.Subject = "the last"
		r.sendAsync(last)
		id := int64(0)
		testrig.Eventually(t, "the last one is accepted", func() bool {
			r.clock.forward(100 * time.Millisecond)
			rows, _, _ := r.ledger.MailLogs(projectID("acme"), catalog.MailQuery{Page: 1, Limit: 100})
			for _, e := range rows {
				if e.Subject == "the last" {
					id = e.ID
				}
			}
			return id != 0
		})
		if e := r.entry("acme", id); e.Status != catalog.MailPending || e.Attempts != 0 {
			t.Errorf("entry %+v", e)
		}
		r.kill()
		if e := r.becomes("acme", id, catalog.MailSent); e.Uncertain || e.Attempts != 1 {
			t.Errorf("entry %+v", e)
		}
		close(release)
	})
	t.Run("ended", func(t *testing.T) {
		k := testrig.NewSink(t)
		r := newRig(t, project("acme", k))
		r.send(raw("acme"))
		r.kill()
		r.clock.forward(time.Hour)
		if c := r.Counts(); c.Waiting != 0 || len(k.Letters()) != 1 {
			t.Errorf("counts %+v, %d mails", c, len(k.Letters()))
		}
	})
}

// onlyID returns the log id in the Message-ID of the first mail at the sink.
func onlyID(t testing.TB, k *testrig.Sink) (id int64) {
	t.Helper()
	_, rest, _ := strings.Cut(k.Offered()[0].Text, "Message-ID: <")
	if _, err := fmt.Sscanf(rest, "%d.", &id); err != nil {
		t.Fatal(err)
	}
	return id
}

func TestSuspendedProjectsMailWaits(t *testing.T) {
	t.Parallel()
	k := testrig.NewSink(t)
	k.Answer(func(int, testrig.Letter) error { return errGreylisted })
	p := project("acme", k)
	r := newRig(t, p)
	id := r.send(raw("acme")).LogID
	r.waits("acme", id, 1)
	k.Answer(nil)
	p.Project.Status = catalog.StatusSuspended
	r.declare(p)
	r.pass(3 * time.Hour)
	if e := r.entry("acme", id); e.Attempts != 1 || e.Status != catalog.MailRetrying {
		t.Errorf("entry %+v", e)
	}
	p.Project.Status = catalog.StatusActive
	smtp := p.SMTP
	p.SMTP = nil
	r.declare(p)
	r.pass(3 * time.Hour)
	if e := r.entry("acme", id); e.Attempts != 1 || e.Status != catalog.MailRetrying {
		t.Errorf("entry %+v", e)
	}
	p.SMTP = smtp
	r.declare(p)
	r.ConfigChanged(0)
	r.becomes("acme", id, catalog.MailSent)

	k.Answer(func(int, testrig.Letter) error { return errGreylisted })
	id = r.send(raw("acme")).LogID
	r.waits("acme", id, 1)
	p.Project.Status = catalog.StatusSuspended
	r.declare(p)
	r.pass(24 * time.Hour)
	r.becomes("acme", id, catalog.MailExpired)
}

func TestDeletedProjectsMailFails(t *testing.T) {
	t.Parallel()
	k := testrig.NewSink(t)
	k.Answer(func(int, testrig.Letter) error { return errGreylisted })
	p := project("acme", k)
	r := newRig(t, p)
	first := r.send(raw("acme")).LogID
	next := r.waits("acme", first, 1).NextAttemptAt
	r.apply(catalog.FileChange{Path: "acme.hcl"})
	r.reach(next)
	r.settle()
	r.pass(30 * time.Second)
	if e := r.entry("acme", first); e.Status != catalog.MailRetrying {
		t.Errorf("a project may be gone for a moment: %+v", e)
	}
	r.declare(p) // a git checkout, say
	r.ConfigChanged(p.Project.ID)
	next = r.waits("acme", first, 2).NextAttemptAt
	r.apply(catalog.FileChange{Path: "acme.hcl"})
	r.reach(next)
	r.settle()
	r.pass(70 * time.Second)
	r.becomes("acme", first, catalog.MailFailed)
	if e := r.entry("acme", first); e.Status != catalog.MailFailed || e.ErrorCode != catalog.CodeNotFound || !strings.Contains(e.ErrorMessage, "deleted") {
		t.Errorf("entry %+v", e)
	}
}

func TestStoreThatRefusesAcceptsNothing(t *testing.T) {
	t.Parallel()
	k := testrig.NewSink(t)
	r := newRig(t, project("acme", k))
	r.ledger.set(func() { r.ledger.refusing = true })
	s := raw("acme")
	s.IdempotencyKey = "order-1"
	for range 2 * mailer.DefaultPerServer {
		r.refuse(s, catalog.CodeUnavailable)
	}
	if dials := k.Counts().Dials; dials != 0 {
		t.Error("a mail was sent that is nowhere stored")
	}
	r.ledger.set(func() { r.ledger.refusing = false })
	if got := r.send(s); !got.Sent || got.Replayed {
		t.Errorf("receipt %+v", got)
	}
	if dials := k.Counts().Dials; dials != 1 { // no place was lost
		t.Errorf("%d connections", dials)
	}
}

// TestOutcomeThatCannotBeStored is kept until it can be: the mail must not go out again because of it.
func TestOutcomeThatCannotBeStored(t *testing.T) {
	t.Parallel()
	k := testrig.NewSink(t)
	k.Answer(func(int, testrig.Letter) error {
		return nil
	})
	r := newRig(t, project("acme", k))
	r.ledger.set(func() {
		r.ledger.before = func(*catalog.MailLog) { r.ledger.set(func() { r.ledger.refusing = true }) }
	})
	got := r.send(raw("acme"))
	if !got.Sent {
		t.Fatalf("receipt %+v", got)
	}
	if e := r.entry("acme", got.LogID); e.Status != catalog.MailSending {
		t.Errorf("entry %+v", e)
	}
	r.clock.forward(time.Minute)
	r.ledger.set(func() { r.ledger.before, r.ledger.refusing = nil, false })
	r.clock.forward(5 * time.Second)
	r.becomes("acme", got.LogID, catalog.MailSent)
	if len(k.Letters()) != 1 {
		t.Errorf("%d mails", len(k.Letters()))
	}
}

func TestPrune(t *testing.T) {
	t.Parallel()
	k := testrig.NewSink(t)
	r := newRig(t, project("acme", k))
	r.options.Retention = 2 * 24 * time.Hour
	r.kill()
	old := r.send(raw("acme")).LogID
	r.clock.forward(r.options.Retention - time.Hour)
	young := r.send(raw("acme")).LogID
	r.entry("acme", old)
	r.clock.forward(2*time.Hour + time.Minute)
	if _, found, err := r.ledger.MailLog(projectID("acme"), old); found || err != nil {
		t.Errorf("an entry of more than two days is still there: %v", err)
	}
	r.entry("acme", young)
}

func TestDrainWaitsAndThenCutsOff(t *testing.T) {
	t.Parallel()
	k := testrig.NewSink(t)
	release := make(chan struct{})
	k.Answer(func(int, testrig.Letter) error { <-release; return nil })
	dead := deadServer(t)
	r := newRig(t, project("acme", k), project("dead", dead))
	slow := r.sendAsync(raw("acme"))
	testrig.Eventually(t, "the message is there", func() bool { return k.Counts().Offered == 1 })
	mute := r.sendAsync(raw("dead"))
	testrig.Eventually(t, "both are under way", func() bool { return r.Counts().Attempts == 2 })
	ctx, cancel := context.WithCancel(context.Background())
	drained := make(chan error, 1)
	go func() { drained <- r.Drain(ctx) }()
	testrig.Eventually(t, "nothing more is accepted", func() bool {
		_, err := r.TestSMTP(t.Context(), mailer.TestRequest{}) // invalid, if it came to that
		var e *catalog.Error
		return errors.As(err, &e) && e.Code == catalog.CodeUnavailable
	})
	close(release) // in time
	if got := <-slow; !got.Sent {
		t.Errorf("answered %+v", got)
	}
	cancel()
	got := <-mute
	if got.err != nil || !got.Queued {
		t.Errorf("answered %+v", got)
	}
	if err := <-drained; err != nil {
		t.Error(err)
	}
	if e := r.entry("dead", got.LogID); e.Status != catalog.MailRetrying || e.Uncertain || e.Attempts != 0 || e.NextAttemptAt.After(r.clock.Now()) {
		t.Errorf("a mail that was cut off before the server had it: %+v", e)
	}
	if n := r.clock.armed(); n != 0 {
		t.Errorf("%d timers are left", n)
	}
	r.transport.Close()
	k.Down()
	_ = dead.Close()
	testrig.Eventually(t, "no goroutine of the mailer is left", func() bool { return !strings.Contains(stacks(), "fingerpost/mailer.") })
}

// stacks returns the stacks of all goroutines.
func stacks() string {
	b := make([]byte, 1<<20)
	return string(b[:runtime.Stack(b, true)])
}

// TestOldestMail: the oldest mail that waits is found in the background, whatever the number of mails and of those who
// ask.
func TestOldestMail(t *testing.T) {
	t.Parallel()
	k := testrig.NewSink(t)
	k.Answer(func(int, testrig.Letter) error { return errGreylisted })
	r := newRig(t, project("acme", k), project("other", k))
	first := r.send(raw("acme")).LogID
	r.waits("acme", first, 1)
	second := r.send(raw("other")).LogID
	r.waits("other", second, 1)
	if oldest := r.Counts().Oldest; oldest != 0 {
		t.Errorf("the oldest mail is %d before anybody has looked: who asks has paid for it", oldest)
	}
	until := func(want, stopped int64) {
		t.Helper()
		testrig.Eventually(t, "the oldest mail is found", func() bool {
			r.clock.forward(20 * time.Second)
			c := r.Counts()
			return c.Oldest == want && c.StoppedProjects == stopped && c.StoppedMails == stopped
		})
	}
	until(first, 0)
	k.Answer(func(_ int, l testrig.Letter) error {
		if l.From == "hello@acme.example" {
			return nil
		}
		return errGreylisted
	})
	until(second, 0)
	p := project("other", k)
	p.Project.Status = catalog.StatusSuspended
	r.declare(p)
	until(0, 1) // it waits for people, not for its turn
	r.declare(project("other", k))
	r.ConfigChanged(0)
	until(second, 0)
	k.Answer(nil)
	until(0, 0)
}
