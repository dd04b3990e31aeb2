package api

// Streams is the number of open event streams.
func (s *Server) Streams() int { return s.streams.Len() }
