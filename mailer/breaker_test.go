package mailer_test

import (
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/mailer"
	"fingerpost/mailer/smtp"
	"fingerpost/resolver/catalog"
)

func account(p *catalog.ProjectConfig, password string) {
	p.SMTP.Username, p.SMTP.Password = sinkUser, catalog.Secret{Source: catalog.SecretPlain, Ref: password}
}

func TestBreaker(t *testing.T) {
	t.Parallel()
	k := testrig.NewSink(t)
	requireLogin(k, "right")
	p := project("acme", k)
	account(&p, "right")
	r := newRig(t, p)
	// Two mails wait for their next attempt when the password goes bad.
	k.Answer(func(int, testrig.Letter) error { return errGreylisted })
	waiting := []int64{r.send(raw("acme")).LogID, r.send(raw("acme")).LogID}
	for _, id := range waiting {
		r.waits("acme", id, 1)
	}
	k.Answer(nil)
	requireLogin(k, "changed")
	account(&p, "wrong") // so that the connections from before are not used
	r.declare(p)

	got := r.send(raw("acme"))
	if got.Failed == nil || got.Failed.Code != smtp.CodeAuthFailed {
		t.Fatalf("receipt %+v", got)
	}
	if e := r.entry("acme", got.LogID); e.Status != catalog.MailFailed || e.Attempts != 1 {
		t.Errorf("entry %+v", e)
	}
	logins := k.Counts().Logins

	// The breaker is open: a new mail waits with the others, and no attempt logs in, whatever becomes due.
	got = r.send(raw("acme"))
	if !got.Queued || got.Failed != nil {
		t.Errorf("receipt %+v, failed %v", got, got.Failed)
	}
	late := got.LogID
	e := r.entry("acme", late)
	if e.Status != catalog.MailRetrying || e.Attempts != 0 || e.NextAttemptAt.IsZero() || e.ErrorCode != smtp.CodeAuthFailed || !strings.HasPrefix(e.ErrorMessage, "Not tried, ") {
		t.Errorf("entry %+v", e)
	}
	r.pass(3 * time.Hour)
	r.ConfigChanged(p.Project.ID) // it has not
	r.ConfigChanged(0)
	r.pass(time.Hour)
	if now := k.Counts().Logins; now != logins {
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
	for _, id := range append(waiting, late) { // without any move of the clock
		attempts := 2
		if id == late {
			attempts = 1
		}
		if e := r.becomes("acme", id, catalog.MailSent); e.Attempts != attempts || e.Uncertain || e.ErrorCode != "" {
			t.Errorf("entry %+v", e)
		}
	}
	if got := r.send(raw("acme")); !got.Sent {
		t.Errorf("receipt %+v", got)
	}
}

// TestBreakerOutlivesMail has new mail wait for a config that is never corrected: the next process, which starts with a
// closed breaker, tries it once, and it EXPIRES with the code at its time.
func TestBreakerOutlivesMail(t *testing.T) {
	t.Parallel()
	k := testrig.NewSink(t)
	requireLogin(k, "right")
	p := project("acme", k)
	account(&p, "wrong")
	r := newRig(t, p)
	r.send(raw("acme"))
	got := r.send(raw("acme"))
	if !got.Queued {
		t.Fatalf("receipt %+v", got)
	}
	before, since := k.Counts().Logins, r.Stopped()[0].Since
	r.clock.forward(time.Hour)
	r.kill()
	r.settle()
	testrig.Eventually(t, "it is tried", func() bool { return r.entry("acme", got.LogID).Attempts == 1 })
	if stopped := r.Stopped(); len(stopped) != 1 || stopped[0].Since.Sub(since).Abs() > time.Second {
		t.Errorf("stopped since %v in the next process, %v before", stopped, since)
	}
	r.pass(25 * time.Hour)
	if e := r.becomes("acme", got.LogID, catalog.MailExpired); e.Attempts != 1 || e.ErrorCode != smtp.CodeAuthFailed {
		t.Errorf("entry %+v", e)
	}
	if logins := k.Counts().Logins; logins != before+1 {
		t.Errorf("%d logins, want %d", logins, before+1)
	}
}

// TestBreakerInTheBackground has queued mail meet the bad config: its sender was answered that it is queued, so it
// waits.
func TestBreakerInTheBackground(t *testing.T) {
	t.Parallel()
	k := testrig.NewSink(t)
	requireLogin(k, "right")
	p := project("acme", k)
	account(&p, "right")
	r := newRig(t, p)
	k.Answer(func(int, testrig.Letter) error { return errGreylisted })
	first, second := r.send(raw("acme")).LogID, r.send(raw("acme")).LogID
	r.waits("acme", first, 1)
	r.waits("acme", second, 1)
	account(&p, "wrong")
	r.declare(p)
	k.Answer(nil)
	r.clock.forward(10 * time.Second)
	testrig.Eventually(t, "one of them has met the bad password", func() bool {
		return r.entry("acme", first).ErrorCode == smtp.CodeAuthFailed || r.entry("acme", second).ErrorCode == smtp.CodeAuthFailed
	})
	r.settle()
	r.pass(2 * time.Hour)
	if logins := k.Counts().Logins; logins > 4 { // two good ones before, two places for mail that waited
		t.Errorf("%d logins", logins)
	}
	for _, id := range []int64{first, second} {
		if e := r.entry("acme", id); e.Status != catalog.MailRetrying {
			t.Errorf("entry %+v", e)
		}
	}
	// No event reports this change: the account's password has changed, so the config's is right now.
	account(&p, "right")
	r.declare(p)
	r.clock.forward(10 * time.Second)
	for _, id := range []int64{first, second} {
		r.becomes("acme", id, catalog.MailSent)
	}
}

// TestConfigChangesUnderAnAttempt corrects the password while an attempt with the wrong one runs: the breaker must not
// stay open for the former config.
func TestConfigChangesUnderAnAttempt(t *testing.T) {
	t.Parallel()
	k := testrig.NewSink(t)
	requireLogin(k, "right")
	k.Answer(func(int, testrig.Letter) error { return errGreylisted })
	p := project("acme", k)
	account(&p, "right")
	r := newRig(t, p)
	id := r.send(raw("acme")).LogID
	r.waits("acme", id, 1)
	account(&p, "wrong")
	r.declare(p)
	k.Set(func(rules *testrig.SinkRules) {
		rules.Answer = nil
		rules.Login = func() {
			account(&p, "right")
			r.declare(p)
			r.ConfigChanged(p.Project.ID)
		}
	})
	if got := r.send(raw("acme")); got.Failed == nil {
		t.Fatalf("receipt %+v", got)
	}
	// It is not due yet, but is sent with the corrected config.
	r.becomes("acme", id, catalog.MailSent)
}

// TestBreakerOpensBeforeTheAnswer starts the next mail at the last moment before the first sender gets the answer about
// the bad config. It finds the breaker open, so no attempt with that config follows the answer.
func TestBreakerOpensBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	k := testrig.NewSink(t)
	requireLogin(k, "right")
	p := project("acme", k)
	account(&p, "wrong")
	r := newRig(t, p)
	var next result
	var once sync.Once
	r.ledger.set(func() {
		r.ledger.before = func(e *catalog.MailLog) {
			if e.Status == catalog.MailFailed {
				once.Do(func() { next.Receipt, next.err = r.Send(t.Context(), raw("acme")) })
			}
		}
	})
	if got := r.send(raw("acme")); got.Failed == nil {
		t.Fatalf("receipt %+v", got)
	}
	if next.err != nil || !next.Queued {
		t.Errorf("the next mail: %+v, %v, want it to be queued", next.Receipt, next.err)
	}
	if logins := k.Counts().Logins; logins != 1 {
		t.Errorf("%d logins with a config that is known to be bad, want the one that showed it", logins)
	}
}

