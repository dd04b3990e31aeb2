package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"net/smtp"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"
)

// A bareMailer is the baseline of mail: it sends ready messages to a sink over net/smtp, with one synced Pebble batch
// for each. It has no HTTP, no checks, no composing, no readable log, and stores no result. It runs in this process,
// which otherwise runs only the sink. Safe for concurrent use by writers.
type bareMailer struct {
	to     *sink
	fresh  bool        // one connection per mail
	secure *tls.Config // nil: clear text, and no AUTH
	sample []byte      // a message with the mark of mail 0
	marks  *marks
	dir    string
	db     *pebble.DB
}

// bareMailer opens the bare mailer's store. ca is the PEM of the sink's CA, or nil for clear text.
func (m *mailBench) bareMailer(to *sink, ca []byte, fresh bool) (b *bareMailer, err error) {
	b = &bareMailer{to: to, fresh: fresh, sample: m.sample, marks: &m.marks, dir: filepath.Join(m.work, "bare-mail")}
	if ca != nil {
		b.secure = &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "127.0.0.1"}
		b.secure.RootCAs.AppendCertsFromPEM(ca)
	}
	if err = os.RemoveAll(b.dir); err == nil {
		b.db, err = pebble.Open(b.dir, &pebble.Options{MemTableSize: bareMemTable, Logger: quietPebble{}})
	}
	if err != nil {
		return nil, fmt.Errorf("open the bare mailer's store: %w", err)
	}
	return b, nil
}

// stop removes the store.
func (b *bareMailer) stop() error { return errors.Join(b.db.Close(), os.RemoveAll(b.dir)) }

// writer returns one worker, with a connection of its own.
func (b *bareMailer) writer() (writer, error) {
	w := &bareWorker{bareMailer: b, message: bytes.Clone(b.sample)}
	return writer{
		write: func(_, number int) error {
			err := w.send(number)
			if err == nil {
				b.marks.sent(number)
			}
			return err
		},
		close: w.bye,
	}, nil
}

// A bareWorker sends over one connection at a time.
type bareWorker struct {
	*bareMailer
	client  *smtp.Client // nil before the first mail, and between mails that have a connection each
	message []byte
	marked  int // the number in message
	key     [8]byte
}

const bareFrom = "hello@bench.example"

// keptMails is how many mails are in the store: each replaces an earlier one, as fingerpost deletes a sent message.
const keptMails = 4096

func (w *bareWorker) send(n int) (err error) {
	w.message = bytes.ReplaceAll(w.message, []byte(mark(w.marked)), []byte(mark(n)))
	w.marked = n
	binary.BigEndian.PutUint64(w.key[:], uint64(n%keptMails))
	if err := w.db.Set(w.key[:], w.message, pebble.Sync); err != nil {
		return err
	}
	if w.client == nil {
		if w.client, err = w.dial(); err != nil {
			return err
		}
	}
	if err := errors.Join(w.client.Mail(bareFrom), w.client.Rcpt(mark(n)+markDomain)); err != nil {
		return err
	}
	data, err := w.client.Data()
	if err != nil {
		return err
	}
	_, err = data.Write(w.message)
	if err = errors.Join(err, data.Close()); err == nil && w.fresh {
		err = w.client.Quit()
		w.client = nil
	}
	return err
}

func (b *bareMailer) dial() (*smtp.Client, error) {
	c, err := smtp.Dial(b.to.listener.Addr().String())
	if err != nil || b.secure == nil {
		return c, err
	}
	if err = c.StartTLS(b.secure); err == nil {
		err = c.Auth(smtp.PlainAuth("", sinkUser, sinkPassword, "127.0.0.1"))
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// bye closes the connection and ignores errors.
func (w *bareWorker) bye() {
	if w.client != nil {
		_ = w.client.Quit()
	}
}
