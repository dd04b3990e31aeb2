package smtp_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	netsmtp "net/smtp"
	"testing"
	"time"

	"fingerpost/mailer/smtp"
)

// newQuick starts a server that accepts everything, and allocates nothing while it does.
func newQuick(t testing.TB) smtp.Server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			quick(c)
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	a := l.Addr().(*net.TCPAddr)
	return smtp.Server{Host: a.IP.String(), Port: a.Port}
}

func quick(c net.Conn) {
	ok, goAhead, inside := []byte("250 ok\r\n"), []byte("354 go\r\n"), false
	r, w := bufio.NewReader(c), bufio.NewWriter(c)
	_, _ = c.Write([]byte("220 hi\r\n"))
	for {
		line, err := r.ReadSlice('\n')
		switch {
		case err != nil:
			return
		case inside && !bytes.Equal(line, []byte(".\r\n")):
		case !inside && bytes.HasPrefix(line, []byte("DATA")):
			inside = true
			_, _ = w.Write(goAhead)
		case bytes.HasPrefix(line, []byte("EHLO")):
			_, _ = w.WriteString("250 hi\r\n")
		default:
			inside = false
			_, _ = w.Write(ok)
		}
		if r.Buffered() == 0 {
			_ = w.Flush()
		}
	}
}

// TestSendAllocations: a mail over a reused connection costs as few allocations when it is long as when it is short.
func TestSendAllocations(t *testing.T) {
	server := newQuick(t) // first, so that it ends last
	tr := newTestTransport(t, smtp.TransportOptions{})
	allocations := func(lines int) float64 {
		message := bytes.Repeat([]byte("0123456789\r\n"), lines)
		return testing.AllocsPerRun(80, func() {
			if out := tr.Send(t.Context(), server, testEnvelope, message); out.Class != smtp.Accepted {
				t.Errorf("%+v", out)
			}
		})
	}
	short, long := allocations(1), allocations(1000)
	t.Logf("%v with 1 line, %v with 1,000", short, long)
	if long > short+5 {
		t.Errorf("%v allocations with 1,000 lines, %v with 1", long, short)
	}
}

// BenchmarkSend compares reused with new connections; the allocations are those of the client and the server, except
// for "quick", whose server has none.
func BenchmarkSend(b *testing.B) {
	message := bytes.Repeat([]byte("This is a line of a mail that says hello to somebody.\r\n"), 100)
	sends := func(b *testing.B, server smtp.Server, send func(*smtp.Transport) smtp.Outcome) {
		tr := newTestTransport(b, smtp.TransportOptions{})
		b.ReportAllocs()
		for b.Loop() {
			if out := send(tr); out.Class != smtp.Accepted {
				b.Fatalf("%+v", out)
			}
		}
	}
	both := func(b *testing.B, name string, server smtp.Server) {
		b.Run(name+"/used", func(b *testing.B) {
			sends(b, server, func(tr *smtp.Transport) smtp.Outcome {
				return tr.Send(b.Context(), server, testEnvelope, message)
			})
		})
		b.Run(name+"/fresh", func(b *testing.B) {
			sends(b, server, func(tr *smtp.Transport) smtp.Outcome {
				return tr.SendAlone(b.Context(), server, testEnvelope, message, func(smtp.Step) {})
			})
		})
	}
	quick := newQuick(b)
	b.Run("quick/used", func(b *testing.B) {
		sends(b, quick, func(tr *smtp.Transport) smtp.Outcome { return tr.Send(b.Context(), quick, testEnvelope, message) })
	})
	b.Run("quick/bare net-smtp", func(b *testing.B) { // what the rest costs
		c, err := netsmtp.Dial(fmt.Sprintf("%s:%d", quick.Host, quick.Port))
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		b.ReportAllocs()
		for b.Loop() {
			err := errors.Join(c.Mail(testEnvelope.From), c.Rcpt(testEnvelope.To))
			w, dataErr := c.Data()
			if err := errors.Join(err, dataErr); err != nil {
				b.Fatal(err)
			}
			_, err = w.Write(message)
			if err := errors.Join(err, w.Close()); err != nil {
				b.Fatal(err)
			}
		}
	})
	ca := newTestCA(b)
	peer := newPeer(b, ca.server(b, "127.0.0.1", time.Hour), false)
	server := peer.server()
	server.TLS, server.CA = true, ca.pem
	withLogin(&server)
	both(b, "go-smtp with STARTTLS and AUTH", server)
	b.Run("Postfix with STARTTLS and AUTH", func(b *testing.B) {
		r := newPostfix(b)
		server := r.at(r.starttls)
		withLogin(&server)
		both(b, "of Debian", server)
	})
}
