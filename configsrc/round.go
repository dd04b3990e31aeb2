package configsrc

import (
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"slices"
	"time"

	"fingerpost/configsrc/atomicfile"
	"fingerpost/configsrc/edits"
	"fingerpost/configsrc/folder"
	"fingerpost/configsrc/judge"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/trace"
)

// rounds put the updates of a writer in place and commit them, one round after another.
type rounds struct {
	files    *configFolder
	updates  chan *submission // to the goroutine that looks
	commits  *committer
	states   *pathStates
	removals *removals
	formers  *formers
}

// submit stages an update, passes it to the goroutine that looks, and waits until it is committed or refused.
func (r *rounds) submit(ctx context.Context, update *edits.Update) (id int64, err error) {
	u := &submission{Update: update, done: make(chan error, 1), span: trace.From(ctx)}
	defer func() { // removes what was staged, or what putFiles has replaced
		if u.undo != "" {
			_ = r.files.o.Disk.Remove(u.undo)
		}
		for _, f := range u.Files {
			f.Discard()
		}
	}()
	noted := r.files.noteWrite(u)
	defer r.files.dropWrite(u, noted)
	for _, f := range u.Files {
		if err := f.Stage(); errors.Is(err, atomicfile.ErrLocked) {
			return 0, edits.Busy(err.Error())
		} else if err != nil {
			return 0, edits.WriteFault("write "+u.Is.Path, err)
		}
		f.Stamp = folder.StatOf(f.Info)
		f.Stamp.Hash = sha256.Sum256(f.Content)
	}
	if err := <-noted; err != nil {
		return 0, err
	}
	select {
	case r.updates <- u:
		err = <-u.done // even if ctx is done: the update may be committed already, and only the result tells
	case <-ctx.Done():
		err = edits.Busy("the files are being reloaded")
	}
	if u.journaled != nil {
		id = u.journaled.ID
	}
	return id, err
}

// maxUpdates bounds the updates of one round.
const maxUpdates = 256

// commitQueued commits the first update and all that are queued behind it.
func (r *rounds) commitQueued(first *submission) {
	waiting := []*submission{first}
	for more := true; more && len(waiting) < maxUpdates; {
		select {
		case u := <-r.updates:
			waiting = append(waiting, u)
		default:
			more = false
		}
	}
	start := time.Now()
	if r.commits.report.isHeld() {
		answer(waiting, edits.Busy("a reload is held back until someone confirms it (fingerpost reload --confirm)"))
		return
	}
	waiting = slices.DeleteFunc(waiting, func(u *submission) bool {
		switch {
		case u.Preview == nil:
			return false
		case r.files.git.state().working():
			u.done <- errGitBusy
		default:
			u.done <- r.answerDry(u)
		}
		return true
	})
	for len(waiting) > 0 {
		waiting = r.commitRound(waiting, start)
	}
}

// commitRound commits the updates that do not depend on each other, from top to bottom, and returns the others.
func (r *rounds) commitRound(updates []*submission, start time.Time) (later []*submission) {
	r.files.git.lock()
	defer r.files.git.unlock()
	git := r.files.git.state()
	if git.working() {
		answer(updates, errGitBusy)
		return nil
	}
	var round []*submission
	taken := map[judge.Claim]bool{}
	for _, u := range updates {
		if u.Clashes(taken) {
			later = append(later, u)
			continue
		}
		if err := r.files.Admit(u.Update); err != nil {
			u.done <- err
			continue
		}
		round = append(round, u)
	}
	round = r.noteRound(round)
	endPlace := stepOf(round, "files.place")
	// ---- Up to here no file has changed. placeRound exchanges the files or puts them back; what it returns is
	// committed. ----
	round = r.files.placeRound(round, git)
	endPlace()
	if len(round) == 0 {
		r.removals.endNote()
		return later
	}
	endPublish := stepOf(round, "files.publish")
	found := &finding{recording: func() func() { return stepOf(round, "ledger.sync") }}
	for _, u := range round {
		found.candidates = append(found.candidates, u.Changed...)
	}
	// An error is one answer for the round, which was one change: either all of it is undone, or nothing.
	err := r.commits.commitFound(found, false)
	endPublish()
	if err != nil && r.sinkLacks(found.candidates) {
		for _, u := range round {
			u.takeBack()
		}
		answer(round, err)
		r.removals.endNote()
		return later
	}
	if err != nil { // the files are the truth: the next look makes the store follow
		err = errOutcome
	} else {
		r.removals.endNote()
	}
	r.files.endWrites(round)
	for _, c := range found.candidates {
		delete(r.states.suspects, c.Path)
	}
	answer(round, err)
	if err == nil {
		r.commits.reportSuccess(start, "written")
	}
	return later
}

