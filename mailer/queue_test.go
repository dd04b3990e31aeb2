package mailer_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"fingerpost/mailer"
	"fingerpost/resolver/catalog"
)

// TestKilledInEachState drops the Mailer as kill -9 would, and wants the next one to bring every mail to its end.
func TestKilledInEachState(t *testing.T) {
	t.Run("sending", func(t *testing.T) {
		k := newSink(t)
		release := make(chan struct{})
		k.answers(func(n int, _ arrival) error {
			if n == 1 {
				<-release
			}
			return nil
		})
		r := newRig(t, project("acme", k))
		cut := r.sendAsync(raw("acme"))
		until(t, "the message is there", func() bool { _, _, offered := k.count(); return offered == 1 })
		r.kill()
		id := k.onlyID(t)
		if e := r.becomes("acme", id, catalog.MailSent); !e.Uncertain || e.Attempts != 2 {
			t.Errorf("entry %+v", e)
		}
		close(release)
		<-cut
		if k.offered[0] != k.offered[1] {
			t.Error("it was sent again as something else")
		}
	})
	t.Run("sending in the background", func(t *testing.T) {
		k := newSink(t)
		release := make(chan struct{})
		k.answers(func(n int, _ arrival) error {
			if n == 1 {
				<-release
			}
			return nil
		})
		r := newRig(t, project("acme", k))
		cut := r.sendAsync(raw("acme"))
		until(t, "the message is there", func() bool { _, _, offered := k.count(); return offered == 1 })
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
		k := newSink(t)
		k.answers(func(n int, _ arrival) error {
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
		k := newSink(t)
		release := make(chan struct{})
		k.answers(func(n int, _ arrival) error {
			if n <= mailer.DefaultPerServer {
				<-release
			}
			return nil
		})
		r := newRig(t, project("acme", k))
		for range mailer.DefaultPerServer {
			r.sendAsync(raw("acme"))
		}
		until(t, "all places are taken", func() bool { _, _, offered := k.count(); return offered == mailer.DefaultPerServer })
		last := raw("acme")
		last.Subject = "the last"
		r.sendAsync(last)
		id := int64(0)
		until(t, "the last one is accepted", func() bool {
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
		k := newSink(t)
		r := newRig(t, project("acme", k))
		r.send(raw("acme"))
		r.kill()
		r.clock.forward(time.Hour)
		if c := r.Counts(); c.Waiting != 0 || len(k.mails()) != 1 {
			t.Errorf("counts %+v, %d mails", c, len(k.mails()))
		}
	})
}

// onlyID is the log id that the first mail at the sink has in its Message-ID.
func (k *sink) onlyID(t testing.TB) (id int64) {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	_, rest, _ := strings.Cut(k.offered[0].message, "Message-ID: <")
	if _, err := fmt.Sscanf(rest, "%d.", &id); err != nil {
		t.Fatal(err)
	}
	return id
}

func account(p *catalog.ProjectConfig, password string) {
	p.SMTP.Username, p.SMTP.Password = sinkUser, catalog.Secret{Source: catalog.SecretPlain, Ref: password}
}

func TestBreaker(t *testing.T) {
	k := newSink(t)
	k.password = "right"
	p := project("acme", k)
	account(&p, "right")
	r := newRig(t, p)
	// Two mails wait for their next attempt when the password goes bad.
	k.answers(func(int, arrival) error { return errGreylisted })
	waiting := []int64{r.send(raw("acme")).LogID, r.send(raw("acme")).LogID}
	for _, id := range waiting {
		r.waits("acme", id, 1)
	}
	k.set(func() { k.password, k.answer = "changed", nil })
	account(&p, "wrong") // so that the connections from before are not used
	r.declare(p)

	got := r.send(raw("acme"))
	if got.Failed == nil || got.Failed.Code != mailer.CodeAuthFailed {
		t.Fatalf("receipt %+v", got)
	}
	if e := r.entry("acme", got.LogID); e.Status != catalog.MailFailed || e.Attempts != 1 {
		t.Errorf("entry %+v", e)
	}
	_, logins, _ := k.count()

	// The breaker is open: a new mail fails at once, and nobody logs in, whatever becomes due.
	got = r.send(raw("acme"))
	if got.Failed == nil || got.Failed.Code != mailer.CodeAuthFailed || !strings.Contains(got.Failed.Message, "Not tried") {
		t.Errorf("receipt %+v, failed %v", got, got.Failed)
	}
	if e := r.entry("acme", got.LogID); e.Status != catalog.MailFailed || e.Attempts != 0 {
		t.Errorf("entry %+v", e)
	}
	r.pass(3 * time.Hour)
	r.ConfigChanged(p.Project.ID) // it has not
	r.ConfigChanged(0)
	r.pass(time.Hour)
	if _, now, _ := k.count(); now != logins {
		t.Errorf("%d logins with a config that is known to be bad", now-logins)
	}
	for _, id := range waiting {
		if e := r.entry("acme", id); e.Status != catalog.MailRetrying || e.Attempts != 1 {
			t.Errorf("a mail that waited: %+v", e)
		}
	}

	account(&p, "changed")
	r.declare(p)
	r.ConfigChanged(p.Project.ID)
	for _, id := range waiting { // without any move of the clock
		if e := r.becomes("acme", id, catalog.MailSent); e.Attempts != 2 || e.Uncertain {
			t.Errorf("entry %+v", e)
		}
	}
	if got := r.send(raw("acme")); !got.Sent {
		t.Errorf("receipt %+v", got)
	}
}

// TestBreakerInTheBackground has mail that was queued meet the bad config: its sender was told that it is queued, so it
// waits.
func TestBreakerInTheBackground(t *testing.T) {
	k := newSink(t)
	k.password = "right"
	p := project("acme", k)
	account(&p, "right")
	r := newRig(t, p)
	k.answers(func(int, arrival) error { return errGreylisted })
	first, second := r.send(raw("acme")).LogID, r.send(raw("acme")).LogID
	r.waits("acme", first, 1)
	r.waits("acme", second, 1)
	account(&p, "wrong")
	r.declare(p)
	k.answers(nil)
	r.clock.forward(10 * time.Second)
	until(t, "one of them has met the bad password", func() bool {
		return r.entry("acme", first).ErrorCode == mailer.CodeAuthFailed || r.entry("acme", second).ErrorCode == mailer.CodeAuthFailed
	})
	r.settle()
	r.pass(2 * time.Hour)
	if _, logins, _ := k.count(); logins > 4 { // two good ones before, two places for mail that waited
		t.Errorf("%d logins", logins)
	}
	for _, id := range []int64{first, second} {
		if e := r.entry("acme", id); e.Status != catalog.MailRetrying {
			t.Errorf("entry %+v", e)
		}
	}
	// Nobody tells of this change: the password is no longer wrong because the account's is.
	account(&p, "right")
	r.declare(p)
	r.clock.forward(10 * time.Second)
	for _, id := range []int64{first, second} {
		r.becomes("acme", id, catalog.MailSent)
	}
}

// TestConfigChangesUnderAnAttempt has the right password come while the wrong one is tried: the breaker must not hold on to
// what is no longer there.
func TestConfigChangesUnderAnAttempt(t *testing.T) {
	k := newSink(t)
	k.password = "right"
	k.answers(func(int, arrival) error { return errGreylisted })
	p := project("acme", k)
	account(&p, "right")
	r := newRig(t, p)
	id := r.send(raw("acme")).LogID
	r.waits("acme", id, 1)
	account(&p, "wrong")
	r.declare(p)
	k.set(func() {
		k.answer = nil
		k.login = func() {
			account(&p, "right")
			r.declare(p)
			r.ConfigChanged(p.Project.ID)
		}
	})
	if got := r.send(raw("acme")); got.Failed == nil {
		t.Fatalf("receipt %+v", got)
	}
	// It is not due yet, but goes with what was put right.
	r.becomes("acme", id, catalog.MailSent)
}

func TestBreakerIsOneProjects(t *testing.T) {
	k := newSink(t)
	k.password = "right"
	bad, good := project("bad", k), project("good", k)
	account(&bad, "wrong")
	account(&good, "right")
	r := newRig(t, bad, good)
	if got := r.send(raw("bad")); got.Failed == nil {
		t.Fatalf("receipt %+v", got)
	}
	if got := r.send(raw("good")); !got.Sent {
		t.Errorf("receipt %+v", got)
	}
}

func TestBreakerClosesWithAPassedTest(t *testing.T) {
	k := newSink(t)
	k.password = "new"
	p := project("acme", k)
	account(&p, "old")
	r := newRig(t, p)
	r.send(raw("acme"))
	k.set(func() { k.password = "old" }) // the server is put right, not the config
	if got := r.send(raw("acme")); got.Failed == nil {
		t.Fatalf("receipt %+v", got)
	}
	report, err := r.TestSMTP(t.Context(), mailer.TestRequest{Config: *p.SMTP, Password: "old", ToEmail: "me@acme.example"})
	if err != nil || !report.MailSent {
		t.Fatalf("test: %+v, %v", report, err)
	}
	if got := r.send(raw("acme")); !got.Sent {
		t.Errorf("receipt %+v, failed %v", got, got.Failed)
	}
}

// deadServer accepts connections and says nothing.
func deadServer(t testing.TB) *sink { return deadServerAt(t, "127.0.0.1:0") }

func deadServerAt(t testing.TB, address string) *sink {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var conns []net.Conn
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, c)
			mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
		for _, c := range conns {
			_ = c.Close()
		}
	})
	return &sink{listener: l}
}

// TestDeadServerDelaysNobodyElse fills all places of a dead server, and many queues behind them.
func TestDeadServerDelaysNobodyElse(t *testing.T) {
	k, dead := newSink(t), deadServer(t)
	r := newRig(t, project("dead", dead), project("good", k))
	const n = 100
	answers := make(chan result, n)
	for range n {
		go func() { answers <- <-r.sendAsync(raw("dead")) }()
	}
	until(t, "all its places are taken", func() bool { return r.Counts().Attempts == mailer.DefaultPerServer })
	if got := r.send(raw("good")); !got.Sent {
		t.Fatalf("receipt %+v", got)
	}
	// More than some do not wait for a place; for the others the budget ends. All wait in the background.
	until(t, "all are accepted", func() bool { r.clock.forward(100 * time.Millisecond); return r.Counts().Waiting == n })
	r.clock.forward(mailer.DefaultBudget)
	for range n {
		if got := <-answers; got.err != nil || !got.Queued {
			t.Fatalf("answered %+v", got)
		}
	}
	r.clock.forward(time.Minute)
	if c := r.Counts(); c.Waiting != n || c.Attempts > mailer.DefaultPerServer {
		t.Errorf("counts %+v", c)
	}
	if got := r.send(raw("good")); !got.Sent {
		t.Fatalf("receipt %+v", got)
	}
}

// TestFreshMailGoesFirst keeps a server busy with mail that waited, which leaves places for new mail.
func TestFreshMailGoesFirst(t *testing.T) {
	k := newSink(t)
	k.answers(func(int, arrival) error { return errGreylisted })
	r := newRig(t, project("acme", k))
	for range 20 {
		r.waits("acme", r.send(raw("acme")).LogID, 1)
	}
	release := make(chan struct{})
	k.answers(func(_ int, m arrival) error {
		if !strings.Contains(m.message, "Subject: new") {
			<-release
		}
		return nil
	})
	r.clock.forward(10 * time.Second)
	until(t, "mail that waited is under way", func() bool { return r.Counts().Attempts == mailer.DefaultPerServer/4 })
	for range 10 {
		s := raw("acme")
		s.Subject = "new"
		if got := r.send(s); !got.Sent {
			t.Fatalf("receipt %+v", got)
		}
	}
	until(t, "only mail that waited is under way", func() bool { return r.Counts().Attempts == mailer.DefaultPerServer/4 })
	close(release)
	until(t, "all have arrived", func() bool { return len(k.mails()) == 30 })
	if k.most > mailer.DefaultPerServer {
		t.Errorf("%d mails at a time at one server", k.most)
	}
}

func TestIdempotency(t *testing.T) {
	k := newSink(t)
	r := newRig(t, project("acme", k), project("other", k))
	s := raw("acme")
	s.IdempotencyKey, s.Request = "order-1", [32]byte{1}
	first := r.send(s)
	again := r.send(s)
	if !again.Replayed || !again.Sent || again.LogID != first.LogID || again.MessageID != first.MessageID {
		t.Errorf("first %+v, again %+v", first, again)
	}
	other := s
	other.Request = [32]byte{2}
	r.refuse(other, catalog.CodeIdempotencyMismatch)
	r.kill()
	if again := r.send(s); !again.Replayed || !again.Sent || again.LogID != first.LogID {
		t.Errorf("after a restart: %+v", again)
	}
	if len(k.mails()) != 1 {
		t.Errorf("%d mails", len(k.mails()))
	}
	// A refused request leaves the key free.
	bad := s
	bad.IdempotencyKey, bad.ToEmail = "order-2", "nonsense"
	r.refuse(bad, catalog.CodeValidation)
	bad.ToEmail = "you@peer.example"
	if got := r.send(bad); !got.Sent || got.Replayed {
		t.Errorf("receipt %+v", got)
	}
	bad.IdempotencyKey = "tab\t"
	r.refuse(bad, catalog.CodeValidation)
	bad.IdempotencyKey = strings.Repeat("x", 256)
	r.refuse(bad, catalog.CodeValidation)
	// It is kept for 24 hours, and then means nothing.
	r.clock.forward(24*time.Hour + time.Second)
	if got := r.send(s); got.Replayed || !got.Sent {
		t.Errorf("a day later: %+v", got)
	}
}

// TestIdempotencyRepeatsTheFirstAnswer also where the mail has come further since, and where it failed.
func TestIdempotencyRepeatsTheFirstAnswer(t *testing.T) {
	k := newSink(t)
	k.answers(func(n int, _ arrival) error {
		switch n {
		case 1:
			return errGreylisted
		case 2:
			return nil
		}
		return errRejected
	})
	r := newRig(t, project("acme", k))
	s := raw("acme")
	s.IdempotencyKey = "queued"
	first := r.send(s)
	r.reach(r.waits("acme", first.LogID, 1).NextAttemptAt)
	r.becomes("acme", first.LogID, catalog.MailSent)
	for range 2 {
		if again := r.send(s); !again.Queued || again.Sent || !again.Replayed || again.LogID != first.LogID {
			t.Errorf("again %+v", again)
		}
		r.kill()
	}
	s.IdempotencyKey = "failed"
	first = r.send(s)
	again := r.send(s)
	if first.Failed == nil || again.Failed == nil || again.Failed.Error() != first.Failed.Error() || !again.Replayed {
		t.Errorf("first %+v, again %+v", first.Failed, again.Failed)
	}
}

func TestIdempotencyWhileTheFirstRuns(t *testing.T) {
	k := newSink(t)
	release := make(chan struct{})
	k.answers(func(int, arrival) error { <-release; return nil })
	r := newRig(t, project("acme", k))
	s := raw("acme")
	s.IdempotencyKey = "order-1"
	first := r.sendAsync(s)
	until(t, "the message is there", func() bool { _, _, offered := k.count(); return offered == 1 })
	r.refuse(s, catalog.CodeConflict)
	other := s
	other.Request = [32]byte{2}
	r.refuse(other, catalog.CodeIdempotencyMismatch)
	r.kill() // before anybody was answered: what the entry says becomes the answer
	close(release)
	<-first
	until(t, "it was sent", func() bool { return r.send(s).Sent })
	if again := r.send(s); !again.Replayed {
		t.Errorf("again %+v", again)
	}
	if n := len(k.mails()); n != 2 || k.mails()[0] != k.mails()[1] {
		t.Errorf("%d mails", n)
	}
}

func TestIdempotencyRace(t *testing.T) {
	k := newSink(t)
	r := newRig(t, project("acme", k))
	const keys, each = 20, 8
	var wg sync.WaitGroup
	for i := range keys {
		for range each {
			wg.Go(func() {
				s := raw("acme")
				s.IdempotencyKey = fmt.Sprint("key-", i)
				got, err := r.Send(context.Background(), s)
				var e *catalog.Error
				if err != nil && (!errors.As(err, &e) || e.Code != catalog.CodeConflict) || err == nil && !got.Sent {
					t.Errorf("%+v, %v", got, err)
				}
			})
		}
	}
	wg.Wait()
	if n := len(k.mails()); n != keys {
		t.Errorf("%d mails for %d keys", n, keys)
	}
}

func TestSuspendedProjectsMailWaits(t *testing.T) {
	k := newSink(t)
	k.answers(func(int, arrival) error { return errGreylisted })
	p := project("acme", k)
	r := newRig(t, p)
	id := r.send(raw("acme")).LogID
	r.waits("acme", id, 1)
	k.answers(nil)
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

	k.answers(func(int, arrival) error { return errGreylisted })
	id = r.send(raw("acme")).LogID
	r.waits("acme", id, 1)
	p.Project.Status = catalog.StatusSuspended
	r.declare(p)
	r.pass(24 * time.Hour)
	r.becomes("acme", id, catalog.MailExpired)
}

func TestDeletedProjectsMailFails(t *testing.T) {
	k := newSink(t)
	k.answers(func(int, arrival) error { return errGreylisted })
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
	k := newSink(t)
	r := newRig(t, project("acme", k))
	r.ledger.set(func() { r.ledger.refusing = true })
	s := raw("acme")
	s.IdempotencyKey = "order-1"
	for range 2 * mailer.DefaultPerServer {
		r.refuse(s, catalog.CodeUnavailable)
	}
	if dials, _, _ := k.count(); dials != 0 {
		t.Error("a mail was sent that is nowhere stored")
	}
	r.ledger.set(func() { r.ledger.refusing = false })
	if got := r.send(s); !got.Sent || got.Replayed {
		t.Errorf("receipt %+v", got)
	}
	if dials, _, _ := k.count(); dials != 1 { // no place was lost
		t.Errorf("%d connections", dials)
	}
}

// TestOutcomeThatCannotBeStored is kept until it can be: the mail must not go out again because of it.
func TestOutcomeThatCannotBeStored(t *testing.T) {
	k := newSink(t)
	k.answers(func(int, arrival) error {
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
	if len(k.mails()) != 1 {
		t.Errorf("%d mails", len(k.mails()))
	}
}

func TestPrune(t *testing.T) {
	k := newSink(t)
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
	k := newSink(t)
	release := make(chan struct{})
	k.answers(func(int, arrival) error { <-release; return nil })
	dead := deadServer(t)
	r := newRig(t, project("acme", k), project("dead", dead))
	slow := r.sendAsync(raw("acme"))
	until(t, "the message is there", func() bool { _, _, offered := k.count(); return offered == 1 })
	mute := r.sendAsync(raw("dead"))
	until(t, "both are under way", func() bool { return r.Counts().Attempts == 2 })
	ctx, cancel := context.WithCancel(context.Background())
	drained := make(chan error, 1)
	go func() { drained <- r.Drain(ctx) }()
	until(t, "nothing more is accepted", func() bool {
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
	_ = k.server.Close()
	_ = dead.listener.Close()
	until(t, "no goroutine of the mailer is left", func() bool { return !strings.Contains(stacks(), "fingerpost/mailer.") })
}

// stacks are those of all goroutines.
func stacks() string {
	b := make([]byte, 1<<20)
	return string(b[:runtime.Stack(b, true)])
}

func TestSMTPTest(t *testing.T) {
	k := newSink(t)
	k.password = "right"
	r := newRig(t, project("acme", k))
	test := func(password string, change func(*mailer.TestRequest)) (mailer.TestReport, *catalog.Error) {
		q := mailer.TestRequest{
			Config:   catalog.SMTPConfig{Host: "127.0.0.1", Port: k.port(), Username: sinkUser, FromEmail: "hello@acme.example", FromName: "Acme"},
			Password: password, ToEmail: "me@acme.example",
		}
		if change != nil {
			change(&q)
		}
		report, err := r.TestSMTP(t.Context(), q)
		var e *catalog.Error
		if err != nil && !errors.As(err, &e) {
			t.Fatal(err)
		}
		return report, e
	}
	report, e := test("right", nil)
	if e != nil || !report.Connected || !report.MailSent || report.ToEmail != "me@acme.example" || len(report.Steps) == 0 {
		t.Errorf("report %+v, %v", report, e)
	}
	if m := k.mails(); len(m) != 1 || m[0].from != "hello@acme.example" || m[0].to != "me@acme.example" {
		t.Errorf("mails %+v", m)
	}
	if report, e := test("wrong", nil); e == nil || e.Code != mailer.CodeAuthFailed || report.Connected || report.MailSent || len(e.Problems) == 0 {
		t.Errorf("report %+v, %v", report, e)
	}
	k.set(func() { k.rcpt = func(string) error { return errNobody } })
	if report, e := test("right", nil); e == nil || e.Code != mailer.CodeRecipientRejected || !report.Connected {
		t.Errorf("report %+v, %v", report, e)
	}
	_, e = test("********", func(q *mailer.TestRequest) { q.Config.Host, q.ToEmail = "", "nonsense" })
	if e == nil || e.Code != catalog.CodeValidation || len(e.Problems) != 3 {
		t.Errorf("three fields are bad: %+v", e)
	}
	if _, total, _ := r.ledger.MailLogs(projectID("acme"), catalog.MailQuery{Page: 1, Limit: 10}); total != 0 {
		t.Error("a test is in the log")
	}
}

// manyQueued is a ledger with a long queue.
type manyQueued struct {
	mailer.Ledger
	n       int
	project int64
}

func (l manyQueued) EachQueued(f func(catalog.MailLog, catalog.QueuedMail) error) error {
	for i := range l.n {
		id := int64(i + 1)
		log := catalog.MailLog{ID: id, ProjectID: l.project, Status: catalog.MailRetrying, Attempts: 1, NextAttemptAt: noon.Add(time.Hour + time.Duration(i))}
		if err := f(log, catalog.QueuedMail{LogID: id, ProjectID: l.project, ExpiresAt: noon.Add(24 * time.Hour)}); err != nil {
			return err
		}
	}
	return nil
}

func TestMillionWaitingMailsInLittleMemory(t *testing.T) {
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	k := newSink(t)
	r := newRig(t, project("acme", k))
	before := heap()
	r.ledger.set(func() { r.ledger.dead = true })
	r.start(manyQueued{r.ledger.Ledger, 1_000_000, projectID("acme")})
	if c := r.Counts(); c.Waiting != 1_000_000 {
		t.Fatalf("counts %+v", c)
	}
	if grown := heap() - before; grown > 64<<20 {
		t.Errorf("1,000,000 mails that wait take %d MiB", grown>>20)
	} else {
		t.Logf("1,000,000 mails that wait take %d MiB", grown>>20)
	}
	if got := r.send(raw("acme")); !got.Sent {
		t.Errorf("receipt %+v", got)
	}
}

// TestQueueThatIsReadLate has a store that comes back after mail was accepted: what is from before is taken up then, and
// nothing twice.
func TestQueueThatIsReadLate(t *testing.T) {
	k := newSink(t)
	k.answers(func(int, arrival) error { return errGreylisted })
	r := newRig(t, project("acme", k))
	old := r.send(raw("acme")).LogID
	r.waits("acme", old, 1)
	r.ledger.set(func() { r.ledger.dead = true })
	r.open(&faultyLedger{Ledger: r.ledger.Ledger, refusing: true})
	if c := r.Counts(); c.Waiting != 0 {
		t.Errorf("counts %+v", c)
	}
	r.ledger.set(func() { r.ledger.refusing = false })
	young := r.send(raw("acme")).LogID
	r.waits("acme", young, 1)
	k.answers(nil)
	r.pass(10 * time.Second)
	for _, id := range []int64{old, young} {
		if e := r.becomes("acme", id, catalog.MailSent); e.Attempts != 2 {
			t.Errorf("entry %+v", e)
		}
	}
	r.pass(time.Hour)
	if c := r.Counts(); c.Waiting != 0 || len(k.mails()) != 2 {
		t.Errorf("counts %+v, %d mails", c, len(k.mails()))
	}
}

// TestFailingServersLeavePlaces has more silent servers than there are places for mail that waited.
func TestFailingServersLeavePlaces(t *testing.T) {
	k, fine := newSink(t), newSink(t)
	greylistOnce := func(n int, _ arrival) error {
		if n == 1 {
			return errGreylisted
		}
		return nil
	}
	k.answers(func(int, arrival) error { return errGreylisted })
	fine.answers(greylistOnce)
	const dead = 5
	projects := []catalog.ProjectConfig{project("good", fine)}
	for i := range dead {
		projects = append(projects, project(fmt.Sprint("dead-", i), k))
	}
	r := newRig(t, projects...)
	r.options.Retries = 4
	r.kill()
	var ids [dead]int64
	for i := range dead {
		slug := fmt.Sprint("dead-", i)
		ids[i] = r.send(raw(slug)).LogID
		r.waits(slug, ids[i], 1)
	}
	_ = k.server.Close()
	r.clock.forward(6 * time.Second)
	for i := range dead {
		r.waits(fmt.Sprint("dead-", i), ids[i], 2) // from now on they are known to fail
	}
	r.settle()
	deadServerAt(t, k.listener.Addr().String())
	r.clock.forward(40 * time.Second)
	until(t, "those that are silent have their share", func() bool { return r.Counts().Attempts == 2 })
	good := r.send(raw("good")).LogID
	r.reach(r.waits("good", good, 1).NextAttemptAt)
	r.becomes("good", good, catalog.MailSent)
	until(t, "only those that are silent are under way", func() bool { return r.Counts().Attempts == 2 })
}
