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

// openConsoles is how many live pages of the console are open.
const openConsoles = 10

// runFeed measures resolve while files change: alone, with subscribers of the change feed, and with live pages of the
// console.
func runFeed(ctx context.Context, b *bench) (*report, error) {
	s, c, err := b.serve(ctx)
	if err != nil {
		return nil, err
	}
	schedule := zipfSchedule(c.Domains, b.zipf, c.Seed)
	of := known(s, c, schedule)
	b.say("warming up")
	if err := b.warm(ctx, of, b.warmUp); err != nil {
		return nil, err
	}
	rate, err := b.halfRate(ctx, of)
	if err != nil {
		return nil, err
	}
	e, err := b.edit(c)
	if err != nil {
		return nil, err
	}
	asked, paced := b.fullSpeed("", of), b.constantRate("", of, rate)
	perKiB, saves := 0.0, 0
	// A round: subscribers connect, files change, resolve is asked at full speed and then at a constant rate. At the end
	// every subscriber must have received each change.
	side := func(name string, streams, pages int) *turn {
		return newTurn(name, func(ctx context.Context, t *turn) error {
			open, err := watch(s, c.key, pages)
			if err != nil {
				return err
			}
			defer open.close()
			followers, memory, err := follow(s, c.key, streams)
			if err != nil {
				return err
			}
			defer followers.close()
			if perKiB == 0 && streams > 0 { // later the server has already allocated it
				perKiB = memory * 1024 / float64(streams)
			}
			n, err := e.whileSaving(schedule, b.changeEvery, savers()[:1], func() error {
				return errors.Join(asked.measure(ctx, t), paced.measure(ctx, t))
			})
			if err != nil {
				return err
			}
			if streams > 0 {
				saves += n
			}
			return followers.expect(n)
		})
	}
	without, with := side("without", 0, 0), side(fmt.Sprintf("with %d streams", b.streams), b.streams, 0)
	watched := side(fmt.Sprintf("with %d open consoles", openConsoles), 0, openConsoles)
	if err := b.alternate(ctx, without, with, watched); err != nil {
		return nil, err
	}
	rep := &report{Parameters: b.parameters(c,
		map[string]any{"streams": b.streams, "changeEvery": b.changeEvery.String(), "rate": rate})}
	rep.add(
		with.against(without, perSecond, "resolve with subscribers", "requests/s").ratioAtLeast(0.95),
		with.against(without, cpuEach, "server CPU, theirs included", "µs/request"),
		with.against(without, "p50", "latency p50 at half load", "ms"),
		with.against(without, "p99", "latency p99 at half load", "ms").ratioAtMost(1.25),
		alone("resident memory a subscriber", "KiB", perKiB),
		watched.against(without, perSecond, "resolve with open consoles", "requests/s").ratioAtLeast(0.98),
		watched.against(without, cpuEach, "server CPU, theirs included, with open consoles", "µs/request"),
	)
	rep.note("A file was saved every %v on both sides. Every subscriber got an event for each of %d saves.",
		b.changeEvery, saves)
	return rep, nil
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

// follow opens n streams, and returns the memory in MiB that the server allocated for them.
func follow(s *server, key string, n int) (f followers, mem float64, err error) {
	defer func() {
		if err != nil {
			f.close()
			err = fmt.Errorf("open stream %d of %d: %w", len(f), n, err)
		}
	}()
	before, err := s.memory()
	if err != nil {
		return nil, 0, err
	}
	// In HTTP/1.0 a stream has no chunks.
	request := "GET /api/platform/events HTTP/1.0\r\nHost: " + s.addr + "\r\nX-PLATFORM-KEY: " + key + "\r\n\r\n"
	for i := range n {
		source := &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+i/perSource%250))}
		conn, err := (&net.Dialer{LocalAddr: source, Timeout: clientTimeout}).Dial("tcp", s.addr)
		if err != nil {
			return f, 0, err
		}
		f = append(f, follower{conn, bufio.NewScanner(conn)})
		if _, err := conn.Write([]byte(request)); err != nil {
			return f, 0, err
		}
	}
	if err := f.each(" 200 OK", "retry: ", 1); err != nil {
		return f, 0, err
	}
	after, err := s.memory()
	return f, after.now - before.now, err
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