// errOutcome is the answer to a write that is in the files, and that the Sink may have taken although it has failed.
var errOutcome = &catalog.Error{Code: catalog.CodeOutcomeUnknown,
	Message: "the write is in the files, but the store has failed meanwhile, and nobody knows yet whether it is served; " +
		"it will be, once the store works again"}

// sinkLacks reports whether the Sink, which has failed, has certainly taken nothing of a change.
func (r *rounds) sinkLacks(changed []*judge.Candidate) bool {
	for _, c := range changed {
		row, err := r.files.o.Sink.File(c.Path)
		switch {
		case catalog.IsNotFound(err):
			if c.Gone {
				return false
			}
		case err != nil, !c.Gone && row.Stamp.Hash == c.Stamp.Hash && slices.EqualFunc(row.Deps, c.Deps, sameContent):
			return false
		}
	}
	return true
}

func sameContent(a, b catalog.Dep) bool { return a.Path == b.Path && a.Stamp.Hash == b.Stamp.Hash }

// stepOf begins a step that a round of writes makes together, in the trace of each.
func stepOf(round []*submission, name string) (end func()) {
	var spans []*trace.Span
	for _, u := range round {
		if u.span != nil {
			spans = append(spans, u.span.Child(name))
		}
	}
	return func() {
		for _, span := range spans {
			span.End()
		}
	}
}

// answerDry answers an update that is a dry run, unless somebody has saved a file of it meanwhile.
func (r *rounds) answerDry(u *submission) error {
	for _, f := range u.Files {
		if f.Creates {
			continue
		}
		switch now, err := r.files.o.Disk.ReadFile(f.Target); {
		case errors.Is(err, fs.ErrNotExist), err == nil && sha256.Sum256(now) != f.Old:
			return atomicfile.ErrChanged
		case err != nil:
			return edits.WriteFault("read "+f.Name, err)
		}
	}
	t, err := r.files.OpenFiles()
	if err != nil {
		return edits.WriteFault("open the config folder", err)
	}
	defer t.Close()
	return r.files.Describe(u.Update, t)
}

// noteRound stores the removals of a round of API writes in the note, and returns the updates that may go on.
func (r *rounds) noteRound(round []*submission) []*submission {
	var removed []judge.Claim
	removes := map[*submission]bool{}
	former := map[catalog.UUID]catalog.Former{}
	for _, u := range round {
		had := u.Was.Claims[:u.Was.Counts.Projects+u.Was.Counts.Domains]
		stay := u.Is.Claims[:u.Is.Counts.Projects+u.Is.Counts.Domains]
		if slices.Equal(had, stay) { // nearly always
			continue
		}
		stays := judge.SetOf(stay)
		gone := map[judge.Claim]bool{}
		for _, c := range had {
			if !stays[c] {
				removed, gone[c] = append(removed, c), true
			}
		}
		if removes[u] = len(gone) > 0; removes[u] {
			r.formers.addRemoved(former, gone, u.Is.Path, u.Was.Refs, u.Was.Bytes)
		}
	}
	if len(removed) == 0 {
		return round
	}
	err := r.formers.setAll(former)
	if err == nil {
		err = r.removals.noteClaims(removed)
	}
	if err == nil {
		return round
	}
	return slices.DeleteFunc(round, func(u *submission) bool {
		if removes[u] {
			u.done <- err
		}
		return removes[u]
	})
}
