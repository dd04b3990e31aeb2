package mailer_test

import (
	"bytes"
	"log/slog"
	"net/mail"
	"reflect"
	"strings"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/mailer"
	"fingerpost/mailer/smtp"
	"fingerpost/resolver/catalog"
)

func TestSendIsSentAndLogged(t *testing.T) {
	t.Parallel()
	k := testrig.NewSink(t)
	p := project("acme", k)
	template(&p, "WELCOME", "", true)
	r := newRig(t, p)
	got := r.send(mailer.Send{
		Domain: "acme.example", ToEmail: "you@peer.example", TemplateCode: "WELCOME", ServiceName: "auth",
		Variables: map[string]string{"userName": "Ann & Bob"},
	})
	if !got.Sent || got.Queued || got.Failed != nil || got.Replayed || got.LogID == 0 {
		t.Fatalf("receipt %+v", got)
	}
	mails := k.Letters()
	if len(mails) != 1 {
		t.Fatalf("%d mails arrived", len(mails))
	}
	if m := mails[0]; m.From != "hello@acme.example" || m.To != "you@peer.example" {
		t.Errorf("envelope %q to %q", m.From, m.To)
	}
	parsed, err := mail.ReadMessage(strings.NewReader(mails[0].Text))
	if err != nil {
		t.Fatal(err)
	}
	if h := parsed.Header; h.Get("Message-ID") != got.MessageID || h.Get("Subject") != "Hello Ann & Bob of The acme" {
		t.Errorf("arrived with %q and %q, receipt %+v", h.Get("Message-ID"), h.Get("Subject"), got)
	}
	want := catalog.MailLog{
		ID: got.LogID, ProjectID: p.Project.ID, ProviderType: "SMTP", ToEmail: "you@peer.example", Subject: "Hello Ann & Bob of The acme",
		TemplateCode: "WELCOME", Status: catalog.MailSent, SMTPCode: 250, MessageID: got.MessageID, ServiceName: "auth", Attempts: 1,
		CreatedAt: noon, SentAt: noon,
	}
	e := r.entry("acme", got.LogID)
	if h := e.History; len(h) != 1 || h[0].Number != 1 || !h[0].At.Equal(noon) || h[0].Stage != "eod" || h[0].Code != "" ||
		h[0].SMTPCode != 250 || h[0].Message == "" {
		t.Errorf("history %+v", h)
	}
	if e.History = nil; !reflect.DeepEqual(e, want) {
		t.Errorf("entry %+v\nwant  %+v", e, want)
	}
	if _, queued, _ := r.ledger.QueuedMail(got.LogID); queued {
		t.Error("the message of a mail that was sent is still stored")
	}
	if len(r.ledger.updates) != 1 {
		t.Errorf("%d writes after the one that accepts the mail, one is enough: %+v", len(r.ledger.updates), r.ledger.updates)
	}
	testrig.Eventually(t, "the attempt is over", func() bool { return r.Counts().Attempts == 0 }) // the receipt comes first
	if c := r.Counts(); c.Waiting != 0 || c.Sends[0] != (mailer.SendCount{Result: "sent", N: 1}) {
		t.Errorf("counts %+v", c)
	}
}

