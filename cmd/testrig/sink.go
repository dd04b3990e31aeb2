package testrig

import (
	"crypto/tls"
	"encoding/base64"
	"errors"
	"io"
	"log"
	"net"
	"net/mail"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// A Sink is an SMTP server at 127.0.0.1 that keeps the mail that it takes. It refuses the recipients "nobody" (550) and
// "later" (450) of any domain. What it does otherwise, a test says with Set, also while it runs. It is safe for
// concurrent use.
type Sink struct {
	TLS *tls.Config // it offers STARTTLS; nil: it does not. Set it before Up

	mu       sync.Mutex // guards what follows
	rules    SinkRules
	counts   SinkCounts
	offered  []Letter
	taken    []Letter
	held     chan struct{} // closed when replies go on; nil if none is held
	addr     string
	server   *smtp.Server
	listener net.Listener
	serving  chan struct{}
}

// SinkRules say what a Sink does.
type SinkRules struct {
	User, Password string   // of its account; without a password it offers no login and wants none
	Tokens         []string // access tokens of its account; it offers XOAUTH2 if there are any, and wants a login
	Open           bool     // mail without a login is taken, too
	Welcome        bool     // the recipient "later" is taken
	Chatty         bool     // its refusal of a login repeats what it was told

	Login     func()                  // called once, at the next login
	Sender    func(from string) error // the reply to MAIL FROM
	Recipient func(to string) error   // the reply to RCPT TO, instead of the rule for "nobody" and "later"
	// the reply to the final dot of the nth mail that was offered, from 1; nil takes it
	Answer func(n int, l Letter) error
}

// SinkCounts count what a Sink has seen.
type SinkCounts struct {
	Dials, Logins int
	Offered       int // mails whose final dot has come
	Held          int // of these, those that had to wait for the end of Hold
	Busy, Most    int // mails between MAIL FROM and the reply to the dot: now, and the most at a time
}

// A Letter is a mail at a Sink.
type Letter struct{ From, To, Text string }

// MessageID returns the header, or "".
func (l Letter) MessageID() string {
	m, err := mail.ReadMessage(strings.NewReader(l.Text))
	if err != nil {
		return ""
	}
	return m.Header.Get("Message-ID")
}

// ErrHangUp, returned by SinkRules.Answer, closes the connection instead of answering.
var ErrHangUp = errors.New("hang up")

// NewSink returns a Sink that is up until the test ends.
func NewSink(t testing.TB) *Sink {
	t.Helper()
	s := &Sink{}
	if err := s.Up(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Down)
	return s
}

// Up makes it listen. Its port stays the same when it goes down and comes up again.
func (s *Sink) Up() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server != nil {
		return errors.New("it is up already")
	}
	l, err := s.listen()
	if err != nil {
		return err
	}
	server := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.counts.Dials++
		return &session{Sink: s, conn: c, in: !s.rules.login() || s.rules.Open}, nil
	}))
	server.Domain, server.AllowInsecureAuth, server.MaxMessageBytes = "sink.example", true, 4<<20
	server.ReadTimeout, server.WriteTimeout, server.TLSConfig = Patience, Patience, s.TLS
	server.ErrorLog = log.New(io.Discard, "", 0)
	serving := make(chan struct{})
	s.addr, s.server, s.listener, s.serving = l.Addr().String(), server, l, serving
	go func() {
		defer close(serving)
		_ = server.Serve(l)
	}()
	return nil
}

// listen takes the port of before. A program that the test starts has a copy of the old socket until its exec, so the
// port
// may be taken for a moment.
func (s *Sink) listen() (l net.Listener, err error) {
	if s.addr == "" {
		return net.Listen("tcp", "127.0.0.1:0")
	}
	for end := time.Now().Add(Patience); time.Now().Before(end); <-time.After(5 * time.Millisecond) {
		if l, err = net.Listen("tcp", s.addr); err == nil {
			break
		}
	}
	return l, err
}

// Down closes it and its connections.
func (s *Sink) Down() {
	s.mu.Lock()
	server, l, serving := s.server, s.listener, s.serving
	s.server = nil
	s.mu.Unlock()
	if server != nil {
		_ = server.Close()
		_ = l.Close() // which the server may not have taken up yet
		<-serving
	}
}

// Addr returns its host and port.
func (s *Sink) Addr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addr
}

// Port returns its port.
func (s *Sink) Port() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listener.Addr().(*net.TCPAddr).Port
}

// Set changes its rules.
func (s *Sink) Set(change func(*SinkRules)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.rules)
}

// Answer sets SinkRules.Answer.
func (s *Sink) Answer(f func(n int, l Letter) error) { s.Set(func(r *SinkRules) { r.Answer = f }) }

// Hold makes the replies to final dots wait until release is called.
func (s *Sink) Hold() (release func()) {
	held := make(chan struct{})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = held
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.held = nil
		close(held)
	})
}

// Counts returns what it has seen.
func (s *Sink) Counts() SinkCounts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts
}

// Letters returns the mails that it has taken.
func (s *Sink) Letters() []Letter {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken[:len(s.taken):len(s.taken)]
}

