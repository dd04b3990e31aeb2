package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
)

// runFeed measures resolve while files change, with and without subscribers of the change feed.
func runFeed(ctx context.Context, b *bench) (*report, error) {
	c, err := b.openCorpus(b.corpus)
	if err != nil {
		return nil, err
	}
	s, err := b.fingerpost(ctx, c.String(), c.config, b.cacheFlags()...)
	if err != nil {
		return nil, err
	}
	defer s.stop()
	return b.feed(ctx, s, c)
}

// A fedSide is a server with a number of subscribers, during its turn.
type fedSide struct {
	*side
	streams  int
	p50, p99 []float64 // ms, one per round
	perKiB   float64   // resident memory per subscriber in the first round
	saves    int
}

// feed measures the same server with and without subscribers, in alternating rounds.
func (b *bench) feed(ctx context.Context, s *server, c *corpus) (rep *report, err error) {
	schedule := zipfSchedule(c.Domains, b.load.zipf, c.Seed)
	bare := &fedSide{side: known(s, c, schedule)}
	fed := &fedSide{side: known(s, c, schedule), streams: b.streams}
	b.say("warming up")
	if err := b.warm(ctx, bare.side, b.load.warmUp); err != nil {
		return nil, err
	}
	rate, err := b.halfRate(ctx, bare.side)
	if err != nil {
		return nil, err
	}
	e := &editor{corpus: c, revision: c.Revision, touched: map[int]bool{}}
	if err := c.markDirty(); err != nil {
		return nil, fmt.Errorf("mark the corpus: %w", err)
	}
	defer func() { err = errors.Join(err, e.restore()) }()
	for i := range b.load.rounds {
		for j := range 2 {
			side := []*fedSide{bare, fed}[(i+j)%2]
			if err := b.feedRound(ctx, side, e, schedule, rate); err != nil {
				return nil, err
			}
		}
		b.say("round %d of %d:  alone %.0f/s, p99 %.3f ms  with %d streams %.0f/s, p99 %.3f ms", i+1, b.load.rounds,
			bare.rates[i], bare.p99[i], fed.streams, fed.rates[i], fed.p99[i])
	}
	rep = &report{Parameters: b.parameters(c, map[string]any{"streams": b.streams, "changeEvery": b.changeEvery.String(), "rate": rate})}
	rep.add(
		compared("resolve with subscribers", "requests/s", fed.rates, bare.rates, "without").ratioAtLeast(0.95),
		compared("server CPU, theirs included", "µs/request", fed.cpu, bare.cpu, "without"),
		compared("latency p50 at half load", "ms", fed.p50, bare.p50, "without"),
		compared("latency p99 at half load", "ms", fed.p99, bare.p99, "without").ratioAtMost(1.25),
		alone("resident memory a subscriber", "KiB", fed.perKiB),
	)
	rep.note("A file was saved every %v on both sides. Every subscriber got an event for each of %d saves.", b.changeEvery, fed.saves)
	return rep, nil
}

// feedRound is one round of a side: subscribers connect, files change, resolve is asked at full speed and then at a
// constant rate. At the end every subscriber must have received each change.
func (b *bench) feedRound(ctx context.Context, s *fedSide, e *editor, schedule []uint32, rate float64) error {
	followers, err := s.follow(s.streams)
	if err != nil {
		return err
	}
	defer followers.close()
	stop, done := make(chan struct{}), make(chan struct{})
	saves, saveErr := 0, error(nil)
	go func() {
		defer close(done)
		saves, saveErr = e.saveEvery(b.changeEvery, stop, schedule)
	}()
	err = b.measureRound(ctx, s.side)
	if err == nil {
		l := b.closed(s.side)
		l.rate, l.duration = rate, b.load.round
		var res *loadResult
		if res, err = b.exact(ctx, s.side, l); err == nil {
			p := res.latencies.percentiles(0.5, 0.99)
			s.p50, s.p99 = append(s.p50, ms(p[0])), append(s.p99, ms(p[1]))
		}
	}
	close(stop)
	<-done
	if err := errors.Join(err, saveErr); err != nil {
		return err
	}
	s.saves += saves
	return followers.expect(saves)
}

// saveEvery saves popular projects, one at a time, until stop is closed. The first save comes at once.
func (e *editor) saveEvery(every time.Duration, stop <-chan struct{}, schedule []uint32) (saves int, err error) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		project := int(schedule[saves%rewrittenFiles]) / e.corpus.perProject()
		if _, err := e.save(project, savers()[0]); err != nil {
			return saves, err
		}
		saves++
		select {
		case <-tick.C:
		case <-stop:
			return saves, nil
		}
	}
}

// followers are subscribers of the change feed. They read only at the end: the events of one round fit into a socket's
// buffer, and reading would take CPU time from the server.
type followers []follower

type follower struct {
	net.Conn
	lines *bufio.Scanner
}

// perSource is how many connections use one source address, below the server's cap per address.
const perSource = 500

// follow opens n streams. The first call measures their memory; later the server has already allocated it.
func (s *fedSide) follow(n int) (f followers, err error) {
	defer func() {
		if err != nil {
			f.close()
			err = fmt.Errorf("open stream %d of %d: %w", len(f), n, err)
		}
	}()
	if n == 0 {
		return nil, nil
	}
	before, err := processMemory(s.server.pid)
	if err != nil {
		return nil, err
	}
	// In HTTP/1.0 a stream has no chunks.
	request := "GET /api/platform/events HTTP/1.0\r\nHost: " + s.server.addr + "\r\nX-PLATFORM-KEY: " + s.corpus.key + "\r\n\r\n"
	for i := range n {
		source := &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+i/perSource%250))}
		conn, err := (&net.Dialer{LocalAddr: source, Timeout: clientTimeout}).Dial("tcp", s.server.addr)
		if err != nil {
			return f, err
		}
		f = append(f, follower{conn, bufio.NewScanner(conn)})
		if _, err := conn.Write([]byte(request)); err != nil {
			return f, err
		}
	}
	if err := f.each(" 200 OK", "retry: ", 1); err != nil {
		return f, err
	}
	after, err := processMemory(s.server.pid)
	if s.perKiB == 0 {
		s.perKiB = float64(after.now-before.now) / 1024 / float64(n)
	}
	return f, err
}

// expect reads until all streams have received n events.
func (f followers) expect(n int) error { return f.each("", "data: ", n) }

// each reads all streams until n lines begin with prefix. The first line must end in first.
func (f followers) each(first, prefix string, n int) error {
	for i, one := range f {
		first := first
		if err := one.SetReadDeadline(time.Now().Add(clientTimeout)); err != nil {
			return err
		}
		for got := 0; got < n; {
			if !one.lines.Scan() {
				return fmt.Errorf("stream %d: %d of %d lines %q came: %v", i+1, got, n, prefix, one.lines.Err())
			}
			line := one.lines.Text()
			if !strings.HasSuffix(line, first) || line == "event: reset" {
				return fmt.Errorf("stream %d: unexpected line %q", i+1, line)
			}
			first = ""
			if strings.HasPrefix(line, prefix) {
				got++
			}
		}
	}
	return nil
}

func (f followers) close() {
	for _, one := range f {
		one.Close()
	}
}
