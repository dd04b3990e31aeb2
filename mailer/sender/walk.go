package sender

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"fingerpost/resolver/catalog"
)

// Run checks the projects that send mail, each daily, until ctx ends. Running checks are cut off then, without a result.
func (s *Service) Run(ctx context.Context) {
	if s.o.Lookup == nil {
		return
	}
	defer s.end()
	s.load()
	for wait := firstWalk; ; wait = walkEvery {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		if err := s.walk(ctx); err != nil {
			s.o.Logger.Warn("senders are not checked for now", "error", err)
		}
	}
}

// load takes up what has got worse before the start.
func (s *Service) load() {
	err := s.o.Ledger.EachNamed(notePrefix, func(name string, value []byte) error {
		var n note
		project, err := catalog.ParseUUID(strings.TrimPrefix(name, notePrefix))
		if err == nil && json.Unmarshal(value, &n) == nil && n.Worse != nil {
			s.setWorse(project, n.Worse)
		}
		return nil
	})
	if err != nil {
		s.o.Logger.Warn("the last checks of senders cannot be read", "error", err)
	}
}

// walk checks the senders that are due, and forgets those that send no more.
func (s *Service) walk(ctx context.Context) error {
	var ids []int64
	err := s.o.Projects.EachProject(func(p *catalog.Project) bool { ids = append(ids, p.ID); return true })
	if err != nil {
		return err
	}
	due := make(chan dueCheck)
	var checks sync.WaitGroup
	for range walkers {
		checks.Go(func() {
			for d := range due {
				<-s.join(d.project, d.of, func() (func(), error) { return func() {}, nil }).done
			}
		})
	}
	defer context.AfterFunc(ctx, s.end)()
	stay, err := s.eachDue(ctx, ids, due)
	close(due)
	checks.Wait()
	if err == nil && ctx.Err() == nil {
		err = s.forget(stay)
	}
	return err
}

// A dueCheck is a check that walk makes.
type dueCheck struct {
	project *catalog.ProjectConfig
	of      Sender
}

// eachDue sends the checks that are due, and returns the names of the notes of all projects that send mail.
func (s *Service) eachDue(ctx context.Context, ids []int64, due chan<- dueCheck) (map[string]bool, error) {
	stay := map[string]bool{}
	for _, id := range ids {
		p, err := s.o.Projects.ReadMailProject(id)
		if catalog.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if !sends(p) {
			continue
		}
		stay[noteName(p.Project.UUID)] = true
		n, err := s.read(p.Project.UUID)
		if err != nil {
			return nil, err
		}
		// A last check in the future is one from before the clock was set back.
		wait := dueAfter
		if n.Result.State == Unknown {
			wait = againAfter
		}
		if ago := s.o.Now().Sub(n.Result.CheckedAt.Time); ago >= 0 && ago < wait {
			continue
		}
		of, err := s.senderOf(p)
		if err != nil {
			return nil, err
		}
		select {
		case due <- dueCheck{p, of}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return stay, nil
}

// sends reports whether a project is one that sends mail.
func sends(p *catalog.ProjectConfig) bool {
	return p.Service.MailEnabled && p.SMTP != nil && p.SMTP.Active && p.Project.Status != catalog.StatusSuspended
}

// forget deletes the notes of projects that send no mail any more, or are gone.
func (s *Service) forget(stay map[string]bool) error {
	gone := map[string][]byte{}
	err := s.o.Ledger.EachNamed(notePrefix, func(name string, _ []byte) error {
		if !stay[name] {
			gone[name] = nil
		}
		return nil
	})
	if err != nil || len(gone) == 0 {
		return err
	}
	if err := s.o.Ledger.SetNamed(gone); err != nil {
		return err
	}
	for name := range gone {
		if project, err := catalog.ParseUUID(strings.TrimPrefix(name, notePrefix)); err == nil {
			s.setWorse(project, nil)
		}
	}
	return nil
}