// TestSenderPutRight has mail wait for a config whose sender the server refuses. Another sender lets new mail pass; the
// waiting mail contains the old one, which no config can change: it fails at once, and is not tried for a day.
func TestSenderPutRight(t *testing.T) {
	t.Parallel()
	k := testrig.NewSink(t)
	refuse := func(code int) {
		k.Set(func(r *testrig.SinkRules) {
			r.Sender = func(from string) error {
				if from == "hello@acme.example" {
					return testrig.Refusal(code, code/100, 1, 8, "no such sender")
				}
				return nil
			}
		})
	}
	refuse(550)
	p := project("acme", k)
	r := newRig(t, p)
	if got := r.send(raw("acme")); got.Failed == nil || got.Failed.Code != smtp.CodeSenderRejected {
		t.Fatalf("receipt %+v", got)
	}
	waiting := r.send(raw("acme"))
	if !waiting.Queued {
		t.Fatalf("receipt %+v", waiting)
	}
	refuse(450) // not for good
	p.SMTP.FromEmail = "shop@acme.example"
	r.declare(p)
	r.ConfigChanged(p.Project.ID)
	r.waits("acme", waiting.LogID, 1)
	refuse(550)
	r.reach(r.entry("acme", waiting.LogID).NextAttemptAt)
	if e := r.becomes("acme", waiting.LogID, catalog.MailFailed); e.Attempts != 2 || e.ErrorCode != smtp.CodeSenderRejected {
		t.Errorf("entry %+v", e)
	}
	if got := r.send(raw("acme")); !got.Sent {
		t.Errorf("a mail with the new sender: %+v, %v", got, got.Failed)
	}
}

