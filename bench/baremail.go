package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"net/smtp"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"fingerpost/bench/mailsink"
)

// A bareMailer is the baseline of mail: it sends ready messages to a sink over net/smtp, with one synced Pebble batch
// for each. It has no HTTP, no checks, no composing, no readable log, and stores no result. It runs in this process,
// which otherwise runs only the sink. Safe for concurrent use by workers.
type bareMailer struct {
	to     *mailsink.Sink
	secure *tls.Config // with a secure sink, to which each mail has a connection of its own
	sample []byte      // a message with the mark of mail 0
	db     *pebble.DB
}

// newBareMailer prepares the bare mailer, with a store of a name of its own.
func (m *mailBench) newBareMailer(name string, to *mailsink.Sink) (b *bareMailer, err error) {
	b = &bareMailer{to: to, sample: m.sample,
		secure: &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "127.0.0.1"}}
	b.secure.RootCAs.AppendCertsFromPEM(m.ca)
	b.db, err = m.bareStore(filepath.Join(m.work, "bare-mail-"+name))
	return b, err
}

// side is the bare mailer; numbers is the last number of a mail.
func (b *bareMailer) side(numbers *atomic.Int64) *side {
	return &side{name: "bare mailer", pid: os.Getpid(), worker: func(int) worker {
		w := &bareWorker{bareMailer: b, message: bytes.Clone(b.sample)}
		return worker{close: func() { _ = w.bye() }, do: func() error {
			number := int(numbers.Add(1))
			err := w.send(number)
			if err == nil {
				b.to.Sent(number)
			}
			return err
		}}
	}}
}

// A bareWorker sends over one connection at a time.
type bareWorker struct {
	*bareMailer
	client  *smtp.Client // nil before the first mail, and between mails that have a connection each
	message []byte
	marked  int // the number in message
}

const bareFrom = "hello@bench.example"

// keptMails is how many mails are in the store: each replaces an earlier one, as fingerpost deletes a sent message.
const keptMails = 4096

func (w *bareWorker) send(n int) (err error) {
	w.message = bytes.ReplaceAll(w.message, []byte(mailsink.Mark(w.marked)), []byte(mailsink.Mark(n)))
	w.marked = n
	key := binary.BigEndian.AppendUint64(nil, uint64(n%keptMails))
	if err := w.db.Set(key, w.message, pebble.Sync); err != nil {
		return err
	}
	if err := w.dial(); err != nil {
		return err
	}
	if err := errors.Join(w.client.Mail(bareFrom), w.client.Rcpt(mailsink.Mark(n)+mailsink.Domain)); err != nil {
		return err
	}
	data, err := w.client.Data()
	if err != nil {
		return err
	}
	_, err = data.Write(w.message)
	if err = errors.Join(err, data.Close()); err == nil && w.to.Secure {
		err = w.bye()
	}
	return err
}

// dial opens the connection unless it is open.
func (w *bareWorker) dial() (err error) {
	if w.client != nil {
		return nil
	}
	if w.client, err = smtp.Dial(w.to.Addr); err != nil || !w.to.Secure {
		return err
	}
	if err = w.client.StartTLS(w.secure); err == nil {
		err = w.client.Auth(smtp.PlainAuth("", mailsink.User, mailsink.Password, "127.0.0.1"))
	}
	return err
}

// bye closes the connection.
func (w *bareWorker) bye() (err error) {
	if w.client != nil {
		err = w.client.Quit()
		w.client = nil
	}
	return err
}
