package mailer_test

import (
	"bufio"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// A mute is an SMTP server that stops answering once it has received a line with a certain prefix. It ends with the
// test.
type mute struct {
	listener net.Listener
	at       string // the prefix; "" for one that does not even greet

	mu    sync.Mutex // guards what follows
	dials int
	heard strings.Builder
}

func newMute(t testing.TB, at string) *mute {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := &mute{listener: l, at: at}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = c.Close() })
			m.mu.Lock()
			m.dials++
			m.mu.Unlock()
			all.Go(func() { m.talk(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
	})
	return m
}

func (m *mute) talk(c net.Conn) {
	defer c.Close()
	r := bufio.NewReader(io.TeeReader(c, m))
	if m.at == "" {
		_, _ = io.Copy(io.Discard, r)
		return
	}
	reply := "220 mute.example"
	for inside := false; ; {
		if reply != "" {
			if _, err := io.WriteString(c, reply+"\r\n"); err != nil {
				return
			}
		}
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		if strings.HasPrefix(line, m.at) && (inside || m.at != ".") {
			_, _ = io.Copy(io.Discard, r)
			return
		}
		switch {
		case inside:
			reply = ""
		case strings.HasPrefix(line, "EHLO"):
			reply = "250-mute.example\r\n250-STARTTLS\r\n250 AUTH PLAIN"
		case strings.HasPrefix(line, "DATA"):
			reply, inside = "354 go", true
		default:
			reply = "250 ok"
		}
	}
}

// Write records what was received.
func (m *mute) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.heard.Write(p)
}

// got reports whether a connected client has sent a text.
func (m *mute) got(text string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dials > 0 && strings.Contains(m.heard.String(), text)
}

func (m *mute) Port() int { return m.listener.Addr().(*net.TCPAddr).Port }
