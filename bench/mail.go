package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"fingerpost/bench/machine"
	"fingerpost/bench/mailsink"
	"fingerpost/bench/wire"
	"fingerpost/resolver/catalog"
)

// mailOptions are the flags of mail.
type mailOptions struct{ waiting, listed int }

func (o *mailOptions) register(f *flag.FlagSet) {
	f.IntVar(&o.waiting, "waiting", o.waiting, "mail: mails that wait for a dead server")
	f.IntVar(&o.listed, "listed", o.listed, "mail: addresses on a suppression list")
}

func (o *mailOptions) check() error {
	if o.waiting < 1 {
		return errors.New("-waiting must be positive")
	}
	if o.listed < 1 || o.listed > catalog.MaxSuppressions {
		return fmt.Errorf("-listed must be from 1 to %d", catalog.MaxSuppressions)
	}
	return nil
}

// mailFlags are the server's flags for how long a send may take. The budget is shorter than the client's timeout, so
// that a slow send is answered 202 and reported.
func mailFlags() []string { return []string{"--smtp-allow", "127.0.0.0/8", "--mail-budget", "5s"} }

// A mailBench is one run of the command.
type mailBench struct {
	*bench
	numbers       atomic.Int64 // the last number of a mail
	clear, secure *mailsink.Sink
	ca            []byte // PEM
}

func (b *bench) newMailBench() (*mailBench, error) {
	config, ca, err := mailsink.NewCertificate()
	if err != nil {
		return nil, err
	}
	m := &mailBench{bench: b, ca: ca}
	if m.clear, err = b.newSink(nil); err != nil {
		return nil, err
	}
	m.secure, err = b.newSink(config)
	return m, err
}

// newSink starts a sink that is closed at the end of the command.
func (b *bench) newSink(config *tls.Config) (*mailsink.Sink, error) {
	s, stop, err := mailsink.New(config)
	if err == nil {
		b.atEnd(stop)
	}
	return s, err
}

// runMail measures sends.
func runMail(ctx context.Context, b *bench) (*report, error) {
	m, err := b.newMailBench()
	if err != nil {
		return nil, err
	}
	rep := &report{Parameters: map[string]any{
		"connections": b.connections, "rounds": b.rounds, "round": b.round.String(),
		"waiting": b.mail.waiting, "listed": b.mail.listed, "serverFlags": mailFlags(),
	}}
	rate, err := m.withTLSAndWithout(ctx, rep)
	if err == nil {
		err = m.withDeadServer(ctx, rate, rep)
	}
	if err == nil {
		err = m.withLongList(ctx, rep)
	}
	rep.note("A send is POST /api/mail/send/raw with text and HTML, in a body of %d bytes. "+
		"All %d mails that were answered \"sent\" were found at the sink, each once, with its own mark in recipient, "+
		"subject and both parts, and the whole text.", len(sendBody("", 0)), m.clear.Checked()+m.secure.Checked())
	rep.note("The server has at most 8 connections to one SMTP config, which it reuses; the sinks saw %d and %d. "+
		"Sinks, callers and server share the machine.", m.clear.Most(), m.secure.Most())
	rep.noteTmpfs(machine.FileSystem(m.work))
	return rep, err
}

// A mailServer is a fingerpost that sends mail.
type mailServer struct {
	*server
	key string
}

// client calls the mail API.
func (s mailServer) client() *wire.Client {
	return wire.NewClient(s.addr, "X-Internal-Service-Token", s.key, "X-Internal-Service-Name", "bench")
}

// startMail starts fingerpost on projects that send to the sinks of their slugs. A server whose name is in use already
// keeps its store; the config is written again in each run, because ports differ.
func (m *mailBench) startMail(ctx context.Context, name string, projects map[string]string) (s mailServer, err error) {
	dir := filepath.Join(m.work, name, "projects.d")
	if s.key, err = m.writeMailConfig(dir, projects); err != nil {
		return s, fmt.Errorf("write the config: %w", err)
	}
	s.server, err = m.fingerpost(ctx, name, dir, mailFlags()...)
	return s, err
}

