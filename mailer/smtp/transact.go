package smtp

import (
	"bytes"
	"time"
)

// stalePatience is what a reused session gets for its first reply: one that a firewall has forgotten says nothing.
const stalePatience = 10 * time.Second

// transact hands the mail over. Once the final dot is out, a.stage is StageEOD, and the context has no say any more,
// unless the attempt is alone.
func (a *attempt) transact(s *session) error {
	a.session, a.stage = s, StageMail
	release := s.wire.watch(a.ctx)
	defer release()
	if s.maxSize > 0 && int64(len(a.message)) > s.maxSize {
		return errTooLarge
	}
	s.used++
	if err := a.envelope(s); err != nil {
		return err
	}
	if s.r.Buffered() > 0 {
		return errNoReply // what has come before the dot is out is no reply to it
	}
	a.stage = StageBody
	s.wire.within(a.limits.Body)
	if err := s.body(a.message); err != nil {
		return err
	}
	a.stage = StageEOD
	if !a.alone {
		release()
	}
	s.wire.within(a.limits.Dot)
	code, err := s.reply()
	switch {
	case err != nil:
		return err
	case code >= 400:
		return s.refusal(code)
	case code >= 300:
		return errNoReply
	}
	a.accepted = string(s.text)
	return nil
}

// A command of the envelope, and what it is to be answered with.
type command struct {
	stage Stage
	class int // of the reply: 2 for 2xx
	limit time.Duration
	words [3]string
}

// envelope says who the mail is from and to, and waits for leave to send it. MAIL goes without BODY and SMTPUTF8: the
// message needs neither, and there are providers that stumble over them. A session that has been silent for long is asked for
// one reply before the other commands go out together: a server may hold the replies to these until it is done with RCPT, so
// that they tell nothing soon.
func (a *attempt) envelope(s *session) error {
	patience, doubtful := a.limits.Command, s.used > 1 && time.Since(s.heard) > a.limits.Trust
	if s.used > 1 && (doubtful || !s.pipeline) {
		patience = min(patience, stalePatience)
	}
	commands := [...]command{
		{StageMail, 2, patience, [3]string{"RSET"}},
		{StageMail, 2, patience, [3]string{"MAIL FROM:<", a.env.From, ">"}},
		{StageRcpt, 2, a.limits.Command, [3]string{"RCPT TO:<", a.env.To, ">"}},
		{StageData, 3, a.limits.Data, [3]string{"DATA"}},
	}
	todo := commands[:]
	if !s.reset {
		todo = todo[1:]
	}
	single := len(todo)
	switch {
	case s.pipeline && doubtful:
		single = 1
	case s.pipeline:
		single = 0
	}
	for i := range todo[:single] {
		c := &todo[i]
		a.stage = c.stage
		s.wire.within(c.limit)
		if err := s.want(c.class, c.words[:]...); err != nil {
			return err
		}
		s.reset = false
	}
	if single == len(todo) {
		return nil
	}
	return a.envelopeAtOnce(s, todo[single:])
}

// envelopeAtOnce writes all commands before it reads the reply to the first (RFC 2920 3.1). The first reply that is not as it
// is to be decides, as it does where the commands go one by one; those behind it are only read, so that the session stays in
// step.
func (a *attempt) envelopeAtOnce(s *session, todo []command) error {
	a.stage = todo[0].stage
	var limit time.Duration // of the first reply, which may come with that to RCPT
	for i := range todo {
		s.put(todo[i].words[:]...)
		if todo[i].stage != StageData {
			limit += todo[i].limit
		}
	}
	s.wire.within(limit)
	if err := s.w.Flush(); err != nil {
		return err
	}
	for i := range todo {
		c := &todo[i]
		a.stage = c.stage
		if i > 0 {
			s.wire.within(c.limit)
		}
		if err := s.judged(c.class); err != nil {
			if s.inStep(err) {
				a.passOver(s, c.stage, len(todo)-1-i)
			}
			return err
		}
		s.reset = false
	}
	return nil
}

// strayPatience is how long replies are waited for that nobody needs: they come with those that somebody does.
const strayPatience = time.Second

// passOver reads the replies to commands that went out behind one that was refused. Where the last of them, DATA, was taken
// although no recipient was, a dot by itself ends what nobody sends. With anything else, that a server took DATA after it had
// refused the sender for instance, the session is of no use any more, and is closed before a byte of a message goes out.
func (a *attempt) passOver(s *session, refused Stage, replies int) {
	s.wire.within(min(strayPatience, a.limits.Command))
	for n := range replies {
		code, err := s.reply()
		if err == nil && code == 354 && n == replies-1 && refused == StageRcpt {
			s.put(".")
			if err = s.w.Flush(); err == nil {
				code, err = s.reply()
			}
		}
		if err != nil || code/100 == 3 || code == 421 {
			s.lost = true
			return
		}
	}
}

// want sends a command that has to be answered by a code of one class: 2 for 2xx.
func (s *session) want(class int, words ...string) error {
	s.put(words...)
	if err := s.w.Flush(); err != nil {
		return err
	}
	return s.judged(class)
}

// judged reads a reply that has to be of one class.
func (s *session) judged(class int) error {
	code, err := s.reply()
	switch {
	case err != nil:
		return err
	case code >= 400:
		return s.refusal(code)
	case code/100 != class:
		return errNoReply
	}
	return nil
}

// body writes the message, dot-stuffed (RFC 5321 4.5.2), and the final dot. An error means that the dot, or the record of
// TLS that it was in, did not get out whole, so the server cannot have taken the mail. The dot is never written after an
// error.
func (s *session) body(message []byte) error {
	lineDot := []byte("\r\n.")
	if bytes.HasPrefix(message, lineDot[2:]) {
		_ = s.w.WriteByte('.') // the writer keeps its error for Flush, and writes nothing more
	}
	rest := message
	for at := bytes.Index(rest, lineDot); at >= 0; at = bytes.Index(rest, lineDot) {
		_, _ = s.w.Write(rest[:at+len(lineDot)])
		_ = s.w.WriteByte('.')
		rest = rest[at+len(lineDot):]
	}
	_, _ = s.w.Write(rest)
	if !bytes.HasSuffix(message, lineDot[:2]) {
		_, _ = s.w.WriteString("\r\n")
	}
	s.put(".")
	return s.w.Flush()
}
