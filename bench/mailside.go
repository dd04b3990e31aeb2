package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
)

// checkMarks compares what was sent with what has arrived.
func (m *mailBench) checkMarks() error { return m.marks.check(int(m.numbers.last.Load()) + 1) }

// caller returns a writer that sends mail of a project over one keep-alive connection. With queued each mail must be
// queued, otherwise each must be sent.
func (m *mailBench) caller(s *server, key, slug string, queued bool) (writer, error) {
	cl, err := dial(s.addr, key)
	if err != nil {
		return writer{}, err
	}
	cl.tail = mailTail(s.addr, key)
	var body []byte
	write := func(_, number int) error {
		body = appendSend(body[:0], slug, number)
		a, err := cl.send("POST ", "/api/mail/send/raw", body)
		if err != nil {
			return err
		}
		if err := judgeSend(a, queued); err != nil {
			return fmt.Errorf("mail %d of %s: %w", number, slug, err)
		}
		if !queued {
			m.marks.sent(number)
		}
		return nil
	}
	return writer{write: write, close: cl.close}, nil
}

func mailTail(addr, key string) string {
	return " HTTP/1.1\r\nHost: " + addr + "\r\nX-Internal-Service-Token: " + key + "\r\nX-Internal-Service-Name: bench\r\n\r\n"
}

// recitalJSON is recital in a JSON string.
var recitalJSON = bytes.ReplaceAll(recital, []byte("\r\n"), []byte(`\r\n`))

// appendSend is the body of a send with a mark.
func appendSend(dst []byte, slug string, number int) []byte {
	n := mark(number)
	dst = append(append(dst, `{"domain":"`...), slug...)
	dst = append(append(append(dst, hostSuffix+`","toEmail":"`...), n...), markDomain+`","subject":"Order `...)
	dst = append(append(append(dst, n...), `","bodyHtml":"<h1>Order `...), n...)
	dst = append(append(append(dst, `</h1>\r\n<p>\r\n`...), recitalJSON...), `</p>\r\n","bodyText":"Order `...)
	return append(append(append(append(dst, n...), `\r\n\r\n`...), recitalJSON...), `"}`...)
}

var (
	sentField   = []byte(`"data":{"sent":true,"logId":`)
	queuedField = []byte(`"data":{"sent":false,"queued":true,"logId":`)
)

// judgeSend returns an error unless the answer is the expected one.
func judgeSend(a answer, queued bool) error {
	status, field := 200, sentField
	if queued {
		status, field = 202, queuedField
	}
	if a.status != status || !bytes.Contains(a.body, field) {
		return fmt.Errorf("status %d, want %d: %s", a.status, status, a.body)
	}
	return nil
}

// served returns fingerpost as a side, with as many clients as -connections says.
func (m *mailBench) served(s *server, key, slug string) *writeSide {
	return &writeSide{name: s.name, pid: s.pid, files: &m.numbers, clients: m.load.connections, check: m.checkMarks,
		writer: func() (writer, error) { return m.caller(s, key, slug, false) }}
}

// bare returns the bare mailer as a side, with as many workers as fingerpost has connections.
func (m *mailBench) bare(b *bareMailer) *writeSide {
	return &writeSide{name: "bare mailer", pid: os.Getpid(), files: &m.numbers, clients: m.most, check: m.checkMarks, writer: b.writer}
}

// callTimes lets all clients together send n mails, each client for one of the projects.
func (m *mailBench) callTimes(ctx context.Context, s *server, key string, n int, queued bool, slugs ...string) error {
	callers := make([]writer, m.load.connections)
	for i := range callers {
		c, err := m.caller(s, key, slugs[i%len(slugs)], queued)
		if err != nil {
			return err
		}
		defer c.close()
		callers[i] = c
	}
	errs := make([]error, len(callers))
	var begun atomic.Int64
	var wg sync.WaitGroup
	for i, c := range callers {
		wg.Go(func() {
			for errs[i] == nil && ctx.Err() == nil && begun.Add(1) <= int64(n) {
				errs[i] = c.write(0, int(m.numbers.last.Add(1)))
			}
		})
	}
	wg.Wait()
	if err := errors.Join(append(errs, ctx.Err())...); err != nil {
		return err
	}
	return m.checkMarks()
}
