package configsrc

import (
	"context"
	"time"

	"fingerpost/configsrc/edits"
	"fingerpost/configsrc/folder"
	"fingerpost/configsrc/hclfile"
	"fingerpost/configsrc/judge"
	"fingerpost/resolver/catalog"
)

// A looker makes looks at the folder. It belongs to the goroutine that looks.
type looker struct {
	*base
	find    *finder
	commits *committer
	brake   *brake
	amends  *amender
	formers *formers
}

// lookAt is one reload, from top to bottom: gather what has changed, judge it, commit what is accepted. An error means
// that nothing was changed.
func (l *looker) lookAt(ctx context.Context, sc scope) error {
	start := time.Now()
	t, err := l.OpenTree()
	if err != nil {
		return l.brake.holdFolder(err)
	}
	defer t.Close()
	if l.brake.report.isHeld() {
		sc.All = true // otherwise a held change would be accepted piece by piece
	}
	found, err := l.find.gather(ctx, t, sc)
	if err == nil && sc.All && len(l.amends.clearLeftovers(t.Temps())) > 0 {
		found, err = l.find.gather(ctx, t, sc)
	}
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return l.brake.holdTree(err.Error())
	}
	if len(found.candidates)+len(found.touched) == 0 { // such as after the events of our own writes
		l.brake.endLook(sc.All, nil)
		l.commits.reportSuccess(start, "reloaded")
		return nil
	}
	l.amends.nameNew(t, found.candidates)
	waits := l.formers.holdReplaced(t, found.candidates)
	j := l.caseOf(t, found.candidates, start)
	j.Suspicious = func(c *judge.Candidate) bool { return waits[c.Path] || l.find.states.isSuspicious(c, start) }
	j.Run()
	loss, removed := j.Loss()
	through, held, err := l.brake.holdBack(found.candidates, loss, start)
	if held {
		return err
	}
	l.formers.noteReturned(found.candidates)
	if len(removed) > 0 {
		l.formers.noteRemoved(found.candidates, removed)
		_ = l.brake.removals.noteClaims(removed) // a Sink whose disk has failed takes the change without the note
	}
	// ---- Up to here nothing that is served has changed. From here on only the Sink can refuse, and then nothing has
	// changed either. ----
	j.Release() // as large as the change, and no longer needed
	if err := l.commits.commitFound(found, false); err != nil {
		return err
	}
	if waiting := l.find.states.noteSuspects(found.candidates, start); !waiting {
		l.brake.endLook(sc.All, through)
	}
	l.commits.reportSuccess(start, "reloaded")
	return nil
}

// caseOf makes the judge of a reload.
func (l *looker) caseOf(t *folder.Tree, candidates []*judge.Candidate, now time.Time) *judge.Case {
	return &judge.Case{
		Table: l.Table, Candidates: candidates, Require: l.Sealed,
		Row:        l.o.Sink.File,
		Display:    l.Display,
		Locate:     func(p string) (*hclfile.Result, error) { return edits.Locate(t, l.Display(p), p) },
		Suspicious: func(c *judge.Candidate) bool { return l.find.states.isSuspicious(c, now) },
		Removed:    l.brake.removals.removing,
		Meant:      func(project catalog.UUID) bool { return l.brake.removals.removing[judge.ProjectClaim(project)] },
	}
}

// settleAtMost is how long a load or a reload waits for suspect files.
const settleAtMost = 10 * time.Second

// lookTwice looks until there is no suspect, or for settleAtMost: some program may never stop writing a file. Its
// accepted state then stays until Run finds it unchanged.
func (l *looker) lookTwice(ctx context.Context, sc scope) error {
	return l.lookUntilSettled(ctx, func(ctx context.Context) error { return l.lookAt(ctx, sc) })
}

// lookUntilSettled is lookTwice with another first look.
func (l *looker) lookUntilSettled(ctx context.Context, first func(context.Context) error) error {
	end := time.Now().Add(settleAtMost)
	err := first(ctx)
	for err == nil && len(l.find.states.suspects) > 0 && time.Now().Before(end) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Until(l.find.states.nextLook())):
		}
		err = l.lookAt(ctx, scope{})
	}
	return err
}
