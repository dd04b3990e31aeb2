package verify

import (
	"context"
	"errors"
	"time"

	"fingerpost/configsrc/verify/dcv"
	"fingerpost/resolver/catalog"
)

// A flight is a check that runs. All who want to know about the domain wait for the same one.
type flight struct {
	domain Domain
	done   chan struct{} // closed at the end
	// Set before that:
	err    error // why there is no result
	unsaid error // why the result is not in the files
}

// An unwritten is a domain whose result cannot be written into the files.
type unwritten struct {
	Domain   string `json:"domain"`
	Verified string `json:"verified"` // what the file should have
	Error    string `json:"error"`
}

// errGone ends a check whose domain was removed, renamed or moved meanwhile: its result belongs to nothing.
var errGone = errors.New("the domain is not there any more")

// startDue starts the checks that are due, as far as there is room, and returns how long Run may wait for the next.
func (s *Service) startDue() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unsaved != "" {
		return retryLoad
	}
	now := time.Since(s.began)
	s.schedule.advance(now)
	var release func()
	may := func(p catalog.UUID, others bool) (ok bool) {
		take := s.background.TryTake
		if others {
			take = s.background.TryTakeQuarter
		}
		release, ok = take(p.String())
		return ok
	}
	for s.demands.Taken() == 0 || s.background.Taken() < maxWhileAsked {
		c := s.schedule.take(now, may)
		if c == nil {
			break
		}
		d := Domain{Subject: dcv.Subject{Project: c.project, Name: c.name, Verified: c.verified}, ProjectID: c.projectID}
		if s.begin(d, release) == nil {
			release()
			return retryLoad // it ends
		}
	}
	// What is due and found no place is begun when a check ends.
	if at, waits := s.schedule.next(); waits {
		return max(at-now, 0)
	}
	return time.Hour
}

// begin starts a check, which has a place that release gives back; nil once the service ends. The caller holds mu, and has
// seen that no check of the name runs.
func (s *Service) begin(d Domain, release func()) *flight {
	if s.ended {
		return nil
	}
	f := &flight{domain: d, done: make(chan struct{})}
	s.flights[d.Name] = f
	s.parts.Go(func() {
		defer s.look()
		defer close(f.done)
		ctx, cancel := context.WithTimeout(s.base, checkTime)
		policy := s.policy()
		facts, err := s.o.Checker.Check(ctx, d.Subject, policy, dcv.Ways(d.Subject, policy))
		cancel()
		var of landing
		if err == nil {
			if of, err = s.land(d, facts); err != nil && !errors.Is(err, errGone) {
				s.setProblem(&s.unsaved, err) // until save finds that the ledger works
				s.notes.again()
			}
		}
		of.limited = facts.Limited
		f.err, f.unsaid = err, of.unsaid
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.flights, d.Name)
		release()
		s.arrange(d, of, err)
	})
	return f
}

// policy returns that of the files, the zero Policy if they have none.
func (s *Service) policy() dcv.Policy {
	p, _ := s.o.Domains.Policy()
	return p
}

// A landing is what a check has led to.
type landing struct {
	domain   Domain // as the files have it after the check
	state    dcv.State
	decision dcv.Decision
	unsaid   error // why the decision is not in the files
	limited  bool  // the check ran into its limit
}

// land decides what facts mean, has that written, and notes it. The files may have changed while the check was made, so
// the decision is made for what they have now, and again if they change before the write.
func (s *Service) land(asked Domain, facts dcv.Facts) (of landing, err error) {
	for try := 0; ; try++ {
		d, found, err := s.o.Domains.Named(asked.Name)
		if err != nil {
			return of, err
		}
		if !found || d.Project != asked.Project {
			return of, errGone
		}
		key := noteKey{d.Project, d.Name}
		was, err := s.notes.read(key)
		if err != nil {
			return of, err
		}
		of.domain = d
		of.state, of.decision = dcv.Decide(was, d.Subject, s.policy(), facts, s.o.Now())
		if of.decision.Write != "" {
			err = s.write(key, &of)
			if errors.Is(err, ErrOvertaken) && try < overtakenTries {
				continue
			}
			of.unsaid = err
		}
		if err := s.notes.set(key, of.state); err != nil {
			return of, err
		}
		s.tell(&of, &was)
		return of, nil
	}
}

// write changes the file. The state with the intention is noted before, durably: after a crash at any moment, dcv.Follow
// sees whether the file has the value.
func (s *Service) write(key noteKey, of *landing) error {
	text, err := of.state.Encode()
	if err == nil {
		err = s.notes.putNow(key, text)
	}
	if err == nil {
		ctx, cancel := context.WithTimeout(s.base, writeTime)
		defer cancel()
		err = s.o.Writer.SetVerified(ctx, of.domain, of.decision.Write, of.decision.Reason)
	}
	now := s.o.Now()
	if of.state = dcv.Settle(of.state, err == nil, now); err != nil {
		of.state.NextAt = now.Add(retryLater)
	} else {
		of.domain.Verified = of.decision.Write
	}
	return err
}

// tell gives the log, and the audit trail, what a check has led to. A write has an entry of its own.
func (s *Service) tell(of *landing, was *dcv.State) {
	d, reason := &of.domain, of.decision.Reason
	switch {
	case of.unsaid != nil:
		s.o.Logger.Warn("a domain's verification cannot be written into its file: it is tried again", "domain", d.Name,
			"verified", of.decision.Write, "error", of.unsaid)
	case of.decision.Write != "":
		s.o.Logger.Info("a domain's verification has changed", "domain", d.Name, "verified", of.decision.Write,
			"reason", reason)
	case of.decision.Noted != "":
		s.o.Logger.Info("the proof of a domain has changed", "domain", d.Name, "ownership", of.decision.Noted,
			"reason", reason)
		s.o.Trail.NoteDomain(auditActions[of.decision.Noted], d.ProjectID, d.Name, catalog.Author{Door: catalog.DoorDNS},
			catalog.FieldChange{Field: "ownership", Before: was.Ownership.State, After: of.decision.Noted},
			catalog.FieldChange{Field: catalog.AuditReason, After: reason})
	}
}

// auditActions are the actions of the audit trail for states of ownership that come without a write.
var auditActions = map[string]string{
	dcv.Proven:  catalog.AuditVerify,
	dcv.Failing: catalog.AuditFailing,
	dcv.Lost:    catalog.AuditLost,
}

// arrange puts the domain of a check that has ended back into the schedule. The caller holds mu.
func (s *Service) arrange(asked Domain, of landing, err error) {
	c := s.schedule.subjects[asked.Name]
	if c == nil {
		return
	}
	now := s.reading()
	slow := s.schedule.slow(asked.Project, of.limited)
	switch {
	case c.project != asked.Project: // it is another one by now, which keeps its time
		s.schedule.change(c, true, func() {})
	case err != nil:
		s.schedule.change(c, true, func() { c.next = now.since + retryLater })
	default:
		if delete(s.unsaid, c.name); of.unsaid != nil {
			s.unsaid[c.name] = unwritten{Domain: c.name, Verified: of.decision.Write, Error: of.unsaid.Error()}
		}
		s.schedule.change(c, true, func() {
			if c.verified == asked.Verified { // else the feed has told of a later value, perhaps a person's
				c.verified = of.domain.Verified
			}
			c.meet(s.schedule.policy, of.state, now)
			c.next = max(c.next, now.since+time.Second)
			if slow {
				c.next = max(c.next, now.since+slowEvery)
			}
		})
	}
}
