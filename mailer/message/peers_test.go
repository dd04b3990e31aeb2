package message_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	netsmtp "net/smtp"
	"os/exec"
	"strings"
	"testing"

	"github.com/emersion/go-smtp"

	"fingerpost/cmd/testrig"
	"fingerpost/mailer/message"
)

// composed returns count messages of nasty drafts.
func composed(t *testing.T, seed uint64, count int) (drafts []message.Draft, messages [][]byte) {
	t.Helper()
	for n := newNasty(seed); len(messages) < count; {
		d, _, _, _ := n.draft()
		if len(n.bad) == 0 {
			drafts, messages = append(drafts, d), append(messages, []byte(compose(t, d)))
		}
	}
	return drafts, messages
}

// TestNastyPython lets Python's email package, which shares no code with Go's, read 1,000 messages: it finds the
// intended content, and no defect.
func TestNastyPython(t *testing.T) {
	count := testrig.Size(t, 1000, 50)
	python := testrig.Need(t, "python3")[0]
	drafts, messages := composed(t, 3, count)
	var stdin, stderr bytes.Buffer
	for _, message := range messages {
		fmt.Fprintf(&stdin, "%d\n%s", len(message), message)
	}
	cmd := exec.Command(python, "testdata/readback.py")
	cmd.Stdin, cmd.Stderr = &stdin, &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.Bytes())
	}
	lines := json.NewDecoder(bytes.NewReader(out))
	for i, d := range drafts {
		var got struct {
			reading
			Unspaced string // the name by Python's newer API, without its white space, which that cannot keep
			Defects  []string
		}
		if err := lines.Decode(&got); err != nil {
			t.Fatal(err)
		}
		if want := reads(d); got.reading != want || got.Unspaced != strings.Join(strings.Fields(d.FromName), "") || len(got.Defects) > 0 {
			t.Errorf("case %d: Python reads %+q\nwant %+q\nof\n%s", i, got, want, messages[i])
		}
	}
}

// A delivery is what a server got.
type delivery struct {
	from, to string
	message  []byte
}

// An inbox is the session of a real SMTP server that keeps what it is given.
type inbox struct {
	delivery
	got chan<- delivery
}

func (s *inbox) Mail(from string, _ *smtp.MailOptions) error { s.from = from; return nil }
func (s *inbox) Rcpt(to string, _ *smtp.RcptOptions) error   { s.to = to; return nil }
func (s *inbox) Reset()                                      { s.delivery = delivery{} }
func (s *inbox) Logout() error                               { return nil }

func (s *inbox) Data(r io.Reader) (err error) {
	s.message, err = io.ReadAll(r)
	s.got <- s.delivery
	return err
}

// TestComposedArrives sends messages through net/smtp to a server: the composed bytes arrive unchanged, although dots
// were stuffed on the way, and the server needs no extension.
func TestComposedArrives(t *testing.T) {
	got := make(chan delivery, 1)
	server := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &inbox{got: got}, nil }))
	server.Domain = "mx.example"
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Close()
		<-served
	})
	client, err := netsmtp.Dial(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	drafts, messages := composed(t, 4, 500)
	for i, d := range drafts {
		from, to := d.Envelope()
		step := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatalf("case %d, %q to %q: %v", i, from, to, err)
			}
		}
		step(client.Mail(from))
		step(client.Rcpt(to))
		w, err := client.Data()
		step(err)
		_, err = w.Write(messages[i])
		step(err)
		step(w.Close())
		arrived := <-got
		if arrived.from != unquoted(from) || arrived.to != unquoted(to) {
			t.Errorf("case %d arrives from %q to %q, want %q to %q", i, arrived.from, arrived.to, from, to)
		}
		if !bytes.Equal(arrived.message, messages[i]) {
			t.Fatalf("case %d arrives as\n%q\nwas composed as\n%q", i, arrived.message, messages[i])
		}
	}
	if err := client.Quit(); err != nil {
		t.Error(err)
	}
}