// writeMailConfig writes a config folder with a project for each slug, which sends to an address, and returns the text
// of a key that may send. Ids follow from the slugs, so the store of an earlier run knows the projects.
func (m *mailBench) writeMailConfig(dir string, projects map[string]string) (key string, err error) {
	const caFile = "ca.pem"
	key, id := catalog.NewKeyText()
	files := map[string][]byte{keysFile: keyFile(id, key, "resolve", "read", "write", "mail"), caFile: m.ca}
	for slug, addr := range projects {
		host, port, err := net.SplitHostPort(addr)
		if err != nil {
			return "", err
		}
		text := fmt.Sprintf("project %q {\n  name   = %[1]q\n  status = \"ACTIVE\"\n  domain %q {}\n"+
			"  service_settings { mail_enabled = true }\n  smtp_config {\n    host       = %q\n    port       = %s\n"+
			"    from_email = \"hello@bench.example\"\n    from_name  = \"Bench\"\n", slug, slug+hostSuffix, host, port)
		if addr == m.secure.Addr {
			text += fmt.Sprintf("    tls_enabled = true\n    ca_file     = %q\n    username    = %q\n"+
				"    password    = env(\"BENCH_SMTP_PASSWORD\")\n", caFile, mailsink.User)
		}
		files[slug+".hcl"] = []byte(text + "  }\n}\n")
	}
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
		return "", err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return "", err
		}
	}
	return key, nil
}

// withTLSAndWithout alternates sends in clear text and sends over STARTTLS with AUTH. It returns how many mails a second
// were sent in clear text.
func (m *mailBench) withTLSAndWithout(ctx context.Context, rep *report) (rate float64, err error) {
	const inClear, overTLS = "in-clear", "over-tls"
	if err := m.clearStore("mail"); err != nil {
		return 0, err
	}
	s, err := m.startMail(ctx, "mail", map[string]string{inClear: m.clear.Addr, overTLS: m.secure.Addr})
	if err != nil {
		return 0, err
	}
	defer s.stop()
	unix.Sync()
	turnOf := func(name, slug string, to *mailsink.Sink) *turn {
		return m.sending(name, to, load{side: m.calls(s, slug, to), workers: m.connections})
	}
	plain, secure := turnOf("in clear text", inClear, m.clear), turnOf("over TLS", overTLS, m.secure)
	if err := m.alternate(ctx, plain, secure); err != nil {
		return 0, err
	}
	name := func(what string) string { return fmt.Sprintf("%d clients: %s", m.connections, what) }
	for _, of := range []struct{ figure, what, unit string }{
		{perSecond, "raw sends", "mails/s"},
		{"p50", "latency p50", "ms"},
		{"p99", "latency p99", "ms"},
		{cpuEach, "CPU", "µs/mail"},
	} {
		rep.add(measured(name(of.what), of.unit, plain.figures[of.figure]...),
			secure.against(plain, of.figure, name("TLS: "+of.what), of.unit))
	}
	return plain.median(perSecond), nil
}

// calls is a side that sends mail of a project over the API, a connection for each worker. Each mail must be sent, or
// queued if to is nil.
func (m *mailBench) calls(s mailServer, slug string, to *mailsink.Sink) *side {
	return &side{name: s.name, pid: s.pid, worker: func(int) worker {
		cl := s.client()
		return worker{close: cl.Close, do: func() error {
			number := int(m.numbers.Add(1))
			a, err := cl.Call("POST", "/api/mail/send/raw", sendBody(slug, number))
			if err == nil {
				err = judgeSend(a, to == nil)
			}
			if err != nil {
				return fmt.Errorf("mail %d of %s: %w", number, slug, err)
			}
			if to != nil {
				to.Sent(number)
			}
			return nil
		}}
	}}
}

// sending is a turn of which each round ends with a check of all mails.
func (m *mailBench) sending(name string, to *mailsink.Sink, l load) *turn {
	send := m.turn(name, l)
	return newTurn(name, func(ctx context.Context, t *turn) error {
		if err := send.measure(ctx, t); err != nil {
			return err
		}
		return to.Check()
	})
}

// send lets all clients together send n mails.
func (m *mailBench) send(ctx context.Context, s *side, n int) error {
	if _, err := (load{side: s, workers: m.connections, count: n}).run(ctx); err != nil {
		return err
	}
	return errors.Join(ctx.Err(), m.clear.Check())
}

// sendBody is the body of a send with a mark.
func sendBody(slug string, number int) []byte {
	n, text := mailsink.Mark(number), strings.ReplaceAll(mailsink.Recital, "\r\n", `\r\n`)
	return []byte(`{"domain":"` + slug + hostSuffix + `","toEmail":"` + n + mailsink.Domain + `","subject":"Order ` + n +
		`","bodyHtml":"<h1>Order ` + n + `</h1>\r\n<p>\r\n` + text + `</p>\r\n","bodyText":"Order ` + n + `\r\n\r\n` +
		text + `"}`)
}