func TestSendChecksInOrder(t *testing.T) {
	t.Parallel()
	k := testrig.NewSink(t)
	change := func(slug string, f func(*catalog.ProjectConfig)) catalog.ProjectConfig {
		p := project(slug, k)
		template(&p, "ON", "", true)
		template(&p, "OFF", "", false)
		f(&p)
		return p
	}
	r := newRig(t,
		change("good", func(*catalog.ProjectConfig) {}),
		change("inactive", func(p *catalog.ProjectConfig) { p.Domains[0].Active = false }),
		// From here on each case also has the defects of the following ones: the first check decides.
		change("suspended", func(p *catalog.ProjectConfig) {
			p.Project.Status, p.Service.MailEnabled, p.SMTP = catalog.StatusSuspended, false, nil
		}),
		change("disabled", func(p *catalog.ProjectConfig) { p.Service.MailEnabled, p.SMTP = false, nil }),
		change("bare", func(p *catalog.ProjectConfig) { p.SMTP = nil }),
		change("off", func(p *catalog.ProjectConfig) { p.SMTP.Active = false }),
		change("sealed", func(p *catalog.ProjectConfig) {
			p.SMTP.Username, p.SMTP.Password = "me", catalog.Secret{Source: catalog.SecretSealed, Ref: "x"}
		}),
	)
	var said bytes.Buffer // by one goroutine at a time: nothing is under way here
	r.options.Logger = slog.New(slog.NewTextHandler(&said, nil))
	r.kill()
	of := func(slug, code string) mailer.Send {
		return mailer.Send{Domain: slug + ".example", ToEmail: "you@peer.example", TemplateCode: code}
	}
	r.refuse(of("nobody", "NONE"), catalog.CodeNotFound)
	r.refuse(mailer.Send{ProjectID: 1, ToEmail: "you@peer.example"}, catalog.CodeNotFound)
	r.refuse(of("inactive", "NONE"), catalog.CodeDomainNotVerified)
	r.refuse(of("suspended", "NONE"), catalog.CodeProjectSuspended)
	byID := of("suspended", "NONE")
	byID.Domain, byID.ProjectID = "", projectID("suspended")
	r.refuse(byID, catalog.CodeProjectSuspended)
	r.refuse(of("disabled", "NONE"), catalog.CodeMailDisabled)
	rehearsal := of("disabled", "NONE")
	rehearsal.Rehearsal = true
	r.refuse(rehearsal, catalog.CodeSMTPNotConfigured)
	r.refuse(of("bare", "NONE"), catalog.CodeSMTPNotConfigured)
	r.refuse(of("off", "NONE"), catalog.CodeSMTPNotConfigured)
	r.refuse(of("good", "NONE"), catalog.CodeNotFound)
	r.refuse(of("good", "OFF"), catalog.CodeTemplateInactive)
	if e := r.refuse(of("good", "ON"), catalog.CodeValidation); len(e.Problems) != 1 || e.Problems[0].Path != "variables.userName" {
		t.Errorf("a missing variable: %+v", e.Problems)
	}
	bad := raw("good")
	bad.ToEmail, bad.Subject = "a@b.example, c@d.example", "one\r\nBcc: two"
	if e := r.refuse(bad, catalog.CodeValidation); len(e.Problems) != 2 {
		t.Errorf("two fields are bad: %+v", e.Problems)
	}
	for range 2 {
		if e := r.refuse(raw("sealed"), catalog.CodeUnavailable); !strings.Contains(e.Message, "sealed") || strings.Contains(e.Message, "only plain") {
			t.Errorf("a password that cannot be opened: %v", e)
		}
	}
	if problems := r.SecretProblems(); len(problems) != 1 || problems[0].Slug != "sealed" || problems[0].Field != "password" ||
		problems[0].Message != "only plain ones here" {
		t.Errorf("the status would say %+v", problems)
	}
	if n := strings.Count(said.String(), "only plain ones here"); n != 1 {
		t.Errorf("the log says %d times why:\n%s", n, said.String())
	}
	for _, slug := range []string{"good", "suspended", "disabled", "sealed"} {
		if _, total, _ := r.ledger.MailLogs(projectID(slug), catalog.MailQuery{Page: 1, Limit: 10}); total != 0 {
			t.Errorf("%s: a refused send is in the log", slug)
		}
	}
	if dials := k.Counts().Dials; dials != 0 {
		t.Errorf("%d connections", dials)
	}
}

func TestRehearsalGoesOnWithoutMailEnabled(t *testing.T) {
	t.Parallel()
	k := testrig.NewSink(t)
	p := project("acme", k)
	p.Service.MailEnabled = false
	r := newRig(t, p)
	s := raw("acme")
	r.refuse(s, catalog.CodeMailDisabled)
	s.Rehearsal = true
	if got := r.send(s); !got.Sent {
		t.Errorf("receipt %+v", got)
	}
}

