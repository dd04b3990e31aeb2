package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/smtp"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// bareMailCommand is the hidden sub-command as which bench runs itself to be the baseline of mail: a process of its own,
// as the server is, so that both reach the sink by the same way.
const bareMailCommand = "bare-mail"

// A bareMailer hands one ready message after the other to a server by net/smtp, with one synced batch of Pebble for each.
// No HTTP, no checks, nothing composed, no log that could be read, and nothing noted of what came of it.
type bareMailer struct {
	addr        string
	connections int
	fresh       bool        // one connection for each mail
	secure      *tls.Config // nil: clear text, and no AUTH
	message     []byte      // with the mark of mail 0
	db          *pebble.DB
	next        atomic.Int64 // mail
}

// A bareOrder asks the process for a round, a bareAnswer says what came of it; both are lines of JSON.
type bareOrder struct {
	For   time.Duration `json:"for"`
	First int           `json:"first"` // number of the first mail
}

type bareAnswer struct {
	Mails     int    `json:"mails"`     // sent, with the numbers from First on
	Latencies []byte `json:"latencies"` // see latencies.encode
	Fault     string `json:"fault,omitempty"`

	Elapsed time.Duration `json:"elapsed"`
}

// runBareMail works at orders until standard input ends.
func runBareMail(args []string, stdin io.Reader, stdout io.Writer) (err error) {
	var m bareMailer
	flags := flag.NewFlagSet(bareMailCommand, flag.ContinueOnError)
	flags.StringVar(&m.addr, "addr", "", "the SMTP server")
	flags.IntVar(&m.connections, "connections", 1, "connections, and workers")
	flags.BoolVar(&m.fresh, "fresh", false, "make a connection for each mail")
	dir := flags.String("store", "", "folder of the store")
	message := flags.String("message", "", "file with the message of mail 0")
	ca := flags.String("ca", "", "file with the CA, for STARTTLS and AUTH")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("bare mail: %w", err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("bare mail: %w", err)
		}
	}()
	if m.message, err = os.ReadFile(*message); err != nil {
		return err
	}
	if *ca != "" {
		pem, err := os.ReadFile(*ca)
		if err != nil {
			return err
		}
		m.secure = &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "127.0.0.1"}
		m.secure.RootCAs.AppendCertsFromPEM(pem)
	}
	// The memtable is as large as fingerpost's; the rest is Pebble's own choice.
	if m.db, err = pebble.Open(*dir, &pebble.Options{MemTableSize: 16 << 20, Logger: silentLogger{}}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.db.Close()) }()
	return m.obey(stdin, stdout)
}

// silentLogger keeps Pebble's news of compactions off the terminal.
type silentLogger struct{}

func (silentLogger) Infof(string, ...any)  {}
func (silentLogger) Errorf(string, ...any) {}
func (silentLogger) Fatalf(format string, args ...any) {
	panic(fmt.Sprintf("bench: the bare mailer's store: "+format, args...))
}

func (m *bareMailer) obey(stdin io.Reader, stdout io.Writer) error {
	workers := make([]*bareWorker, m.connections)
	for i := range workers {
		workers[i] = &bareWorker{bareMailer: m, message: bytes.Clone(m.message)}
		defer workers[i].bye()
	}
	out := json.NewEncoder(stdout)
	for lines := bufio.NewScanner(stdin); lines.Scan(); {
		var order bareOrder
		if err := json.Unmarshal(lines.Bytes(), &order); err != nil {
			return err
		}
		if err := out.Encode(m.round(workers, order)); err != nil {
			return err
		}
	}
	return nil
}

// round lets the workers send as fast as they can.
func (m *bareMailer) round(workers []*bareWorker, order bareOrder) (a bareAnswer) {
	m.next.Store(int64(order.First))
	took, errs := make([]latencies, len(workers)), make([]error, len(workers))
	began := time.Now()
	var wg sync.WaitGroup
	for i, w := range workers {
		wg.Go(func() {
			for errs[i] == nil && time.Since(began) < order.For {
				start := time.Now()
				errs[i] = w.send(int(m.next.Add(1) - 1))
				took[i].add(time.Since(start))
			}
		})
	}
	wg.Wait()
	a.Elapsed, a.Mails = time.Since(began), int(m.next.Load())-order.First
	var all latencies
	for _, l := range took {
		all.merge(l)
	}
	var err error
	if a.Latencies, err = all.encode(); err != nil {
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		a.Fault = err.Error()
	}
	return a
}

// A bareWorker sends over one connection at a time.
type bareWorker struct {
	*bareMailer
	client  *smtp.Client // nil before the first mail, and between mails where each has its own connection
	message []byte
	marked  int // the number that message has
	key     [8]byte
}

const bareFrom = "hello@bench.example"

// keptMails is how many mails are in the store: each takes the place of one of before, as fingerpost's messages go when
// they are sent.
const keptMails = 4096

func (w *bareWorker) send(n int) (err error) {
	w.message = bytes.ReplaceAll(w.message, []byte(mark(w.marked)), []byte(mark(n)))
	w.marked = n
	binary.BigEndian.PutUint64(w.key[:], uint64(n%keptMails))
	batch := w.db.NewBatch()
	if err := errors.Join(batch.Set(w.key[:], w.message, nil), batch.Commit(pebble.Sync), batch.Close()); err != nil {
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

func (m *bareMailer) dial() (*smtp.Client, error) {
	c, err := smtp.Dial(m.addr)
	if err != nil || m.secure == nil {
		return c, err
	}
	if err = c.StartTLS(m.secure); err == nil {
		err = c.Auth(smtp.PlainAuth("", sinkUser, sinkPassword, "127.0.0.1"))
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// bye closes the connection; nobody asks how that went.
func (w *bareWorker) bye() {
	if w.client != nil {
		_ = w.client.Quit()
	}
}
