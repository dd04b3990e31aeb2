package configsrc

import (
	"context"
	"time"
)

// The times of configsrc/README.md, Reload.
const (
	quiet       = 25 * time.Millisecond // pause between the last event and the look
	quietAtMost = time.Second           // longest wait from the first event
	gitAtMost   = 10 * time.Second      // while git holds its index lock
	gitPoll     = 10 * time.Millisecond
	statEvery   = 5 * time.Second // unless Options.StatEvery says otherwise
	hashEvery   = 60 * time.Second
)

// A loop is the goroutine that looks and commits: it alone makes looks, rounds of writes and turns.
type loop struct {
	look     *looker
	rounds   *rounds
	sweeps   *sweeper
	watching *watching
	turns    turns
	states   *pathStates
	git      *gitGuard
	report   *reporter
}

// run looks until ctx is done: at paths named by events, at suspects, and by the timer at everything.
func (l *loop) run(ctx context.Context) error {
	if !l.watching.isOn() {
		l.watching.restart()
	}
	defer l.watching.end()
	p := &loopState{hashAt: time.Now().Add(hashEvery)} // a first sweep at once, for changes between Load and the watch
	sweeps := make(chan swept, 2)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(time.Until(l.tick(ctx, p, sweeps)))
		select {
		case <-ctx.Done():
			for range p.underway {
				<-sweeps
			}
			return nil
		case asked := <-l.turns:
			asked.done <- asked.do(ctx)
		case u := <-l.rounds.updates:
			l.rounds.commitQueued(u)
		case <-l.watching.ready():
			p.last = time.Now()
			if p.first.IsZero() {
				p.first = p.last
			}
		case found := <-sweeps:
			l.lookAtSwept(ctx, p, found)
		case <-timer.C:
		}
	}
}

// A loopState is the state of a run of the loop.
type loopState struct {
	first, last    time.Time // times of unanswered events; zero: none
	gitAt          time.Time // when git last held its lock
	statAt, hashAt time.Time // times of the next sweeps; during one, its beginning
	statOn, hashOn bool      // a sweep is running
	underway       int       // number of running sweeps
}

// tick does what is due now, and returns when it is to be called again.
func (l *loop) tick(ctx context.Context, p *loopState, sweeps chan<- swept) (next time.Time) {
	now := time.Now()
	next = now.Add(l.look.o.StatEvery)
	due := func(at time.Time) bool {
		if now.Before(at) && at.Before(next) {
			next = at
		}
		return !now.Before(at)
	}
	if !p.statOn && due(p.statAt) {
		p.statOn, p.statAt = true, now
		p.underway++
		go func() { sweeps <- l.sweeps.sweepStats(ctx) }()
	}
	if !p.hashOn && due(p.hashAt) {
		p.hashOn, p.hashAt = true, now
		p.underway++
		go func() { sweeps <- l.sweeps.sweepHashes(ctx) }()
	}
	events := !p.first.IsZero()
	switch {
	case events && !due(p.last.Add(quiet)) && !due(p.first.Add(quietAtMost)):
		return next
	case !events && (len(l.states.suspects) == 0 || !due(l.states.nextLook())):
		return next
	}
	if now.Sub(p.last) < gitAtMost { // while git is at work, each of its files sends events
		if !due(p.gitAt.Add(gitPoll)) {
			return next
		}
		if l.git.state().locked {
			p.gitAt = now
			return now.Add(gitPoll)
		}
	}
	var sc scope // the suspects alone
	if events {
		p.first = time.Time{}
		var stale bool
		if sc.Seen, stale = l.watching.takeSeen(); stale {
			l.watching.restart()
			sc.All = true
		}
	}
	_ = l.look.lookAt(ctx, sc) // errors are in the log and the status
	return now                 // other things may be due since
}

// lookAtSwept looks at what a sweep found. The next sweep of its kind begins late enough for the two kinds to take at
// most a hundredth of a core; in a large folder one sweep takes that long by itself.
func (l *loop) lookAtSwept(ctx context.Context, p *loopState, found swept) {
	p.underway--
	if found.hash {
		p.hashOn, p.hashAt = false, p.hashAt.Add(max(hashEvery, paceShare*found.cost))
		if len(found.Paths) > 0 && ctx.Err() == nil && !l.git.state().locked {
			found.scope.hash = true
			_ = l.look.lookAt(ctx, found.scope)
		}
		return
	}
	p.statOn, p.statAt = false, p.statAt.Add(max(l.look.o.StatEvery, paceShare*found.cost))
	if !l.look.redecode { // otherwise racy files must be decoded again
		for _, f := range found.outlived {
			f.Racy.Store(false) // f is in the table, or unused
		}
	}
	if moved := l.watching.hasMoved(); !l.watching.isOn() || found.stale || moved {
		l.watching.restart()
		found.All = found.All || found.stale || moved // restart drops the collected events
	}
	if ctx.Err() == nil {
		found.Paths = append(found.Paths, l.look.amends.clearLeftovers(found.temps)...)
	}
	if ctx.Err() == nil && !l.git.state().locked && (found.All || len(found.Paths) > 0 || l.report.isHeld()) {
		_ = l.look.lookAt(ctx, found.scope)
	}
}