func TestBreakerIsOneProjects(t *testing.T) {
	t.Parallel()
	k := testrig.NewSink(t)
	requireLogin(k, "right")
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

// putRight returns a project with an open breaker, whose server was repaired while the config stayed the same.
func putRight(t *testing.T) (*rig, catalog.ProjectConfig) {
	t.Helper()
	k := testrig.NewSink(t)
	requireLogin(k, "new")
	p := project("acme", k)
	account(&p, "old")
	r := newRig(t, p)
	r.send(raw("acme"))
	requireLogin(k, "old")
	return r, p
}

func TestBreakerClosesWithAPassedTest(t *testing.T) {
	t.Parallel()
	r, p := putRight(t)
	waits := r.send(raw("acme"))
	if !waits.Queued {
		t.Fatalf("receipt %+v", waits)
	}
	config := *p.SMTP
	config.Password = catalog.Secret{Source: catalog.SecretPlain, Ref: "old"}
	report, err := r.TestSMTP(t.Context(), mailer.TestRequest{Config: config, ToEmail: "me@acme.example"})
	if err != nil || !report.MailSent {
		t.Fatalf("test: %+v, %v", report, err)
	}
	r.becomes("acme", waits.LogID, catalog.MailSent)
	if got := r.send(raw("acme")); !got.Sent {
		t.Errorf("receipt %+v, failed %v", got, got.Failed)
	}
}

func TestBreakerClosesWhenToldTo(t *testing.T) {
	t.Parallel()
	r, _ := putRight(t)
	r.ConfigChanged(0)
	waits := r.send(raw("acme"))
	if !waits.Queued {
		t.Fatalf("receipt %+v", waits)
	}
	r.TryAgain()
	r.becomes("acme", waits.LogID, catalog.MailSent)
	if got := r.send(raw("acme")); !got.Sent {
		t.Errorf("receipt %+v, failed %v", got, got.Failed)
	}
}

// A silent server accepts connections and never answers.
type silent struct{ net.Listener }

func (s silent) Port() int { return s.Addr().(*net.TCPAddr).Port }

// deadServer accepts connections and never answers.
func deadServer(t testing.TB) silent { return deadServerAt(t, "127.0.0.1:0") }

func deadServerAt(t testing.TB, address string) silent {
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
	return silent{l}
}

// TestDeadServerDelaysNobodyElse uses all places of a dead server, with many queues behind them.
func TestDeadServerDelaysNobodyElse(t *testing.T) {
	t.Parallel()
	k, dead := testrig.NewSink(t), deadServer(t)
	r := newRig(t, project("dead", dead), project("good", k))
	const n = 100
	answers := make(chan result, n)
	for range n {
		go func() { answers <- <-r.sendAsync(raw("dead")) }()
	}
	testrig.Eventually(t, "all its places are taken", func() bool { return r.Counts().Attempts == mailer.DefaultPerServer })
	if got := r.send(raw("good")); !got.Sent {
		t.Fatalf("receipt %+v", got)
	}
	// Sends beyond a number do not wait for a place; for the others the budget ends. All wait in the background.
	testrig.Eventually(t, "all are accepted", func() bool { r.clock.forward(100 * time.Millisecond); return r.Counts().Waiting == n })
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

// TestFreshMailGoesFirst keeps a server busy with queued mail, which leaves places for new mail.
func TestFreshMailGoesFirst(t *testing.T) {
	t.Parallel()
	k := testrig.NewSink(t)
	k.Answer(func(int, testrig.Letter) error { return errGreylisted })
	r := newRig(t, project("acme", k))
	for range 20 {
		r.waits("acme", r.send(raw("acme")).LogID, 1)
	}
	release := make(chan struct{})
	k.Answer(func(_ int, m testrig.Letter) error {
		if !strings.Contains(m.Text, "Subject: new") {
			<-release
		}
		return nil
	})
	r.clock.forward(10 * time.Second)
	testrig.Eventually(t, "mail that waited is under way", func() bool { return r.Counts().Attempts == mailer.DefaultPerServer/4 })
	for range 10 {
		s := raw("acme")
		s.Subject = "new"
		if got := r.send(s); !got.Sent {
			t.Fatalf("receipt %+v", got)
		}
	}
	testrig.Eventually(t, "only mail that waited is under way", func() bool { return r.Counts().Attempts == mailer.DefaultPerServer/4 })
	close(release)
	testrig.Eventually(t, "all have arrived", func() bool { return len(k.Letters()) == 30 })
	if k.Counts().Most > mailer.DefaultPerServer {
		t.Errorf("%d mails at a time at one server", k.Counts().Most)
	}
}
