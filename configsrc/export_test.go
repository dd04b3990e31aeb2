package configsrc

import (
	"context"
)

// Noted reports whether the watch has recorded a path that no look has handled yet.
func (s *Source) Noted(path string) bool {
	return s.loop.watching.watch.Pending(path)
}

// HashSweep is what the timer does once a minute. Run must be running.
func (s *Source) HashSweep(ctx context.Context) error {
	return s.turns.askFor(ctx, func(ctx context.Context) error {
		s.loop.lookAtSwept(ctx, &loopState{underway: 1}, s.loop.sweeps.sweepHashes(ctx))
		return nil
	})
}

// StatSweep is what the timer does every five seconds. Run must be running.
func (s *Source) StatSweep(ctx context.Context) error {
	return s.turns.askFor(ctx, func(ctx context.Context) error {
		s.loop.lookAtSwept(ctx, &loopState{underway: 1}, s.loop.sweeps.sweepStats(ctx))
		return nil
	})
}

// Racy reports whether a file's stamp cannot be trusted yet.
func (s *Source) Racy(path string) bool { return s.base.fileAt(path).Racy.Load() }
