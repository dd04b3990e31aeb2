package configsrc

import "context"

// LockFolder says that a write is under way.
var LockFolder = lockFolder

// Noted reports whether the watch has taken note of a path that no look has answered yet.
func (s *Source) Noted(path string) bool {
	s.watch.mu.Lock()
	defer s.watch.mu.Unlock()
	return s.watch.paths[path] || s.watch.all
}

// HashSweep is what the timer does once a minute. Run must be running.
func (s *Source) HashSweep(ctx context.Context) error {
	return s.ask(ctx, func(ctx context.Context) error {
		s.swept(ctx, &pulse{underway: 1}, s.hashSweep(ctx))
		return nil
	})
}
