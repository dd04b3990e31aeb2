package smtp

import "time"

// stalePatience is how long a reused session may take for its first reply: a firewall may have dropped the connection
// silently.
const stalePatience = 10 * time.Second

// transact transmits the mail: MAIL, RCPT, DATA, the message. Once the final dot is out, a.stage is StageEOD, and the
// context no longer applies, unless the attempt is alone.
func (a *attempt) transact(s *session) error {
	a.begin("send")
	a.session, a.stage = s, StageMail
	release := s.wire.watch(a.ctx)
	defer release()
	if s.maxSize > 0 && int64(len(a.message)) > s.maxSize {
		return errTooLarge
	}
	s.used++
	patience := a.limits.Command
	if s.used > 1 {
		patience = min(patience, stalePatience)
	}
	if s.reset {
		// Not the client's Reset, which says EHLO again.
		s.wire.within(patience)
		if err := s.command("RSET", 200, 299); err != nil {
			return err
		}
		s.reset = false
	}
	a.trace("mail", time.Now())
	s.wire.within(patience)
	if err := s.answered(s.client.Mail(a.env.From, nil)); err != nil {
		return err
	}
	a.stage = StageRcpt
	a.trace("rcpt", time.Now())
	s.wire.within(a.limits.Command)
	if err := s.answered(s.client.Rcpt(a.env.To, nil)); err != nil {
		return err
	}
	a.stage = StageData
	a.trace("data", time.Now())
	s.wire.within(a.limits.Data)
	body, err := s.client.Data()
	if err := s.answered(err); err != nil {
		return err
	}
	if s.r.Buffered() > 0 {
		return errNoReply // a reply that came before the dot is no reply to it
	}
	a.stage = StageBody
	s.wire.within(a.limits.Body)
	// The client reads the reply in the call that writes the dot, and only if the write succeeded: before that the server
	// cannot have accepted the mail. After an error the client writes nothing more, and so no dot.
	s.beforeReply = func() {
		a.stage = StageEOD
		if !a.alone {
			release()
		}
		s.wire.within(a.limits.Dot)
	}
	if _, err = body.Write(a.message); err == nil {
		_, err = body.CloseWithResponse()
	}
	s.beforeReply = nil
	if err := s.answered(err); err != nil {
		return err
	}
	a.accepted = string(s.text)
	return nil
}
