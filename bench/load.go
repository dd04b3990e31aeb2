package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// A load is one phase of questions over keep-alive connections.
type load struct {
	target
	connections int
	duration    time.Duration // 0: no limit in time
	count       int           // 0: no limit in questions
	rate        float64       // questions a second, at random intervals; 0: as fast as answers come
}

// A target is a server and what it is asked.
type target struct {
	server   *server
	corpus   *corpus
	asker    asker
	protocol protocol // nil: GET of resolve with the key of the corpus
}

// known is a target that is asked for names of a corpus and must know them.
func known(s *server, c *corpus, schedule []uint32) target {
	return target{server: s, corpus: c, asker: &scheduled{corpus: c, schedule: schedule}}
}

// A loadResult is the result of a load.
type loadResult struct {
	requests  int // answers, good or bad
	elapsed   time.Duration
	latencies latencies // open loop: from the intended moment of sending; closed loop: from the moment of sending
	faults    [faultKinds]int
}

func (r *loadResult) perSecond() float64 { return float64(r.requests) / r.elapsed.Seconds() }

// failures is the number of answers that were wrong in any way.
func (r *loadResult) failures() int {
	n := 0
	for _, c := range r.faults[faultNone+1:] {
		n += c
	}
	return n
}

// describeFaults lists the faults with their counts.
func (r *loadResult) describeFaults() string {
	text := ""
	for f := faultNone + 1; f < faultKinds; f++ {
		if r.faults[f] > 0 {
			text += fmt.Sprintf(" %s: %d", faultNames[f], r.faults[f])
		}
	}
	return text
}

// require returns an error if there are wrong answers, for loads in which a single one voids the figures.
func (r *loadResult) require() error {
	if n := r.failures(); n > 0 {
		return fmt.Errorf("%d of %d answers were wrong:%s", n, r.requests, r.describeFaults())
	}
	if r.requests == 0 {
		return fmt.Errorf("no answer within %v", r.elapsed)
	}
	return nil
}

const (
	maxRequest   = 1 << 10
	maxAnswer    = 32 << 10
	stallTime    = 30 * time.Second // without any answer in this time the load fails
	idleInterval = 100 * time.Millisecond
)

// run asks until the duration, the count or ctx ends, which is no error, and then waits for the outstanding answers.
func (l load) run(ctx context.Context) (*loadResult, error) {
	p, err := newPoller(l.server.addr, l.connections)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", l.server.name, err)
	}
	defer p.close()
	if l.protocol == nil {
		l.protocol = httpResolve{tail: requestTail(l.server.addr, l.corpus.key)}
	}
	d := driver{load: l, poller: p, result: new(loadResult)}
	d.result.latencies.reserve()
	return d.result, d.drive(ctx)
}

// A driver is a running load.
type driver struct {
	load
	poller *poller
	result *loadResult
	domain []byte // the one asked for next
	sent   int
	began  time.Time
	last   time.Duration // when the last answer came, since began
	free   []*wire
}

// drive is the loop: send what is due on free connections, wait for answers, judge them.
func (d *driver) drive(ctx context.Context) error {
	release := pinThread()
	defer release()
	for i := range d.poller.wires {
		d.free = append(d.free, &d.poller.wires[i])
	}
	random := rand.New(rand.NewPCG(corpusSeed, 0xa221))
	d.began = time.Now()
	var due time.Duration // when the next question is due, since began
	for {
		now := time.Since(d.began)
		asking := d.asking(ctx, now)
		busy := len(d.poller.wires) - len(d.free)
		if !asking && busy == 0 {
			d.result.elapsed = now
			return nil
		}
		if busy > 0 && now-d.last > stallTime {
			return fmt.Errorf("%s has not answered for %v", d.server.name, stallTime)
		}
		for asking && len(d.free) > 0 && (d.rate == 0 || due <= now) {
			if err := d.send(due, now); err != nil {
				return err
			}
			if d.rate > 0 {
				due += time.Duration(random.ExpFloat64() / d.rate * 1e9)
			}
			asking = d.count == 0 || d.sent < d.count
		}
		wait := idleInterval
		if asking && d.rate > 0 && len(d.free) > 0 {
			wait = min(wait, max(0, due-now))
		}
		ready, err := d.poller.wait(wait)
		if err != nil {
			return fmt.Errorf("wait for answers: %w", err)
		}
		now = time.Since(d.began)
		for _, w := range ready {
			if err := d.receive(w, now); err != nil {
				return err
			}
		}
	}
}

func (d *driver) asking(ctx context.Context, now time.Duration) bool {
	return (d.duration == 0 || now < d.duration) && (d.count == 0 || d.sent < d.count) && ctx.Err() == nil
}

func (d *driver) send(due, now time.Duration) error {
	w := d.free[len(d.free)-1]
	d.free = d.free[:len(d.free)-1]
	d.domain = d.asker.ask(&w.question, d.domain[:0])
	w.out = d.protocol.appendRequest(w.out[:0], d.domain)
	if len(d.free) == len(d.poller.wires)-1 {
		d.last = now // the first question in flight: the wait for an answer begins here
	}
	w.due, w.busy = now, true
	if d.rate > 0 {
		w.due = due
	}
	d.sent++
	if err := w.write(); err != nil {
		return d.broken(w)
	}
	return nil
}

func (d *driver) receive(w *wire, now time.Duration) error {
	if err := w.read(); err != nil {
		return d.broken(w)
	}
	a, whole, err := parseAnswer(w.in)
	switch {
	case err != nil || !w.busy || whole && a.length != len(w.in) || !whole && len(w.in) == cap(w.in):
		return d.broken(w)
	case !whole:
		return nil
	}
	d.last = now
	d.result.requests++
	d.result.faults[d.asker.judge(&w.question, a)]++
	d.result.latencies.add(now - w.due)
	w.in, w.busy = w.in[:0], false
	d.free = append(d.free, w)
	return nil
}

// broken counts a lost answer and reopens the connection. A server may close an idle connection: that is no fault.
func (d *driver) broken(w *wire) error {
	if w.busy {
		d.result.requests++
		d.result.faults[faultConnection]++
		w.busy = false
		d.free = append(d.free, w)
	}
	if d.result.faults[faultConnection] > 100*d.connections {
		return fmt.Errorf("%s closes its connections", d.server.name)
	}
	if err := d.poller.reopen(w); err != nil {
		return fmt.Errorf("connect to %s again: %w", d.server.name, err)
	}
	return nil
}