// Offered returns the mails whose final dot has come, whether it took them or not.
func (s *Sink) Offered() []Letter {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.offered[:len(s.offered):len(s.offered)]
}

// To returns the mails that it has taken for an address.
func (s *Sink) To(address string) (found []Letter) {
	for _, l := range s.Letters() {
		if l.To == address {
			found = append(found, l)
		}
	}
	return found
}

// Refusal is a reply of an SMTP server, such as Refusal(550, 5, 1, 1, "no such user").
func Refusal(code, class, subject, detail int, message string) error {
	return &smtp.SMTPError{Code: code, EnhancedCode: smtp.EnhancedCode{class, subject, detail}, Message: message}
}

// A session is one connection to a Sink.
type session struct {
	*Sink
	conn   *smtp.Conn
	in     bool // it may send
	busy   bool
	letter Letter
}

func (s *session) read() SinkRules {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rules
}

// login reports whether there is an account.
func (r *SinkRules) login() bool { return r.Password != "" || len(r.Tokens) > 0 }

func (s *session) AuthMechanisms() (all []string) {
	r := s.read()
	if r.Password != "" {
		all = append(all, sasl.Plain)
	}
	if len(r.Tokens) > 0 {
		all = append(all, "XOAUTH2")
	}
	return all
}

func (s *session) Auth(mechanism string) (sasl.Server, error) {
	if mechanism == "XOAUTH2" {
		return &xoauth2{session: s}, nil
	}
	return sasl.NewPlainServer(func(_, user, password string) error {
		told := base64.StdEncoding.EncodeToString([]byte("\x00" + user + "\x00" + password))
		return s.judge(user, password, "AUTH PLAIN "+told, func(r *SinkRules) bool { return password == r.Password })
	}), nil
}

// judge logs a client in, or refuses what it has told.
func (s *session) judge(user, secret, told string, right func(r *SinkRules) bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts.Logins++
	if s.rules.Login != nil {
		s.rules.Login()
		s.rules.Login = nil
	}
	switch r := &s.rules; {
	case user == r.User && right(r):
		s.in = true
		return nil
	case r.Chatty:
		return Refusal(535, 5, 7, 8, "no "+secret+" for "+user+", "+told)
	}
	return smtp.ErrAuthFailed
}

// xoauth2 is the server's side of XOAUTH2, as Google's and Microsoft's servers do it: a refusal is a challenge with its
// reason, and the reply after the client's empty answer.
type xoauth2 struct {
	*session
	refusal error
}

func (x *xoauth2) Next(response []byte) (challenge []byte, done bool, err error) {
	if x.refusal != nil {
		if len(response) > 0 {
			return nil, true, Refusal(501, 5, 5, 2, "an empty answer is expected")
		}
		return nil, true, x.refusal
	}
	if response == nil {
		return []byte{}, false, nil
	}
	fields := strings.Split(string(response), "\x01")
	if len(fields) != 4 || fields[2] != "" || fields[3] != "" {
		return nil, true, Refusal(501, 5, 5, 2, "this is no XOAUTH2")
	}
	user, token := strings.TrimPrefix(fields[0], "user="), strings.TrimPrefix(fields[1], "auth=Bearer ")
	x.refusal = x.judge(user, token, base64.StdEncoding.EncodeToString(response),
		func(r *SinkRules) bool { return slices.Contains(r.Tokens, token) })
	if x.refusal == nil {
		return nil, true, nil
	}
	return []byte(`{"status":"400","schemes":"bearer","scope":"https://mail.example/"}`), false, nil
}

func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	if !s.in {
		return smtp.ErrAuthRequired
	}
	if f := s.read().Sender; f != nil {
		if err := f(from); err != nil {
			return err
		}
	}
	s.letter = Letter{From: from}
	s.begin()
	return nil
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.letter.To = to
	r := s.read()
	if r.Recipient != nil {
		return r.Recipient(to)
	}
	switch local, _, _ := strings.Cut(to, "@"); {
	case local == "nobody":
		return Refusal(550, 5, 1, 1, "no such user")
	case local == "later" && !r.Welcome:
		return Refusal(450, 4, 2, 0, "greylisted")
	}
	return nil
}

func (s *session) Data(r io.Reader) error {
	defer s.end()
	text, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	s.letter.Text = string(text)
	if err := s.reply(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken = append(s.taken, s.letter)
	return nil
}

// reply is the answer to the final dot.
func (s *session) reply() error {
	s.mu.Lock()
	s.offered = append(s.offered, s.letter)
	s.counts.Offered++
	n, held, answer := s.counts.Offered, s.held, s.rules.Answer
	if held != nil {
		s.counts.Held++
	}
	s.mu.Unlock()
	if held != nil {
		<-held
	}
	if answer == nil {
		return nil
	}
	err := answer(n, s.letter)
	if errors.Is(err, ErrHangUp) {
		_ = s.conn.Conn().Close()
	}
	return err
}

func (s *session) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.busy {
		s.busy = true
		s.counts.Busy++
		s.counts.Most = max(s.counts.Most, s.counts.Busy)
	}
}

func (s *session) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy {
		s.busy = false
		s.counts.Busy--
	}
}

func (s *session) Reset()        { s.end() }
func (s *session) Logout() error { s.end(); return nil }