func TestDefaultTemplateStandsInForAnInactiveOne(t *testing.T) {
	t.Parallel()
	k := testrig.NewSink(t)
	p := project("acme", k)
	template(&p, "WELCOME", "", false)
	r := newRig(t, p)
	s := mailer.Send{Domain: "acme.example", ToEmail: "you@peer.example", TemplateCode: "WELCOME", Variables: map[string]string{"userName": "Ann"}}
	r.refuse(s, catalog.CodeTemplateInactive)
	var owner catalog.ProjectConfig
	template(&owner, "WELCOME", "", true)
	standIn := owner.Templates[0]
	standIn.ProjectID, standIn.SubjectTemplate = 0, "The default"
	standIn.UUID = catalog.DeriveTemplateUUID(catalog.UUID{}, "WELCOME")
	standIn.ID = catalog.DeriveID(catalog.KindTemplate, standIn.UUID)
	r.apply(catalog.FileChange{
		Path: "defaults.hcl", Declared: &catalog.Declared{Templates: []catalog.Template{standIn}}, Bytes: []byte("x"),
		Row: &catalog.FileRow{Stamp: catalog.Stamp{Size: 1, ModTime: noon}},
	})
	if e := r.entry("acme", r.send(s).LogID); e.Subject != "The default" {
		t.Errorf("sent %q", e.Subject)
	}
	p.Templates[0].Active = true
	r.declare(p)
	if e := r.entry("acme", r.send(s).LogID); e.Subject != "Hello Ann of The acme" {
		t.Errorf("sent %q", e.Subject)
	}
}

func TestRefusedForGood(t *testing.T) {
	t.Parallel()
	k := testrig.NewSink(t)
	r := newRig(t, project("acme", k))
	k.Answer(func(int, testrig.Letter) error { return errRejected })
	got := r.send(raw("acme"))
	if got.Failed == nil || got.Failed.Code != smtp.CodeMessageRejected || got.Sent || got.Queued {
		t.Fatalf("receipt %+v", got)
	}
	if e := r.entry("acme", got.LogID); e.Status != catalog.MailFailed || e.ErrorCode != smtp.CodeMessageRejected || e.SMTPCode != 554 ||
		!strings.Contains(e.ErrorMessage, "we do not like it") || !e.NextAttemptAt.IsZero() || !e.SentAt.IsZero() {
		t.Errorf("entry %+v", e)
	}
	k.Set(func(r *testrig.SinkRules) { r.Answer, r.Recipient = nil, func(string) error { return errNobody } })
	if got := r.send(raw("acme")); got.Failed == nil || got.Failed.Code != smtp.CodeRecipientRejected || len(got.Failed.Problems) == 0 {
		t.Errorf("receipt %+v", got)
	}
	r.pass(48 * time.Hour)
	if offered := k.Counts().Offered; offered != 1 {
		t.Errorf("a mail that was refused for good was offered again, %d in all", offered)
	}
	if c := r.Counts(); c.Waiting != 0 {
		t.Errorf("counts %+v", c)
	}
}

