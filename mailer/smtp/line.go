package smtp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"strconv"
	"time"

	gosmtp "github.com/emersion/go-smtp"
)

// Limits on one reply.
const (
	maxReplyLine  = 4096 // bytes; RFC 5321 4.5.3.1.5 grants 512
	maxReplyLines = 200
)

// errNoReply means that a line is no SMTP reply. It does not quote the line: any program may answer, and its words must
// not reach a caller.
const errNoReply = textproto.ProtocolError("not an SMTP reply")

// A line is the connection that go-smtp's client gets. It reads the server's replies itself, within the limits, and
// keeps their texts; the client reads a short line with the code instead. So
//
//   - no text of a server reaches an error of the client or of net/textproto, which quote what they cannot parse, and
//     a reply of many lines costs linear time;
//   - any code of the right class will do, although the client accepts only one code;
//   - the client knows of no extensions. It would add BODY=8BITMIME to MAIL, which some providers refuse, and which a
//     message of 7 bits does not need;
//   - nothing waits in the client's buffer, so that replies which the server sent too early can be detected here.
//
// The methods are for one goroutine at a time.
type line struct {
	net.Conn // wire, or TLS over it
	r        *bufio.Reader

	code    int    // of the last reply
	text    []byte // of the last reply, without codes, lines joined by LF
	replies int    // how many were read
	unread  []byte // what the client reads next

	beforeReply func() // runs before the next reply is read; nil for none
}

func newLine(c net.Conn) line { return line{Conn: c, r: bufio.NewReaderSize(c, maxReplyLine)} }

// Read gives the client its line for the next reply, with the code that the client accepts: go-smtp wants exactly 250
// and 354, and tries HELO only after 500 and 502.
func (l *line) Read(p []byte) (int, error) {
	if len(l.unread) == 0 {
		if err := l.reply(); err != nil {
			return 0, err
		}
		code := l.code
		switch {
		case code/100 == 2:
			code = 250
		case code/100 == 3:
			code = 354
		case code == 504:
			code = 502
		}
		l.unread = fmt.Appendf(nil, "%d -\r\n", code)
	}
	n := copy(p, l.unread)
	l.unread = l.unread[n:]
	return n, nil
}

// SetDeadline does nothing: each stage of an attempt has its own limit, see wire.within.
func (l *line) SetDeadline(time.Time) error { return nil }

// Close does nothing: go-smtp closes a connection whose greeting is a refusal, but that server still gets a QUIT.
func (l *line) Close() error { return nil }

// command sends a line and expects a reply. The line contains neither CR nor LF.
func (l *line) command(line string, least, most int) error {
	if _, err := io.WriteString(l.Conn, line+"\r\n"); err != nil {
		return err
	}
	return l.expect(least, most)
}

// expect reads one reply. A code of 400 or more is the refusal, any other outside of least to most is errNoReply.
func (l *line) expect(least, most int) error {
	err := l.reply()
	switch {
	case err != nil:
		return err
	case l.code >= 400:
		return l.refusal()
	case l.code < least || l.code > most:
		return errNoReply
	}
	return nil
}

// reply reads one reply (RFC 5321 4.2) into code and text. A line that is no reply is errNoReply, too much is errFlood.
func (l *line) reply() error {
	if l.beforeReply != nil {
		l.beforeReply()
		l.beforeReply = nil
	}
	l.text = l.text[:0]
	for n := 0; ; n++ {
		line, err := l.r.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull) || n == maxReplyLines:
			return errFlood
		case err != nil:
			return err
		}
		line = bytes.TrimRight(line, "\r\n")
		code, more, ok := replyLine(line)
		if !ok {
			return errNoReply
		}
		if n > 0 {
			l.text = append(l.text, '\n')
		}
		l.text = append(l.text, line[min(4, len(line)):]...)
		if !more {
			l.code = code
			l.replies++
			return nil
		}
	}
}

// replyLine returns a line's code, and whether more lines follow.
func replyLine(line []byte) (code int, more, ok bool) {
	if len(line) < 3 || line[0] < '2' || line[0] > '5' || len(line) > 3 && line[3] != '-' && line[3] != ' ' {
		return 0, false, false
	}
	code, err := strconv.Atoi(string(line[:3]))
	return code, len(line) > 3 && line[3] == '-', err == nil
}

// refusal returns the last reply as an error.
func (l *line) refusal() error { return &textproto.Error{Code: l.code, Msg: string(l.text)} }

// answered translates the client's error: into the server's refusal, with its text, or an error of the connection.
func (l *line) answered(err error) error {
	switch {
	case err == nil || !errors.As(err, new(*gosmtp.SMTPError)):
		return err
	case l.code >= 400:
		return l.refusal()
	}
	return errNoReply
}
