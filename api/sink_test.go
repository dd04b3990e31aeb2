package api_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	gosmtp "github.com/emersion/go-smtp"

	"fingerpost/api"
	"fingerpost/mailer"
	"fingerpost/mailer/smtp"
	"fingerpost/resolver/catalog"
)

// A sink is an SMTP server that keeps what it takes.
type sink struct {
	addr   string
	server *gosmtp.Server
	hold   chan struct{} // not nil: the reply to the final dot waits until it is closed

	mu       sync.Mutex // guards what follows
	received []letter
	waiting  int // for hold
}

// A letter is a mail that a sink has taken.
type letter struct{ from, to, text string }

// newSink listens at 127.0.0.1 until the test ends. change may alter it before.
func newSink(t testing.TB, change ...func(*sink)) *sink {
	t.Helper()
	s := &sink{}
	for _, c := range change {
		c(s)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = ln.Addr().String()
	s.server = gosmtp.NewServer(gosmtp.BackendFunc(func(*gosmtp.Conn) (gosmtp.Session, error) { return &sinkSession{sink: s}, nil }))
	s.server.Domain = "sink.example"
	s.server.AllowInsecureAuth = true
	s.server.ErrorLog = log.New(io.Discard, "", 0)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = s.server.Serve(ln)
	}()
	t.Cleanup(func() {
		_ = s.server.Close()
		_ = ln.Close() // which the server may not have taken up yet
		<-served
	})
	return s
}

func (s *sink) letters() []letter {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.received[:len(s.received):len(s.received)]
}

// to is what was taken for an address.
func (s *sink) to(address string) (found []letter) {
	for _, l := range s.letters() {
		if l.to == address {
			found = append(found, l)
		}
	}
	return found
}

// A sinkSession is one connection to a sink. It takes user "acme" with the password "right", and no other.
type sinkSession struct {
	sink     *sink
	from, to string
}

func (s *sinkSession) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *sinkSession) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user != "acme" || password != "right" {
			return gosmtp.ErrAuthFailed
		}
		return nil
	}), nil
}

func (s *sinkSession) Mail(from string, _ *gosmtp.MailOptions) error {
	s.from = from
	return nil
}

// Rcpt refuses the recipient "nobody" for good, and "later" for now.
func (s *sinkSession) Rcpt(to string, _ *gosmtp.RcptOptions) error {
	switch local, _, _ := strings.Cut(to, "@"); local {
	case "nobody":
		return &gosmtp.SMTPError{Code: 550, EnhancedCode: gosmtp.EnhancedCode{5, 1, 1}, Message: "no such user"}
	case "later":
		return &gosmtp.SMTPError{Code: 450, EnhancedCode: gosmtp.EnhancedCode{4, 2, 0}, Message: "greylisted"}
	}
	s.to = to
	return nil
}

func (s *sinkSession) Data(r io.Reader) error {
	text, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if s.sink.hold != nil {
		s.sink.mu.Lock()
		s.sink.waiting++
		s.sink.mu.Unlock()
		<-s.sink.hold
	}
	s.sink.mu.Lock()
	defer s.sink.mu.Unlock()
	s.sink.received = append(s.sink.received, letter{s.from, s.to, string(text)})
	return nil
}

func (s *sinkSession) Reset()        {}
func (s *sinkSession) Logout() error { return nil }

// A post is a house with a mail service: the project "post" hands its mail to a sink, "mute" has mail switched off,
// "bare" has no SMTP config, "odd" one with a wrong password, "dead" one that nobody listens at.
type post struct {
	*house
	sink *sink
	mail *mailer.Mailer

	poster, reader, other string // keys: mail and read on post; read on everything; mail on mute
}

const (
	postID, muteID, bareID, oddID, deadID = 41, 42, 43, 44, 45
	secretPassword                        = "right"
)

// startPost serves it. change alters the mailer's options.
func startPost(t testing.TB, s *sink, change func(*mailer.Options), changes ...func(*api.Options)) *post {
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
			host, port, _ := net.SplitHostPort(p.sink.addr)
			c.SMTP = &catalog.SMTPConfig{ID: 300 + id, UUID: catalog.DeriveUUID(catalog.KindSMTPConfig, c.Project.UUID), Host: host,
				Username: "acme", Password: catalog.Secret{Source: catalog.SecretPlain, Ref: secretPassword},
				FromEmail: "hello@" + slug + ".example", FromName: "The Post, Inc.", Active: true}
			fmt.Sscan(port, &c.SMTP.Port)
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
