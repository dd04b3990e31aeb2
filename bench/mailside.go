package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// A mailSide is who hands mail to a sink: fingerpost, or the bare mailer.
type mailSide struct {
	name string
	pid  int // whose CPU time counts
	// send sends as fast as it can for that long. All that it says is sent is noted in the marks.
	send func(ctx context.Context, d time.Duration) (*writeResult, error)
}

// mailFigures are those of one side, a round each.
type mailFigures struct {
	rates    []float64 // mails a second
	p50, p99 []float64 // ms
	cpu      []float64 // of the side, µs a mail
	own      []float64 // of this process, which is the sink and, towards fingerpost, its callers: µs a mail
	busy     []float64 // cores, by both together
}

// mailTurns lets the sides send by turns, and the one that begins change from round to round, after one round of each
// that does not count. After each round all mail must be at the sink.
func (m *mailBench) mailTurns(ctx context.Context, sides ...*mailSide) ([]mailFigures, error) {
	figures := make([]mailFigures, len(sides))
	for i := -1; i < m.load.rounds; i++ {
		line := fmt.Sprintf("round %d of %d:", i+1, m.load.rounds)
		for j := range sides {
			k := (i + 1 + j) % len(sides)
			f := &figures[k]
			if i < 0 {
				f = new(mailFigures)
			}
			if err := m.mailRound(ctx, sides[k], f); err != nil {
				return nil, fmt.Errorf("send by %s: %w", sides[k].name, err)
			}
			at := max(0, i)
			line += fmt.Sprintf("  %s %.0f/s, p50 %.3f ms, %.0f µs", sides[k].name, f.rates[at], f.p50[at], f.cpu[at])
		}
		if i >= 0 {
			m.say("%s", line)
		}
	}
	return figures, nil
}

// mailRound adds one round to a side's figures.
func (m *mailBench) mailRound(ctx context.Context, s *mailSide, f *mailFigures) error {
	read := func() (side, own time.Duration, err error) {
		side, err = processCPU(s.pid)
		own, ownErr := processCPU(os.Getpid())
		return side, own, errors.Join(err, ownErr)
	}
	side, own, err := read()
	if err != nil {
		return err
	}
	res, err := s.send(ctx, m.load.round)
	if err != nil {
		return err
	}
	sideAfter, ownAfter, err := read()
	if err == nil {
		err = m.checkMarks()
	}
	if err != nil {
		return err
	}
	n := float64(res.count())
	if n == 0 {
		return fmt.Errorf("no mail within %v", res.elapsed)
	}
	side, own = sideAfter-side, ownAfter-own
	p := res.percentiles(0.5, 0.99)
	f.rates = append(f.rates, res.perSecond())
	f.p50, f.p99 = append(f.p50, ms(p[0])), append(f.p99, ms(p[1]))
	f.cpu, f.own = append(f.cpu, 1000*ms(side)/n), append(f.own, 1000*ms(own)/n)
	f.busy = append(f.busy, (side+own).Seconds()/res.elapsed.Seconds())
	return nil
}

// checkMarks compares what was sent with what has arrived.
func (m *mailBench) checkMarks() error { return m.marks.check(int(m.numbers.last.Load()) + 1) }

// caller returns who sends mail of a project over one keep-alive connection; queued says that each must be queued,
// otherwise each must be sent.
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

// judgeSend is an error unless the answer is the one that there must be.
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

// served is fingerpost as a side: as many clients as -connections says.
func (m *mailBench) served(s *server, key, slug string) *mailSide {
	return &mailSide{name: s.name, pid: s.pid, send: func(ctx context.Context, d time.Duration) (*writeResult, error) {
		return m.callFor(ctx, s, key, slug, d, 0)
	}}
}

// callFor lets all clients send for that long: as fast as they are answered or, where every is not 0, one mail in that
// time of all clients together.
func (m *mailBench) callFor(ctx context.Context, s *server, key, slug string, d, every time.Duration) (*writeResult, error) {
	limited, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	calls := writeSide{name: s.name, pid: s.pid, files: &m.numbers, writer: func() (writer, error) { return m.caller(s, key, slug, false) }}
	own := make([][]int, m.load.connections)
	for i := range own {
		own[i] = []int{0} // the only project
	}
	res, err := calls.write(limited, own, every)
	return res, errors.Join(err, ctx.Err())
}

// callTimes lets all clients send n mails in all, of one of the projects each.
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

// A bareProcess is the bare mailer.
type bareProcess struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *json.Decoder
	errs bytes.Buffer
	dir  string
}

// bareMailer starts the bare mailer towards a sink. ca is "" for clear text.
func (m *mailBench) bareMailer(ctx context.Context, name string, to *sink, connections int, ca string, fresh bool) (*bareProcess, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start the bare mailer: %w", err)
	}
	p := &bareProcess{dir: filepath.Join(m.work, name)}
	message := filepath.Join(p.dir, "message")
	err = os.RemoveAll(p.dir)
	if err == nil {
		err = os.MkdirAll(p.dir, 0o755)
	}
	if err == nil {
		err = os.WriteFile(message, m.sample, 0o644)
	}
	if err != nil {
		return nil, fmt.Errorf("start the bare mailer: %w", err)
	}
	p.cmd = exec.CommandContext(ctx, self, bareMailCommand, "-addr", to.listener.Addr().String(), "-connections", fmt.Sprint(connections),
		"-store", filepath.Join(p.dir, "store"), "-message", message, "-ca", ca, fmt.Sprintf("-fresh=%v", fresh))
	p.cmd.Stderr = &p.errs
	if p.in, err = p.cmd.StdinPipe(); err == nil {
		var out io.Reader
		if out, err = p.cmd.StdoutPipe(); err == nil {
			p.out = json.NewDecoder(out)
			err = p.cmd.Start()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("start the bare mailer: %w", err)
	}
	return p, nil
}

// stop ends the process and removes its store.
func (p *bareProcess) stop() error {
	return errors.Join(p.in.Close(), p.cmd.Wait(), os.RemoveAll(p.dir))
}

// side is the process as one that takes turns.
func (p *bareProcess) side(m *mailBench) *mailSide {
	return &mailSide{name: "bare mailer", pid: p.cmd.Process.Pid, send: func(_ context.Context, d time.Duration) (*writeResult, error) {
		first := int(m.numbers.last.Load()) + 1
		order, err := json.Marshal(bareOrder{For: d, First: first})
		if err != nil {
			return nil, err
		}
		var a bareAnswer
		_, err = p.in.Write(append(order, '\n'))
		if err == nil {
			err = p.out.Decode(&a)
		}
		switch {
		case err != nil:
			return nil, fmt.Errorf("%w: %s", err, p.errs.Bytes())
		case a.Fault != "":
			return nil, errors.New(a.Fault)
		}
		for n := range a.Mails {
			m.marks.sent(first + n)
		}
		m.numbers.last.Add(int64(a.Mails))
		l, err := decodeLatencies(a.Latencies)
		if err != nil {
			return nil, fmt.Errorf("read the bare mailer's latencies: %w", err)
		}
		return &writeResult{elapsed: a.Elapsed, latencies: l}, nil
	}}
}
