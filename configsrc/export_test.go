package configsrc

// LockFolder says that a write is under way.
var LockFolder = lockFolder

// Noted reports whether the watch has taken note of a path that no look has answered yet.
func (s *Source) Noted(path string) bool {
	s.watch.mu.Lock()
	defer s.watch.mu.Unlock()
	return s.watch.paths[path] || s.watch.all
}
