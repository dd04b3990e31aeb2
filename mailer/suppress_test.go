package mailer_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/mailer"
	"fingerpost/mailer/smtp"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/signedlink"
)

const suppressed = catalog.MailSuppressed

// suppress puts an address onto the list of a project.
func (r *rig) suppress(slug, address string, reason catalog.SuppressionReason, category string) {
	r.t.Helper()
	_, err := r.resolver.Suppress(projectID(slug), []catalog.Suppression{{Address: address, Reason: reason, Category: category}},
		catalog.Author{Door: catalog.DoorAPI, Actor: "test"}, true)
	if err != nil {
		r.t.Fatal(err)
	}
}

// list returns the list of a project in short.
func (r *rig) list(slug string) (rows []string) {
	r.t.Helper()
	list, _, err := r.resolver.SuppressionPage(projectID(slug), catalog.SuppressionQuery{Page: 1, Limit: 100})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, s := range list {
		rows = append(rows, s.Address+" "+string(s.Reason))
	}
	return rows
}

// audits counts the entries of the trail with an action and a door.
func (r *rig) audits(action string, door catalog.Door) (n int) {
	r.t.Helper()
	page, err := r.resolver.Audit(catalog.AuditQuery{Action: action, Page: 1, Limit: 100})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, e := range page.Entries {
		if e.Door == door {
			n++
		}
	}
	return n
}

// categories is a project with a template of each kind.
func categories(to interface{ Port() int }) catalog.ProjectConfig {
	p := project("acme", to)
	for code, category := range map[string]string{"RESET": "", "NEWS": "newsletter", "OFFER": "offers"} {
		template(&p, code, "", true)
		p.Templates[len(p.Templates)-1].Category = category
	}
	return p
}

// newCategories starts a Mailer for that project, with links to unsubscribe.
func newCategories(t *testing.T, to interface{ Port() int }) *rig {
	r := newRig(t, categories(to))
	links := signedlink.NewRecipients(r.resolver)
	r.options.UnsubscribeLink = func(of signedlink.Subscription) (string, error) {
		link, err := links.Make(of)
		return "https://acme.example" + signedlink.RecipientPath + link, err
	}
	r.kill()
	return r
}

// of is a mail of a template.
func of(code, to string) mailer.Send {
	return mailer.Send{Domain: "acme.example", ToEmail: to, TemplateCode: code, Variables: map[string]string{"userName": "Ada"}}
}

// TestSuppressed: what is listed stops what it should, also a rehearsal, and leaves an entry and no mail.
func TestSuppressed(t *testing.T) {
	t.Parallel()
	k := testrig.NewSink(t)
	r := newCategories(t, k)
	for who, s := range map[string]catalog.Suppression{
		"complaint": {Reason: catalog.SuppressComplaint}, "bounce": {Reason: catalog.SuppressHardBounce},
		"manual": {Reason: catalog.SuppressManual}, "nonews": {Reason: catalog.SuppressManual, Category: "newsletter"},
		"left": {Reason: catalog.SuppressUnsubscribe, Category: "newsletter"}, "leftall": {Reason: catalog.SuppressUnsubscribe},
	} {
		r.suppress("acme", who+"@peer.example", s.Reason, s.Category)
	}
	f := func(who string, raw, reset, news, offer bool) {
		t.Helper()
		to := strings.ToUpper(who[:1]) + who[1:] + "@PEER.example"
		bare := mailer.Send{Domain: "acme.example", ToEmail: to, Subject: "Hi", BodyText: "Hello"}
		for stops, s := range map[*bool]mailer.Send{&raw: bare, &reset: of("RESET", to), &news: of("NEWS", to), &offer: of("OFFER", to)} {
			for _, s.Rehearsal = range []bool{false, true} {
				before := len(k.Letters())
				got := r.send(s)
				e := r.entry("acme", got.LogID)
				if !*stops {
					if !got.Sent || got.Suppressed != "" || len(k.Letters()) != before+1 {
						t.Errorf("%s %s: %+v", who, s.TemplateCode, got)
					}
					continue
				}
				if got.Sent || got.Queued || got.Failed != nil || got.Suppressed == "" || len(k.Letters()) != before ||
					e.Status != suppressed || e.ErrorCode != catalog.CodeSuppressed || !strings.Contains(e.ErrorMessage, string(got.Suppressed)) ||
					e.Attempts != 0 || !e.NextAttemptAt.IsZero() || e.Subject == "" {
					t.Errorf("%s %s: %+v, %+v", who, s.TemplateCode, got, e)
				}
			}
		}
	}
	f("nobodyelse", false, false, false, false)
	f("complaint", true, true, true, true)
	f("bounce", true, true, true, true)
	f("manual", true, true, true, true)
	f("nonews", false, false, true, false)
	f("left", false, false, true, false)
	f("leftall", false, false, true, true)
	if c := r.Counts(); c.Waiting != 0 || !slices.Contains(c.Sends, mailer.SendCount{Result: "suppressed", N: 32}) {
		t.Errorf("%+v", c)
	}
}