// judgeSend returns an error unless the answer is the expected one.
func judgeSend(a wire.Answer, queued bool) error {
	status, field := 200, `"data":{"sent":true,"logId":`
	if queued {
		status, field = 202, `"data":{"sent":false,"queued":true,"logId":`
	}
	if a.Status != status || !bytes.Contains(a.Body, []byte(field)) {
		return fmt.Errorf("status %d, want %d: %s", a.Status, status, a.Body)
	}
	return nil
}

// withDeadServer measures the sends of a healthy project at a constant rate, half of the rate reached before. It
// alternates a server on which much mail of other projects waits for dead SMTP servers and a server without such mail.
// The server that is not measured is stopped.
func (m *mailBench) withDeadServer(ctx context.Context, reached float64, rep *report) error {
	const healthy, refused, silent = "healthy", "refused", "silent"
	refusing, err1 := deadAddress(1)
	hanging, err2 := deadAddress(2)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	var servers []mailServer
	for _, name := range []string{"mail-quiet", "mail-waiting"} {
		if err := m.clearStore(name); err != nil {
			return err
		}
		s, err := m.startMail(ctx, name, map[string]string{healthy: m.clear.Addr, refused: refusing, silent: hanging})
		if err != nil {
			return err
		}
		defer s.stop()
		defer func() { _ = s.signal(syscall.SIGCONT) }() // a stopped process could not end
		servers = append(servers, s)
	}
	m.say("letting %d mails wait for dead servers", m.mail.waiting)
	for i, slug := range []string{refused, silent} {
		if err := m.send(ctx, m.calls(servers[1], slug, nil), (m.mail.waiting+i)/2); err != nil {
			return err
		}
	}
	// From here on one of the two accepts connections and hangs, which costs its callers more than a refusal.
	ln, err := net.Listen("tcp", hanging)
	if err != nil {
		return err
	}
	m.atEnd(ln.Close)
	rate := reached / 2
	turnOf := func(name string, s, other mailServer) *turn {
		calls := m.calls(s, healthy, m.clear)
		send := m.sending(name, m.clear, load{side: calls, workers: m.connections, rate: rate})
		return newTurn(name, func(ctx context.Context, t *turn) error {
			if err := errors.Join(other.signal(syscall.SIGSTOP), s.signal(syscall.SIGCONT)); err != nil {
				return err
			}
			return send.measure(ctx, t)
		})
	}
	quiet, busy := turnOf("none wait", servers[0], servers[1]), turnOf("mails wait", servers[1], servers[0])
	if err := m.alternate(ctx, quiet, busy); err != nil {
		return err
	}
	if err := errors.Join(servers[0].signal(syscall.SIGCONT), servers[1].signal(syscall.SIGCONT)); err != nil {
		return err
	}
	waiting, err := metrics(servers[1].ops)
	if err != nil {
		return err
	}
	if depth := waiting["fingerpost_mail_queue_depth"]; int(depth) != m.mail.waiting {
		return fmt.Errorf("%v mails wait, of %d", depth, m.mail.waiting)
	}
	without, err1 := servers[0].memory()
	with, err2 := servers[1].memory()
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	name := func(what string) string {
		return fmt.Sprintf("%d mails wait for dead servers: %s", m.mail.waiting, what)
	}
	rep.Parameters["rate"] = rate
	rep.add(
		busy.against(quiet, "p50", name("a healthy project's latency p50"), "ms"),
		busy.against(quiet, "p99", name("its latency p99"), "ms").ratioAtMost(1.2),
		busy.against(quiet, cpuEach, name("its CPU"), "µs/mail"),
		measured(name("resident memory"), "MiB", with.now).over("none wait", without.now),
	)
	rep.note("A healthy project's sends come at a constant rate (%.0f a second) and count from when they were due. "+
		"Of those that wait, half have a server that refuses connections, half one that takes them and says nothing. "+
		"The two servers have stores of their own, and only one runs at a time.", rate)
	return nil
}

// signal stops a server or lets it continue.
func (s *server) signal(sig syscall.Signal) error { return s.cmd.Process.Signal(sig) }

// deadAddress returns an address that refuses connections. Its host is not 127.0.0.1, where another process could be
// given the port.
func deadAddress(number int) (string, error) {
	ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.%d:0", 100+number))
	if err != nil {
		return "", fmt.Errorf("reserve the address of a dead server: %w", err)
	}
	return ln.Addr().String(), ln.Close()
}
