package sender

import "context"

// Walk is one round of Run.
func (s *Service) Walk(ctx context.Context) error { return s.walk(ctx) }

// Load is the beginning of Run.
func (s *Service) Load() { s.load() }
