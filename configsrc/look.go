package configsrc

import (
	"context"
	"fmt"
	"time"

	"fingerpost/configsrc/atomicfile"
	"fingerpost/configsrc/folder"
	"fingerpost/configsrc/hclfile"
	"fingerpost/configsrc/judge"
	"fingerpost/resolver/catalog"
)

// look is one reload, from top to bottom: gather what has changed, judge it, commit what is accepted. An error means
// that nothing was changed.
func (s *Source) look(ctx context.Context, sc scope) error {
	start := time.Now()
	t, err := s.openTree()
	if err != nil {
		return s.holdTree(fmt.Sprintf("the config folder cannot be opened: %v", atomicfile.Cause(err)))
	}
	defer t.Close()
	if len(s.table.Files) == 0 && sc.All && !s.live.Load() {
		return s.firstLoad(ctx, t, start)
	}
	if s.isHeld() {
		sc.All = true // otherwise a held change would be accepted piece by piece
	}
	found, err := s.gather(ctx, t, sc)
	if err == nil && sc.All && len(s.clearLeftovers(t.Temps())) > 0 {
		found, err = s.gather(ctx, t, sc)
	}
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return s.holdTree(err.Error())
	}
	if len(found.candidates)+len(found.touched) == 0 { // such as after the events of our own writes
		s.settled(sc.All, nil)
		s.reportSuccess(start, "reloaded")
		return nil
	}
	s.nameNew(t, found.candidates)
	waits := s.holdReplaced(t, found.candidates)
	j := s.judge(t, found.candidates, start)
	j.Suspicious = func(c *judge.Candidate) bool { return waits[c.Path] || s.states.suspicious(c, start) }
	j.Run()
	loss, removed := j.Loss()
	through, held, err := s.brake(found, loss, start)
	if held {
		return err
	}
	s.settleFormers(found.candidates)
	if len(removed) > 0 {
		s.rememberRemoved(found, removed)
		_ = s.noteClaims(removed) // a Sink whose disk has failed takes the change without the note
	}
	// ---- Up to here nothing that is served has changed. From here on only the Sink can refuse, and then nothing has
	// changed either. ----
	j.Release() // as large as the change, and no longer needed
	if err := s.commitPart(found, false); err != nil {
		return err
	}
	if waiting := s.states.noteSuspects(found.candidates, start); !waiting {
		s.settled(sc.All, through)
	}
	s.reportSuccess(start, "reloaded")
	return nil
}

// judge makes the judge of a reload.
func (s *Source) judge(t *folder.Tree, candidates []*judge.Candidate, now time.Time) *judge.Case {
	return &judge.Case{
		Table: s.table, Candidates: candidates, Require: s.sealed,
		Row:        s.o.Sink.File,
		Display:    s.display,
		Locate:     func(p string) (*hclfile.Result, error) { return locate(t, s.display(p), p) },
		Suspicious: func(c *judge.Candidate) bool { return s.states.suspicious(c, now) },
		Removed:    s.removing,
		Meant:      func(project catalog.UUID) bool { return s.removing[judge.ProjectClaim(project)] },
	}
}

// settleAtMost is how long a load or a reload waits for suspect files.
const settleAtMost = 10 * time.Second

// lookTwice looks until there is no suspect, or for settleAtMost: some program may never stop writing a file. Its
// accepted state then stays until Run finds it unchanged.
func (s *Source) lookTwice(ctx context.Context, sc scope) error {
	end := time.Now().Add(settleAtMost)
	err := s.look(ctx, sc)
	for err == nil && len(s.states.suspects) > 0 && time.Now().Before(end) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Until(s.states.nextLook())):
		}
		err = s.look(ctx, scope{})
	}
	return err
}