func TestFailedForNowIsRetriedWithTheSameBytes(t *testing.T) {
	t.Parallel()
	k := testrig.NewSink(t)
	r := newRig(t, project("acme", k))
	k.Answer(func(n int, _ testrig.Letter) error {
		if n <= 2 {
			return errGreylisted
		}
		return nil
	})
	got := r.send(raw("acme"))
	if !got.Queued || got.Sent || got.Failed != nil {
		t.Fatalf("receipt %+v", got)
	}
	e := r.waits("acme", got.LogID, 1)
	if wait := e.NextAttemptAt.Sub(noon); wait < 4*time.Second || wait > 6*time.Second {
		t.Errorf("the second attempt comes after %s", wait)
	}
	if e.ErrorCode != smtp.CodeTemporary || e.SMTPCode != 451 || e.Uncertain {
		t.Errorf("entry %+v", e)
	}
	r.reach(e.NextAttemptAt)
	e = r.waits("acme", got.LogID, 2)
	if wait := e.NextAttemptAt.Sub(r.clock.Now()); wait < 24*time.Second || wait > 36*time.Second {
		t.Errorf("the third attempt comes after %s", wait)
	}
	r.reach(e.NextAttemptAt)
	e = r.becomes("acme", got.LogID, catalog.MailSent)
	if e.Attempts != 3 || e.Uncertain || e.ErrorCode != "" || e.ErrorMessage != "" || !e.SentAt.Equal(r.clock.Now()) || !e.NextAttemptAt.IsZero() {
		t.Errorf("entry %+v", e)
	}
	if k.Counts().Offered != 3 || k.Offered()[0] != k.Offered()[1] || k.Offered()[1] != k.Offered()[2] {
		t.Error("the attempts did not offer the same bytes")
	}
}

// TestSchedule follows a mail to its end at a server that never accepts it.
func TestSchedule(t *testing.T) {
	t.Parallel()
	k := testrig.NewSink(t)
	k.Answer(func(int, testrig.Letter) error { return errGreylisted })
	r := newRig(t, project("acme", k))
	id := r.send(raw("acme")).LogID
	want := []time.Duration{
		5 * time.Second, 30 * time.Second, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 20 * time.Minute,
		30 * time.Minute, 45 * time.Minute, time.Hour, time.Hour, time.Hour,
	}
	for i, w := range want {
		e := r.waits("acme", id, i+1)
		wait := e.NextAttemptAt.Sub(r.clock.Now())
		if wait < w*8/10 || wait > w*12/10 {
			t.Errorf("attempt %d comes after %s, want %s within a fifth", i+2, wait, w)
		}
		r.clock.forward(wait - time.Second)
		if e := r.entry("acme", id); e.Attempts != i+1 {
			t.Fatalf("attempt %d came too early", i+2)
		}
		r.clock.forward(time.Second)
	}
	for e := r.entry("acme", id); e.Status != catalog.MailExpired; e = r.entry("acme", id) {
		if r.clock.Now().After(noon.Add(25 * time.Hour)) {
			t.Fatalf("still %+v", e)
		}
		r.clock.forward(time.Minute)
		r.settle()
	}
	e := r.entry("acme", id)
	if e.ErrorCode != smtp.CodeTemporary || !e.NextAttemptAt.IsZero() || r.clock.Now().Before(noon.Add(24*time.Hour)) {
		t.Errorf("at %s: %+v", r.clock.Now(), e)
	}
	if c := r.Counts(); c.Waiting != 0 {
		t.Errorf("counts %+v", c)
	}
}

func TestExpiresWithItsTemplate(t *testing.T) {
	t.Parallel()
	k := testrig.NewSink(t)
	k.Answer(func(int, testrig.Letter) error { return errGreylisted })
	p := project("acme", k)
	template(&p, "CODE", "1m", true)
	r := newRig(t, p)
	id := r.send(mailer.Send{Domain: "acme.example", ToEmail: "you@peer.example", TemplateCode: "CODE", Variables: map[string]string{"userName": "Ann"}}).LogID
	r.reach(r.waits("acme", id, 1).NextAttemptAt)
	r.reach(r.waits("acme", id, 2).NextAttemptAt)
	if e := r.waits("acme", id, 3); !e.NextAttemptAt.Equal(noon.Add(time.Minute)) {
		t.Errorf("the next thing to happen is at %s, which is after its end", e.NextAttemptAt)
	}
	k.Answer(nil)
	r.reach(noon.Add(time.Minute))
	if e := r.becomes("acme", id, catalog.MailExpired); e.Attempts != 3 {
		t.Errorf("entry %+v", e)
	}
	if len(k.Letters()) != 0 {
		t.Error("a mail went out after its time")
	}
}

