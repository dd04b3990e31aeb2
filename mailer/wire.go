package mailer

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/textproto"
	"sync"
	"time"
)

// What a server may say. One that says more is not worth listening to.
const (
	maxSessionBytes = 1 << 20 // read from the network on one connection, TLS included
	maxReplyLine    = 4096    // bytes; RFC 5321 4.5.3.1.5 grants 512
	maxReplyLines   = 200     // of one reply
	writeBuffer     = 16 << 10
)

// errFlood is what a server gets for more than the above.
var errFlood = errors.New("the server says more than any reply needs")

// errNoReply is a line that is no SMTP reply. It does not quote it: who speaks no SMTP may be anything, and what it
// says is nobody's business (mailer/README.md).
const errNoReply = textproto.ProtocolError("not an SMTP reply")

// past is a deadline that has been missed.
var past = time.Unix(1, 0)

// A wire is a TCP connection that counts what is read, and whose reads and writes a context can end. But for the end of
// that context, one goroutine uses it at a time.
type wire struct {
	net.Conn
	left int // bytes that may still be read

	mu      sync.Mutex
	watcher *wireWatcher // whose context may end what is under way; nil for none
}

type wireWatcher struct{ ended bool }

func (w *wire) Read(p []byte) (int, error) {
	if w.left <= 0 {
		return 0, errFlood
	}
	n, err := w.Conn.Read(p[:min(len(p), w.left)])
	w.left -= n
	return n, err
}

// SetWriteDeadline does nothing: package tls would give its goodbye five seconds of its own.
func (w *wire) SetWriteDeadline(time.Time) error { return nil }

// within gives what follows a time. It does not bring back what a context has ended.
func (w *wire) within(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watcher == nil || !w.watcher.ended {
		_ = w.Conn.SetDeadline(time.Now().Add(d))
	}
}

// watch lets the end of ctx end all reads and writes until release is called, which can be done more than once.
// A deadline that the context has moved stays until the next call of within.
func (w *wire) watch(ctx context.Context) (release func()) {
	me := &wireWatcher{}
	w.mu.Lock()
	w.watcher = me
	w.mu.Unlock()
	stop := context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.watcher == me { // else it comes late: the wire may serve another mail by now
			me.ended = true
			_ = w.Conn.SetDeadline(past)
		}
	})
	return func() {
		stop()
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.watcher == me {
			w.watcher = nil
		}
	}
}

// A line of SMTP both ways. Its methods are for one goroutine at a time.
type smtpConn struct {
	r    *bufio.Reader
	w    *bufio.Writer
	text []byte // of the last reply, without codes, lines joined by LF
}

func newSMTPConn(c net.Conn) smtpConn {
	return smtpConn{r: bufio.NewReaderSize(c, maxReplyLine), w: bufio.NewWriterSize(c, writeBuffer)}
}

// put writes a line, which is sent with the next Flush. The words hold neither CR nor LF.
func (c *smtpConn) put(words ...string) {
	for _, word := range words {
		_, _ = c.w.WriteString(word) // the writer keeps its error for Flush
	}
	_, _ = c.w.WriteString("\r\n")
}

// command sends a line and reads the reply to it.
func (c *smtpConn) command(words ...string) (code int, err error) {
	c.put(words...)
	if err := c.w.Flush(); err != nil {
		return 0, err
	}
	return c.reply()
}

// reply reads one reply (RFC 5321 4.2) into text. A line that is none is errNoReply, too much errFlood. net/textproto
// is not used to read: it joins lines at quadratic cost and quotes what it cannot understand.
func (c *smtpConn) reply() (code int, err error) {
	c.text = c.text[:0]
	for n := 0; ; n++ {
		line, err := c.r.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull) || n == maxReplyLines:
			return 0, errFlood
		case err != nil:
			return 0, err
		}
		for len(line) > 0 && (line[len(line)-1] == '\n' || line[len(line)-1] == '\r') {
			line = line[:len(line)-1]
		}
		code, more, ok := replyLine(line)
		if !ok {
			return 0, errNoReply
		}
		if n > 0 {
			c.text = append(c.text, '\n')
		}
		c.text = append(c.text, line[min(4, len(line)):]...)
		if !more {
			return code, nil
		}
	}
}

// replyLine takes a line's code, and whether more lines follow.
func replyLine(line []byte) (code int, more, ok bool) {
	if len(line) < 3 || line[0] < '2' || line[0] > '5' {
		return 0, false, false
	}
	for _, c := range line[:3] {
		if c < '0' || c > '9' {
			return 0, false, false
		}
		code = code*10 + int(c-'0')
	}
	if len(line) == 3 {
		return code, false, true
	}
	return code, line[3] == '-', line[3] == '-' || line[3] == ' '
}

// refusal is the last reply as an error.
func (c *smtpConn) refusal(code int) error {
	return &textproto.Error{Code: code, Msg: string(c.text)}
}
