package verify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"fingerpost/configsrc/verify/dcv"
	"fingerpost/resolver/catalog"
)

// ErrReadOnly is the error of Check on a node that checks nothing.
var ErrReadOnly = &catalog.Error{Code: catalog.CodeReadOnly, Message: "this node checks no domains: it may not write"}

// View returns what is known of a domain, without asking anybody. It takes project and name from of, and the rest from the
// files; NOT_FOUND for a domain that is gone.
func (s *Service) View(_ context.Context, of dcv.Subject) (catalog.VerificationView, error) {
	of, state, err := s.known(of)
	if err != nil {
		return catalog.VerificationView{}, err
	}
	view := dcv.Show(of, state, s.policy())
	view.NextCheckAt = s.nextCheck(of)
	return view, nil
}

// known returns a domain as the files have it, and its state.
func (s *Service) known(of dcv.Subject) (dcv.Subject, dcv.State, error) {
	d, found, err := s.o.Domains.Named(of.Name)
	if err != nil {
		return of, dcv.State{}, err
	}
	if !found || d.Project != of.Project {
		return of, dcv.State{}, catalog.NotFound("domain")
	}
	state, err := s.notes.read(noteKey{of.Project, of.Name})
	return d.Subject, state, err
}

// nextCheck returns when a domain is checked next in the background; nil: it is not planned.
func (s *Service) nextCheck(of dcv.Subject) *catalog.JSONMoment {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.schedule.subjects[of.Name]
	if c == nil || c.project != of.Project {
		return nil
	}
	now := s.reading()
	at := now.wall.UTC()
	if c.at >= 0 { // else it is being checked
		at = now.wallOf(max(c.next, now.since))
	}
	return &catalog.JSONMoment{Time: at}
}

// Check checks a domain now, before all that waits in the background, and returns what is known then. Within ten seconds of
// the last check, and where the check takes longer than that, it returns what is known already, and after which time the
// next check is made. An error is for the client: NOT_FOUND for a domain that is gone, UNAVAILABLE, and whatever keeps the
// result from being written into the files.
func (s *Service) Check(ctx context.Context, of dcv.Subject) (view catalog.VerificationView, retryAfter time.Duration, err error) {
	if s.o.Checker == nil {
		return view, 0, ErrReadOnly
	}
	of, state, err := s.known(of)
	if err != nil {
		return view, 0, err
	}
	// A last check in the future is one from before the clock was set back.
	if ago := s.o.Now().Sub(state.CheckedAt); ago >= 0 && ago < restWithin {
		view, err = s.View(ctx, of)
		return view, restWithin - ago, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	f, err := s.ask(ctx, of)
	if err != nil {
		return view, 0, err
	}
	select {
	case <-f.done:
		err = s.resultOf(f)
	case <-ctx.Done():
		retryAfter = restWithin
	}
	if err != nil {
		return view, 0, err
	}
	view, err = s.View(ctx, of)
	return view, retryAfter, err
}

// Claim returns the records that would prove a domain for a project that does not have it, nil where no proof is asked of
// keys. With ask it asks whether they are there, now, and changes nothing; servers that do not answer are no proof.
func (s *Service) Claim(ctx context.Context, of dcv.Subject, ask bool) (records []catalog.RecordView, proven bool) {
	policy, on := s.o.Domains.Policy()
	if !on || policy.Require == catalog.RequireNone {
		return nil, false
	}
	of.Verified = catalog.VerifiedPending
	for _, r := range dcv.Records(of, policy, dcv.Facts{}) {
		if r.Purpose == dcv.PurposeOwnership {
			records = append(records, r)
		}
	}
	// A record that is there may be one that the project's uuid had before.
	if reused, err := s.o.Domains.Reused(of.Project); !ask || s.o.Checker == nil || reused || err != nil {
		return records, false
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	release, err := s.demands.Take(ctx, of.Project.String())
	if err != nil {
		return records, false
	}
	defer release()
	ways := dcv.Ways(of, policy)
	// Without a policy nothing is asked but the proof, and where the name leads.
	facts, err := s.o.Checker.Check(ctx, of, dcv.Policy{}, ways)
	return records, err == nil && dcv.Proves(ways, &facts)
}

// ask returns the check of a domain that runs, or starts one.
func (s *Service) ask(ctx context.Context, of dcv.Subject) (*flight, error) {
	for {
		s.mu.Lock()
		running := s.flights[of.Name]
		s.mu.Unlock()
		if running != nil && running.domain.Project == of.Project {
			return running, nil
		}
		if running != nil {
			select {
			case <-running.done:
				continue
			case <-ctx.Done():
				return nil, errBusy
			}
		}
		release, err := s.demands.Take(ctx, of.Project.String())
		if err != nil {
			return nil, errBusy
		}
		f, err := s.beginAsked(of, release)
		if f != nil {
			return f, nil
		}
		if release(); err != nil {
			return nil, err
		}
	}
}

// beginAsked starts a check on demand, which gives its place in s.demands back at its end; nil if another one was faster.
func (s *Service) beginAsked(of dcv.Subject, release func()) (*flight, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flights[of.Name] != nil {
		return nil, nil
	}
	f := s.begin(Domain{Subject: of}, release)
	if f == nil {
		return nil, errEnding
	}
	if c := s.schedule.subjects[of.Name]; c != nil {
		s.schedule.takeOut(c)
	}
	return f, nil
}

var (
	errBusy = &catalog.Error{Code: catalog.CodeUnavailable,
		Message: "too many domains are being checked at the moment; try again in a minute"}
	errEnding = &catalog.Error{Code: catalog.CodeUnavailable, Message: "the service is ending"}
)

// resultOf returns the error of a check that has ended, for the client.
func (s *Service) resultOf(f *flight) error {
	err := f.err
	if err == nil {
		err = f.unsaid
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errGone):
		return catalog.NotFound("domain")
	case errors.As(err, new(*catalog.Error)):
		return err
	case s.base.Err() != nil:
		return errEnding
	case errors.Is(err, ErrOvertaken):
		return &catalog.Error{Code: catalog.CodeFileChanged, Message: err.Error()}
	case errors.Is(err, context.DeadlineExceeded):
		return &catalog.Error{Code: catalog.CodeUnavailable, Message: "the name servers were not asked in time; try again"}
	}
	return fmt.Errorf("check %s: %w", f.domain.Name, err)
}