// TestSuppressionIsTheLastCheck: what is wrong with a send is told whether its recipient is listed or not.
func TestSuppressionIsTheLastCheck(t *testing.T) {
	t.Parallel()
	r := newCategories(t, testrig.NewSink(t))
	r.suppress("acme", "ada@peer.example", catalog.SuppressComplaint, "")
	s := of("RESET", "ada@peer.example")
	s.Variables = nil
	r.refuse(s, catalog.CodeValidation)
	r.refuse(of("NONE", "ada@peer.example"), catalog.CodeNotFound)
	off := categories(nil)
	r.declare(off)
	r.refuse(of("RESET", "ada@peer.example"), catalog.CodeSMTPNotConfigured)
}

// TestIgnored: a send may ignore reasons, and the strongest of the others counts.
func TestIgnored(t *testing.T) {
	t.Parallel()
	k := testrig.NewSink(t)
	r := newCategories(t, k)
	r.suppress("acme", "ada@peer.example", catalog.SuppressHardBounce, "")
	r.suppress("acme", "ada@peer.example", catalog.SuppressUnsubscribe, "newsletter")
	s := of("NEWS", "ada@peer.example")
	s.Ignored = []catalog.SuppressionReason{catalog.SuppressHardBounce}
	if got := r.send(s); got.Suppressed != catalog.SuppressUnsubscribe {
		t.Errorf("%+v", got)
	}
	s.TemplateCode = "RESET"
	if got := r.send(s); !got.Sent {
		t.Errorf("%+v", got)
	}
	s.Ignored = []catalog.SuppressionReason{catalog.SuppressComplaint}
	if got := r.send(s); got.Suppressed != catalog.SuppressHardBounce {
		t.Errorf("%+v", got)
	}
	// A mail that waits keeps what it ignores.
	k.Down()
	s.Ignored = []catalog.SuppressionReason{catalog.SuppressHardBounce}
	got := r.send(s)
	if !got.Queued {
		t.Fatalf("%+v", got)
	}
	e := r.waits("acme", got.LogID, 1)
	if err := k.Up(); err != nil {
		t.Fatal(err)
	}
	r.kill()
	r.reach(e.NextAttemptAt)
	r.becomes("acme", got.LogID, catalog.MailSent)
}

// TestSuppressedRepeat: a repeat of an Idempotency-Key gets the first answer, after a kill and when the list has changed.
func TestSuppressedRepeat(t *testing.T) {
	t.Parallel()
	k := testrig.NewSink(t)
	r := newCategories(t, k)
	r.suppress("acme", "ada@peer.example", catalog.SuppressComplaint, "")
	s := of("RESET", "ada@peer.example")
	s.IdempotencyKey, s.Request = "reset-1", [32]byte{1}
	first := r.send(s)
	r.kill()
	if _, err := r.resolver.Release(projectID("acme"), catalog.SuppressionQuery{Address: "ada@peer.example"}, catalog.Author{}); err != nil {
		t.Fatal(err)
	}
	first.Replayed = true
	if got := r.send(s); got != first || first.Suppressed != catalog.SuppressComplaint || len(k.Letters()) != 0 {
		t.Errorf("%+v, want %+v", got, first)
	}
	other := s
	other.Request[0] = 2
	r.refuse(other, catalog.CodeIdempotencyMismatch)
}

