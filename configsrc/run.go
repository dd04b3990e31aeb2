package configsrc

import (
	"context"
	"time"

	"fingerpost/configsrc/watch"
	"fingerpost/resolver/catalog"
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

// Watch starts collecting events. Call it before Load: a save made while Load runs is then handled as soon as Run
// starts. Run must follow, which ends the watch.
func (s *Source) Watch() {
	if !s.o.Follow {
		s.watching.restart()
	}
}

// Run looks until ctx is done: at paths named by events, at suspects, and by the timer at everything. Call it once,
// after Load.
func (s *Source) Run(ctx context.Context) error {
	if s.o.Follow {
		return s.runFollowed(ctx)
	}
	if s.watching.watch == nil {
		s.watching.restart()
	}
	defer s.watching.end()
	p := &loopState{hashAt: time.Now().Add(hashEvery)} // a first sweep at once, for changes between Load and the watch
	sweeps := make(chan swept, 2)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(time.Until(s.tick(ctx, p, sweeps)))
		var ready <-chan struct{}
		if s.watching.watch != nil {
			ready = s.watching.watch.Ready
		}
		select {
		case <-ctx.Done():
			for range p.underway {
				<-sweeps
			}
			return nil
		case a := <-s.turns:
			a.done <- a.do(ctx)
		case u := <-s.updates:
			s.write(u)
		case <-ready:
			p.last = time.Now()
			if p.first.IsZero() {
				p.first = p.last
			}
		case found := <-sweeps:
			s.swept(ctx, p, found)
		case <-timer.C:
		}
	}
}

// A loopState is the state of the loop in Run.
type loopState struct {
	first, last    time.Time // times of unanswered events; zero: none
	gitAt          time.Time // when git last held its lock
	statAt, hashAt time.Time // times of the next sweeps; during one, its beginning
	statOn, hashOn bool      // a sweep is running
	underway       int       // number of running sweeps
}

// tick does what is due now, and returns when it is to be called again.
func (s *Source) tick(ctx context.Context, p *loopState, sweeps chan<- swept) (next time.Time) {
	now := time.Now()
	next = now.Add(s.o.StatEvery)
	due := func(at time.Time) bool {
		if now.Before(at) && at.Before(next) {
			next = at
		}
		return !now.Before(at)
	}
	if !p.statOn && due(p.statAt) {
		p.statOn, p.statAt = true, now
		p.underway++
		go func() { sweeps <- s.sweep(ctx) }()
	}
	if !p.hashOn && due(p.hashAt) {
		p.hashOn, p.hashAt = true, now
		p.underway++
		go func() { sweeps <- s.hashSweep(ctx) }()
	}
	events := !p.first.IsZero()
	switch {
	case events && !due(p.last.Add(quiet)) && !due(p.first.Add(quietAtMost)):
		return next
	case !events && (len(s.states.suspects) == 0 || !due(s.states.nextLook())):
		return next
	}
	if now.Sub(p.last) < gitAtMost { // while git is at work, each of its files sends events
		if !due(p.gitAt.Add(gitPoll)) {
			return next
		}
		if s.git.state().locked {
			p.gitAt = now
			return now.Add(gitPoll)
		}
	}
	var sc scope // the suspects alone
	if events {
		p.first = time.Time{}
		stale := false
		if s.watching.watch != nil {
			sc.Seen, stale = s.watching.watch.Take()
		}
		if stale {
			s.watching.restart()
			sc.All = true
		}
	}
	_ = s.look(ctx, sc) // errors are in the log and the status
	return now          // other things may be due since
}

// swept looks at what a sweep found. The next sweep of its kind begins late enough for the two kinds to take at most a
// hundredth of a core; in a large folder one sweep takes that long by itself.
func (s *Source) swept(ctx context.Context, p *loopState, found swept) {
	p.underway--
	if found.hash {
		p.hashOn, p.hashAt = false, p.hashAt.Add(max(hashEvery, paceShare*found.cost))
		if len(found.Paths) > 0 && ctx.Err() == nil && !s.git.state().locked {
			found.scope.hash = true
			_ = s.look(ctx, found.scope)
		}
		return
	}
	p.statOn, p.statAt = false, p.statAt.Add(max(s.o.StatEvery, paceShare*found.cost))
	if !s.redecode { // otherwise racy files must be decoded again
		for _, f := range found.outlived {
			f.Racy.Store(false) // f is in the table, or unused
		}
	}
	if moved := s.watching.watch != nil && s.watching.watch.Moved(); s.watching.watch == nil || found.stale || moved {
		s.watching.restart()
		found.All = found.All || found.stale || moved // restart drops the collected events
	}
	if ctx.Err() == nil {
		found.Paths = append(found.Paths, s.clearLeftovers(found.temps)...)
	}
	if ctx.Err() == nil && !s.git.state().locked && (found.All || len(found.Paths) > 0 || s.isHeld()) {
		_ = s.look(ctx, found.scope)
	}
}

// Reload looks at everything, including contents, a second time if something is suspect, and returns nil, ErrHeld or
// the error. Quarantined files are no error, see Status. Run must be running.
func (s *Source) Reload(ctx context.Context) error {
	return s.turns.askFor(ctx, func(ctx context.Context) error {
		if s.o.Follow {
			return s.retryRefused(ctx)
		}
		return s.lookTwice(ctx, scope{Seen: watch.Seen{All: true}, hash: true})
	})
}

// Confirm lets a held reload through, once. by is who has confirmed it; zero: the operator. On an edge that is the next ApplyTree.
func (s *Source) Confirm(ctx context.Context, by catalog.Author) error {
	return s.turns.askFor(ctx, func(ctx context.Context) error {
		s.confirmed, s.confirmer = true, by
		if s.o.Follow {
			return nil
		}
		return s.lookTwice(ctx, scope{Seen: watch.Seen{All: true}})
	})
}

// Rebuild fills a Sink that has lost its content from the files. Run must be running.
func (s *Source) Rebuild(ctx context.Context) error {
	return s.turns.askFor(ctx, s.rebuild)
}
