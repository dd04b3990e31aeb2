package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// The projects of one server: one whose SMTP server works, and two whose mail waits.
const (
	healthySlug = "healthy"
	refusedSlug = "refused"
	silentSlug  = "silent"
)

// A deadServer is an address that accepts no mail: it refuses connections, or, after hang, accepts them and stays
// silent. It has a loopback address of its own, so that no other process gets its port.
type deadServer struct {
	address  string
	listener net.Listener // nil while it refuses connections
}

// newDeadServer returns a dead server. Each has a number of its own.
func newDeadServer(number int) (*deadServer, error) {
	ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.%d:0", 100+number))
	if err != nil {
		return nil, fmt.Errorf("reserve the address of a dead server: %w", err)
	}
	return &deadServer{address: ln.Addr().String()}, ln.Close()
}

// hang makes it accept connections without answering.
func (d *deadServer) hang() (err error) {
	d.listener, err = net.Listen("tcp", d.address)
	return err
}

func (d *deadServer) close() {
	if d.listener != nil {
		_ = d.listener.Close()
	}
}

// A waitSide is a server with mail that waits, or without.
type waitSide struct {
	server *server
	key    string
}

// withDeadServer measures the sends of a healthy project at a constant rate, half of the rate reached before unless
// -rate is set. It alternates a server on which much mail of other projects waits for dead SMTP servers and a server
// without such mail. The server that is not measured is stopped.
func (m *mailBench) withDeadServer(ctx context.Context, reached float64, rep *report) (err error) {
	rate := m.load.rate
	if rate == 0 {
		rate = reached / 2
	}
	refused, err := newDeadServer(1)
	if err != nil {
		return err
	}
	silent, err := newDeadServer(2)
	if err != nil {
		return err
	}
	defer silent.close()
	var quiet, busy waitSide
	for side, name := range map[*waitSide]string{&quiet: "mail-quiet", &busy: "mail-waiting"} {
		if err := m.startWaitSide(ctx, side, name, refused, silent); err != nil {
			return err
		}
		defer side.server.stop()
	}
	m.say("letting %d mails wait for dead servers", m.waiting)
	if err := m.callTimes(ctx, busy.server, busy.key, m.waiting, true, refusedSlug, silentSlug); err != nil {
		return err
	}
	// From here on one of the two accepts connections and hangs, which costs its callers more than a refusal.
	if err := silent.hang(); err != nil {
		return err
	}
	f, err := m.waitTurns(ctx, rate, &quiet, &busy)
	if err != nil {
		return err
	}
	depth, err := busy.server.metric("fingerpost_mail_queue_depth")
	if err == nil && int(depth) != m.waiting {
		err = fmt.Errorf("%v mails wait, of %d", depth, m.waiting)
	}
	if err != nil {
		return err
	}
	with, err := processMemory(busy.server.pid)
	if err != nil {
		return err
	}
	without, err := processMemory(quiet.server.pid)
	if err != nil {
		return err
	}
	name := func(what string) string { return fmt.Sprintf("%d mails wait for dead servers: %s", m.waiting, what) }
	rep.Parameters["rate"] = rate
	rep.add(
		compared(name("a healthy project's latency p50"), "ms", f[1].p50, f[0].p50, "none wait"),
		compared(name("its latency p99"), "ms", f[1].p99, f[0].p99, "none wait").ratioAtMost(1.2),
		compared(name("its CPU"), "ms/mail", f[1].cpu, f[0].cpu, "none wait"),
		comparedOnce(name("resident memory"), "MiB", mib(with.now), mib(without.now), "none wait"),
	)
	rep.note("A healthy project's sends come at a constant rate (%.0f a second) and count from when they were due. Of those that wait, half have a server that "+
		"refuses connections, half one that takes them and says nothing. The two servers have stores of their own, and only one runs at a time.", rate)
	return nil
}

func (m *mailBench) startWaitSide(ctx context.Context, w *waitSide, name string, refused, silent *deadServer) error {
	c, err := m.config(name)
	if err == nil {
		err = errors.Join(c.add(healthySlug, m.clear.listener.Addr().String(), false),
			c.add(refusedSlug, refused.address, false), c.add(silentSlug, silent.address, false))
	}
	if err != nil {
		return err
	}
	w.key = c.key
	w.server, err = m.mailServer(ctx, name, c, false)
	return err
}

// waitTurns lets the sides send in turn at a rate. The other side is stopped; a side that resumes first sends some
// mails to warm up.
func (m *mailBench) waitTurns(ctx context.Context, rate float64, quiet, busy *waitSide) ([]writeFigures, error) {
	side := func(name string, w, other *waitSide) *writeSide {
		s := m.served(w.server, w.key, healthySlug)
		s.name, s.every = name, every(rate)
		s.begin = func(ctx context.Context) error {
			if err := errors.Join(other.server.signal(syscall.SIGSTOP), w.server.signal(syscall.SIGCONT)); err != nil {
				return err
			}
			return m.callTimes(ctx, w.server, w.key, min(warmMails, m.load.warmUp), false, healthySlug)
		}
		return s
	}
	defer func() {
		for _, w := range []*waitSide{quiet, busy} {
			_ = w.server.signal(syscall.SIGCONT) // a stopped process could not end; fails if it has gone already
		}
	}()
	return m.turns(ctx, m.load.connections, side("none wait", quiet, busy), side("mails wait", busy, quiet))
}

// signal stops a server or lets it continue.
func (s *server) signal(sig syscall.Signal) error {
	if s.pid == os.Getpid() {
		return errors.New("this process is not to be stopped")
	}
	return syscall.Kill(s.pid, sig)
}

// metric reads one of the server's metrics without labels.
func (s *server) metric(name string) (float64, error) {
	res, err := fetch(s.ops + "/metrics")
	if err != nil {
		return 0, fmt.Errorf("read metrics: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("read metrics: status %d", res.StatusCode)
	}
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			return strconv.ParseFloat(rest, 64)
		}
	}
	return 0, errors.Join(fmt.Errorf("read metrics: there is no %s", name), lines.Err())
}
