package api

// Streams is the number of open event streams.
func (s *Server) Streams() int { return s.streams.Len() }

// Stopping reports whether Shutdown was called: every later answer ends its connection.
func (s *Server) Stopping() bool { return s.gate.Stopping() }
