package mailer_test

import (
	"strings"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/mailer"
	"fingerpost/resolver/catalog"
)

// With Keep every mail is kept, whatever is wrong with its server and its secrets, and nothing goes out.
func TestKept(t *testing.T) {
	t.Parallel()
	sink := testrig.NewSink(t)
	p := project("acme", sink)
	p.SMTP.Username, p.SMTP.Password = "acme", catalog.Secret{Source: catalog.SecretEnv, Ref: "NOT_SET_HERE"}
	template(&p, "HELLO", "", true)
	r := newRig(t, p, project("other", nil))
	r.refuse(raw("acme"), catalog.CodeUnavailable) // without Keep the secret is needed
	r.options.Keep = true
	r.start(r.resolver)

	s := mailer.Send{Domain: "acme.example", ToEmail: "ada@example.com", TemplateCode: "HELLO",
		Variables: map[string]string{"userName": "Ada"}, IdempotencyKey: "once", ServiceName: "test"}
	got := r.send(s)
	if !got.Sent || !got.Kept || got.Queued || got.Failed != nil {
		t.Errorf("receipt %+v", got)
	}
	entry := r.entry("acme", got.LogID)
	if entry.Status != catalog.MailSent || entry.ProviderType != catalog.ProviderSink || entry.SentAt.IsZero() || entry.Attempts != 1 {
		t.Errorf("entry %+v", entry)
	}
	text, found := r.Kept(&entry)
	if !found || text.From != "hello@acme.example" || text.To != "ada@example.com" || text.Subject != "Hello Ada of The acme" ||
		text.BodyHTML != "<p>Hello Ada</p>" || text.BodyText != "Hello Ada" || !strings.HasPrefix(text.Source, "From: ") {
		t.Errorf("kept %v %+v", found, text)
	}
	entry.ProjectID = projectID("other")
	if _, found := r.Kept(&entry); found {
		t.Error("another project has the mail")
	}
	r.refuse(raw("other"), catalog.CodeSMTPNotConfigured) // the checks are those of a real send
	if again := r.send(s); again.LogID != got.LogID || !again.Replayed || !again.Kept {
		t.Errorf("repeated: %+v", again)
	}
	if _, err := r.TestSMTP(t.Context(), mailer.TestRequest{Config: *p.SMTP, ToEmail: "ada@example.com"}); err == nil {
		t.Error("settings were tested")
	}
	if n := len(sink.Letters()); n != 0 {
		t.Errorf("%d mails went out", n)
	}

	// A start without Keep: nothing that was kept is sent, and the repeat gets the first answer.
	p.SMTP.Username, p.SMTP.Password = "", catalog.Secret{}
	r.declare(p)
	r.options.Keep = false
	r.kill()
	if again := r.send(s); again.LogID != got.LogID || !again.Kept {
		t.Errorf("repeated after the restart: %+v", again)
	}
	if entry := r.entry("acme", got.LogID); entry.ProviderType != catalog.ProviderSink {
		t.Errorf("after the restart: %+v", entry)
	} else if _, found := r.Kept(&entry); found {
		t.Error("the text has survived the restart")
	}
	if after := r.send(raw("acme")); !after.Sent || after.Kept {
		t.Errorf("sent: %+v", after)
	}
	r.pass(time.Hour)
	if n := len(sink.Letters()); n != 1 {
		t.Errorf("%d mails went out, want the one that was sent", n)
	}
}

// Mail that waited when Keep was switched on is kept, too.
func TestKeptFromTheQueue(t *testing.T) {
	t.Parallel()
	sink := testrig.NewSink(t)
	r := newRig(t, project("acme", sink))
	later := raw("acme")
	later.ToEmail = "later@peer.example"
	queued := r.send(later)
	if !queued.Queued {
		t.Fatalf("receipt %+v", queued)
	}
	before := r.waits("acme", queued.LogID, 1)
	r.options.Keep = true
	r.kill()
	r.reach(before.NextAttemptAt)
	if e := r.becomes("acme", queued.LogID, catalog.MailSent); e.ProviderType != catalog.ProviderSink || e.Attempts != 2 || e.ErrorCode != "" {
		t.Errorf("entry %+v", e)
	}
	r.settle()
	if c := r.Counts(); c.Waiting != 0 || len(sink.Letters()) != 0 {
		t.Errorf("%+v, %d mails went out", c, len(sink.Letters()))
	}
}

// The texts are bounded in number and size; the oldest is dropped first.
func TestKeptIsBounded(t *testing.T) {
	t.Parallel()
	p := project("acme", nil)
	p.SMTP = &catalog.SMTPConfig{Host: "smtp.acme.example", FromEmail: "hello@acme.example", Active: true}
	r := newRig(t, p)
	r.options.Keep = true
	r.start(r.resolver)
	has := func(id int64) bool {
		entry := r.entry("acme", id)
		_, found := r.Kept(&entry)
		return found
	}
	first := r.send(raw("acme")).LogID
	second := r.send(raw("acme")).LogID
	for range mailer.MaxKept - 1 {
		r.send(raw("acme"))
	}
	if has(first) || !has(second) {
		t.Errorf("after %d mails: the first %v, the second %v", mailer.MaxKept+1, has(first), has(second))
	}
	large := raw("acme")
	large.BodyText = strings.Repeat("a line of text that is long enough\n", 15<<10) // half a MiB
	last := r.send(large).LogID
	for size := 512 << 10; size < mailer.MaxKeptBytes; size += 512 << 10 {
		last = r.send(large).LogID
	}
	if has(second) || !has(last) {
		t.Errorf("after large mails: the second %v, the last %v", has(second), has(last))
	}
}
