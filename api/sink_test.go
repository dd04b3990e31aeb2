package api_test

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"fingerpost/api"
	"fingerpost/cmd/testrig"
	"fingerpost/mailer"
	"fingerpost/mailer/smtp"
	"fingerpost/resolver/catalog"
)

// newSink returns a server with an account that mail without a login may leave aside.
func newSink(t testing.TB) *testrig.Sink {
	t.Helper()
	k := testrig.NewSink(t)
	k.Set(func(r *testrig.SinkRules) { r.User, r.Password, r.Open = "acme", "right", true })
	return k
}

// A post is a house with a mail service: the project "post" hands its mail to a sink, "mute" has mail switched off,
// "bare" has no SMTP config, "odd" one with a wrong password, "dead" one that nobody listens at.
type post struct {
	*house
	sink *testrig.Sink
	mail *mailer.Mailer

	poster, reader, other string // keys: mail and read on post; read on everything; mail on mute
	every                 string // a key: mail on everything
}

const (
	postID, muteID, bareID, oddID, deadID = 41, 42, 43, 44, 45
	secretPassword                        = "right"
)

// startPost serves it. change alters the mailer's options.
func startPost(t testing.TB, s *testrig.Sink, change func(*mailer.Options), changes ...func(*api.Options)) *post {
	t.Helper()
	p := &post{sink: s}
	carrier := smtp.NewTransport(smtp.TransportOptions{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	withMail := func(o *api.Options) {
		m := mailer.Options{Ledger: o.Resolver, Projects: o.Resolver, Carrier: carrier, Logger: o.Logger,
			OpenSecret: func(s catalog.Secret, _ string) (string, error) { return s.Ref, nil }}
		if change != nil {
			change(&m)
		}
		var err error
		if p.mail, err = mailer.Open(m); err != nil {
			t.Fatal(err)
		}
		o.Mail = p.mail
	}
	p.house = start(t, append([]func(*api.Options){withMail}, changes...)...)
	t.Cleanup(carrier.Close)
	p.apply("mail.hcl", p.mailFixture())
	return p
}

func (p *post) mailFixture() *catalog.Declared {
	d := &catalog.Declared{}
	for id, slug := range map[int64]string{postID: "post", muteID: "mute", bareID: "bare", oddID: "odd", deadID: "dead"} {
		c := project(id, slug, "The "+slug, catalog.StatusActive, slug+".example")
		c.Service.MailEnabled = id != muteID
		if id != bareID {
			c.SMTP = &catalog.SMTPConfig{ID: 300 + id, UUID: catalog.DeriveUUID(catalog.KindSMTPConfig, c.Project.UUID), Host: "127.0.0.1", Port: p.sink.Port(),
				Username: "acme", Password: catalog.Secret{Source: catalog.SecretPlain, Ref: secretPassword},
				FromEmail: "hello@" + slug + ".example", FromName: "The Post, Inc.", Active: true}
		}
		switch id {
		case oddID:
			c.SMTP.Password.Ref = "wrong"
		case deadID:
			c.SMTP.Port = 1
		case postID:
			c.Templates = []catalog.Template{
				template(id, 1, "HELLO", "Hello {{userName}}", "Hi {{userName}}, it is {{code}} from {{projectName}}.", true),
				template(id, 2, "ASLEEP", "Zzz", "Zzz", false),
				template(id, 3, "PLAIN", "Plain", "No variables here.", true),
			}
		case muteID:
			c.Templates = []catalog.Template{template(id, 4, "PLAIN", "Plain", "No variables here.", true)}
		}
		d.Projects = append(d.Projects, c)
	}
	d.Templates = []catalog.Template{template(0, 5, "SHARED", "Shared by {{projectName}}", "For everybody.", true)}
	p.poster = p.newKey(d, "poster", catalog.MayMail|catalog.MayRead, "post")
	p.reader = p.newKey(d, "mail-reader", catalog.MayRead)
	p.other = p.newKey(d, "other-poster", catalog.MayMail, "mute")
	p.every = p.newKey(d, "every-poster", catalog.MayMail)
	return d
}

func template(project, id int64, code, subject, text string, active bool) catalog.Template {
	t := catalog.Template{ID: 4000 + id, ProjectID: project, Code: code, Name: code, SubjectTemplate: subject, BodyText: text, Active: active}
	t.UUID = catalog.DeriveUUID(catalog.KindTemplate, catalog.DeriveProjectUUID(fmt.Sprint(project, code)))
	return t
}

// ask sends a request to the mail API.
func (p *post) ask(method, path, key, body string, headers ...string) *answer {
	p.t.Helper()
	return p.askBody(method, "/api/mail"+path, "", body, append(headers, "X-Internal-Service-Token: "+key, "X-Internal-Service-Name: shop.v1")...)
}

// data is a success's data.
func (a *answer) data() map[string]any {
	d, _ := a.json["data"].(map[string]any)
	return d
}

// entry reads the log entry that an answer's Location names.
func (p *post) entry(a *answer) map[string]any {
	p.t.Helper()
	path, ok := strings.CutPrefix(a.Header.Get("Location"), "/api/mail")
	if !ok {
		p.t.Fatalf("no Location of a log entry in %v: %s", a.Header, a.body)
	}
	read := p.ask("GET", path, p.reader, "")
	read.check(p.t, 200, "")
	return read.data()
}

// within is a context that ends after so long.
func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// later asks while the test goes on. The channel is closed where no answer came, which ask reports.
func (p *post) later(method, path, key, body string, headers ...string) <-chan *answer {
	answers := make(chan *answer, 1)
	go func() {
		defer close(answers)
		answers <- p.ask(method, path, key, body, headers...)
	}()
	return answers
}

// came returns the answer when it is there.
func came(t testing.TB, answers <-chan *answer) *answer {
	t.Helper()
	a, ok := <-answers
	if !ok {
		t.Fatal("no answer came")
	}
	return a
}