// TestSuppressedWhileItWaits: an address that is listed while its mail waits gets no further attempt.
func TestSuppressedWhileItWaits(t *testing.T) {
	t.Parallel()
	k := testrig.NewSink(t)
	r := newCategories(t, k)
	k.Set(func(rules *testrig.SinkRules) {
		rules.Recipient = func(string) error { return testrig.Refusal(450, 4, 2, 0, "later") }
	})
	var ids []int64
	for _, code := range []string{"NEWS", "RESET"} {
		ids = append(ids, r.send(of(code, "ada@peer.example")).LogID)
	}
	e := r.waits("acme", ids[0], 1)
	r.waits("acme", ids[1], 1)
	r.suppress("acme", "ADA@peer.example", catalog.SuppressUnsubscribe, "newsletter")
	k.Set(func(rules *testrig.SinkRules) { rules.Recipient = nil })
	r.reach(e.NextAttemptAt.Add(10 * time.Second))
	r.becomes("acme", ids[1], catalog.MailSent)
	e = r.becomes("acme", ids[0], suppressed)
	if e.Attempts != 1 || e.ErrorCode != catalog.CodeSuppressed || len(e.History) != 1 || len(k.Letters()) != 1 {
		t.Errorf("%+v, %d mails", e, len(k.Letters()))
	}
	testrig.Eventually(t, "nothing waits", func() bool { return r.Counts().Waiting == 0 })
}

// TestHardBounce: an address that the server does not know is listed with the end of the mail, and gets no second one,
// through a kill between the two.
func TestHardBounce(t *testing.T) {
	t.Parallel()
	k := testrig.NewSink(t)
	r := newCategories(t, k)
	s := raw("acme")
	s.ToEmail = "nobody@PEER.example"
	first := r.send(s)
	if first.Failed == nil || first.Failed.Code != smtp.CodeRecipientRejected {
		t.Fatalf("%+v", first)
	}
	r.kill()
	s.ToEmail = "Nobody@peer.example"
	if got := r.send(s); got.Suppressed != catalog.SuppressHardBounce || k.Counts().Dials != 1 {
		t.Errorf("the second mail: %+v, %d connections", got, k.Counts().Dials)
	}
	list, err := r.resolver.Suppressions(projectID("acme"), "nobody@peer.example")
	want := []catalog.Suppression{{Address: "nobody@peer.example", Reason: catalog.SuppressHardBounce, CreatedAt: noon,
		Note: fmt.Sprintf("mail %d: 550 5.1.1 no such user", first.LogID)}}
	if err != nil || !reflect.DeepEqual(list, want) {
		t.Errorf("%+v, %v, want %+v", list, err, want)
	}
	if n := r.audits(catalog.AuditSuppress, catalog.DoorMail); n != 1 {
		t.Errorf("%d entries of the trail", n)
	}
}

// TestNoHardBounce: other refusals list nobody, and neither does a project that does not want it.
func TestNoHardBounce(t *testing.T) {
	t.Parallel()
	k := testrig.NewSink(t)
	r := newCategories(t, k)
	for i, refusal := range []error{
		testrig.Refusal(552, 5, 2, 2, "full"), testrig.Refusal(550, 5, 4, 1, "denied"),
		testrig.Refusal(450, 4, 1, 1, "later"), testrig.Refusal(550, 5, 1, 0, "bad address"),
	} {
		k.Set(func(rules *testrig.SinkRules) { rules.Recipient = func(string) error { return refusal } })
		s := raw("acme")
		s.ToEmail = fmt.Sprintf("ada%d@peer.example", i)
		if got, err := r.Send(t.Context(), s); err != nil || got.Sent {
			t.Errorf("%v: %+v, %v", refusal, got, err)
		}
	}
	k.Set(func(rules *testrig.SinkRules) { rules.Recipient = nil })
	p, off := categories(k), false
	p.SMTP.SuppressBounces = &off
	r.declare(p)
	s := raw("acme")
	s.ToEmail = "nobody@peer.example"
	if got := r.send(s); got.Failed == nil {
		t.Errorf("%+v", got)
	}
	if got := r.list("acme"); got != nil {
		t.Errorf("listed are %q", got)
	}
}