func TestBudgetEndsWhileTheServerThinks(t *testing.T) {
	t.Parallel()
	k := testrig.NewSink(t)
	release := make(chan struct{})
	k.Answer(func(int, testrig.Letter) error { <-release; return nil })
	r := newRig(t, project("acme", k))
	sent := r.sendAsync(raw("acme"))
	testrig.Eventually(t, "the message is there", func() bool { return k.Counts().Offered == 1 })
	r.clock.forward(mailer.DefaultBudget - time.Millisecond)
	select {
	case got := <-sent:
		t.Fatalf("answered before the budget ended: %+v", got)
	default:
	}
	r.clock.forward(time.Millisecond)
	got := <-sent
	if got.err != nil || !got.Queued || got.Sent || got.Failed != nil {
		t.Fatalf("answered %+v", got)
	}
	if e := r.entry("acme", got.LogID); e.Status != catalog.MailRetrying || e.Attempts != 1 || e.Uncertain {
		t.Errorf("entry %+v", e)
	}
	// However long it takes, there is no second attempt.
	r.clock.forward(9 * time.Minute)
	close(release)
	e := r.becomes("acme", got.LogID, catalog.MailSent)
	if e.Attempts != 1 || e.Uncertain || len(k.Letters()) != 1 {
		t.Errorf("entry %+v, %d mails", e, len(k.Letters()))
	}
}

func TestUncertainIsMarkedAndSentAgain(t *testing.T) {
	t.Parallel()
	k := testrig.NewSink(t)
	k.Answer(func(n int, _ testrig.Letter) error {
		if n == 1 {
			return testrig.ErrHangUp
		}
		return nil
	})
	r := newRig(t, project("acme", k))
	got := r.send(raw("acme"))
	if !got.Queued {
		t.Fatalf("receipt %+v", got)
	}
	e := r.waits("acme", got.LogID, 1)
	if !e.Uncertain || e.ErrorCode != smtp.CodeOutcomeUnknown && e.ErrorCode != smtp.CodeConnectionLost {
		t.Errorf("entry %+v", e)
	}
	r.reach(e.NextAttemptAt)
	if e := r.becomes("acme", got.LogID, catalog.MailSent); !e.Uncertain || e.ErrorCode != "" {
		t.Errorf("entry %+v", e)
	}
	if k.Offered()[0] != k.Offered()[1] || !strings.Contains(k.Offered()[0].Text, got.MessageID) {
		t.Error("it was sent again as something else")
	}
}

func TestUnreachableServerAndItsReturn(t *testing.T) {
	t.Parallel()
	p := project("acme", testrig.NewSink(t))
	p.SMTP.Port = refusingPort
	r := newRig(t, p)
	first := r.send(raw("acme"))
	if e := r.waits("acme", first.LogID, 1); !first.Queued || e.ErrorCode != smtp.CodeConnectionRefused {
		t.Fatalf("receipt %+v, entry %+v", first, e)
	}
	// One probe at a time: the others keep their attempts.
	var ids []int64
	for range 20 {
		ids = append(ids, r.send(raw("acme")).LogID)
	}
	r.pass(5 * time.Minute)
	burnt := 0
	for _, id := range ids {
		burnt += r.entry("acme", id).Attempts - 1
	}
	if burnt > 12 {
		t.Errorf("20 mails made %d attempts within 5 minutes at a server that cannot be reached", burnt)
	}
	// A config that points elsewhere is tried at once, whatever the schedule says.
	k2 := testrig.NewSink(t)
	p.SMTP.Port = k2.Port()
	r.declare(p)
	r.ConfigChanged(p.Project.ID)
	for _, id := range append(ids, first.LogID) {
		if e := r.becomes("acme", id, catalog.MailSent); e.Uncertain {
			t.Errorf("entry %+v", e)
		}
	}
	if n := len(k2.Letters()); n != 21 {
		t.Errorf("%d mails arrived", n)
	}
}
