package configsrc

// noteWrite puts an update into the Journal, while the caller stages its files: both wait for a disk. The channel gives
// the result, once.
func (s *base) noteWrite(u *submission) (noted chan error) {
	noted = make(chan error, 1)
	if s.o.Journal == nil || u.Preview != nil {
		close(noted)
		return noted
	}
	w := u.fileWrite()
	go func() {
		span := u.span.Child("ledger.sync")
		err := s.o.Journal.Begin(w)
		span.EndWith(err)
		if err == nil {
			u.journaled = w
		}
		noted <- err
		close(noted)
	}()
	return noted
}

// dropWrite takes an update that was not made out of the Journal.
func (s *base) dropWrite(u *submission, noted chan error) {
	for range noted { // waits for Begin
	}
	if u.journaled != nil && !u.published {
		s.o.Journal.End(u.journaled, false)
	}
}

// endWrites says in the Journal that a round of writes is made: the files are changed.
func (s *base) endWrites(round []*submission) {
	for _, u := range round {
		if u.journaled != nil {
			u.journaled.Generation = s.o.Sink.Generation()
			u.published = true
			s.o.Journal.End(u.journaled, true)
		}
	}
}