// TestBounceWhileTheDiskRefuses: a bounce that cannot be stored is stored later, once, with its entry of the list.
func TestBounceWhileTheDiskRefuses(t *testing.T) {
	t.Parallel()
	k := testrig.NewSink(t)
	r := newCategories(t, k)
	k.Set(func(rules *testrig.SinkRules) {
		rules.Recipient = func(string) error {
			r.ledger.set(func() { r.ledger.refusing = true })
			return testrig.Refusal(550, 5, 1, 1, "no such user")
		}
	})
	s := raw("acme")
	id := r.send(s).LogID
	if e := r.entry("acme", id); e.Status.Ended() || r.list("acme") != nil {
		t.Errorf("%+v", e)
	}
	r.ledger.set(func() { r.ledger.refusing = false })
	r.clock.forward(time.Minute)
	r.becomes("acme", id, catalog.MailFailed)
	if got := r.list("acme"); !slices.Equal(got, []string{"you@peer.example hard_bounce"}) || k.Counts().Dials != 1 {
		t.Errorf("%q, %d connections", got, k.Counts().Dials)
	}
}

// TestListOfAGoneProject: the list of a project goes with it, and not with a checkout.
func TestListOfAGoneProject(t *testing.T) {
	t.Parallel()
	r := newCategories(t, testrig.NewSink(t))
	r.suppress("acme", "ada@peer.example", catalog.SuppressManual, "")
	pruned := func() {
		t.Helper()
		n := len(r.ledger.prunes())
		r.clock.forward(time.Hour)
		testrig.Eventually(t, "the log is pruned", func() bool { return len(r.ledger.prunes()) > n })
	}
	listed := func(want ...int64) {
		t.Helper()
		if got, err := r.resolver.ListedProjects(); err != nil || !slices.Equal(got, want) {
			t.Errorf("lists of %d, %v, want %d", got, err, want)
		}
	}
	pruned()
	listed(projectID("acme"))
	r.apply(catalog.FileChange{Path: "acme.hcl"})
	pruned()
	listed(projectID("acme"))
	pruned()
	pruned()
	listed()
}

// TestUnsubscribeLink: the mails of a category have a link for one click, in the header and as a variable, and others not.
func TestUnsubscribeLink(t *testing.T) {
	t.Parallel()
	k := testrig.NewSink(t)
	r := newRig(t, categories(k))
	e := r.refuse(of("NEWS", "ada@peer.example"), catalog.CodePublicURLMissing)
	if !strings.Contains(e.Message, "--public-url") {
		t.Error(e)
	}
	own := of("NEWS", "ada@peer.example")
	own.Unsubscribe = "https://news.acme.example/leave?id=4711"
	if got := r.send(own); !got.Sent || !strings.Contains(k.Letters()[0].Text, "\nList-Unsubscribe: <https://news.acme.example/leave?id=4711>\r\n") {
		t.Errorf("%+v\n%s", got, k.Letters()[0].Text)
	}
	own.TemplateCode = "RESET"
	r.refuse(own, catalog.CodeValidation)

	p := categories(k)
	for i := range p.Templates {
		p.Templates[i].BodyText = "Leave: {{unsubscribeUrl}}"
	}
	r.declare(p)
	links := signedlink.NewRecipients(r.resolver)
	r.options.UnsubscribeLink = func(of signedlink.Subscription) (string, error) {
		link, err := links.Make(of)
		return "https://acme.example" + signedlink.RecipientPath + link, err
	}
	r.kill()
	r.refuse(of("RESET", "ada@peer.example"), catalog.CodeValidation) // where it is a variable like others
	news := of("NEWS", "Ada@PEER.example")
	news.Variables["unsubscribeUrl"] = "https://evil.example"
	r.send(news)
	letter := k.Letters()[1].Text
	_, rest, _ := strings.Cut(letter, "List-Unsubscribe: <https://acme.example/u/")
	link, rest, _ := strings.Cut(rest, ">")
	opened, err := links.Open(link)
	if err != nil || opened != (signedlink.Subscription{ProjectID: projectID("acme"), Address: "Ada@peer.example", Category: "newsletter"}) {
		t.Errorf("%+v, %v\n%s", opened, err, letter)
	}
	if !strings.Contains(letter, "List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n") || strings.Contains(letter, "evil") ||
		!strings.Contains(strings.ReplaceAll(rest, "=\r\n", ""), "Leave: https://acme.example/u/"+link) {
		t.Errorf("%s", letter)
	}
	if r.send(raw("acme")); strings.Contains(k.Letters()[2].Text, "List-Unsubscribe") {
		t.Errorf("%s", k.Letters()[2].Text)
	}
	r.options.UnsubscribeLink = func(signedlink.Subscription) (string, error) { return "", errors.New("the disk is full") }
	r.kill()
	r.refuse(of("NEWS", "ada@peer.example"), catalog.CodeUnavailable)
}
