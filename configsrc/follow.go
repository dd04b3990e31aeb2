package configsrc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"fingerpost/configsrc/edits"
	"fingerpost/configsrc/folder"
	"fingerpost/configsrc/judge"
	"fingerpost/resolver/catalog"
)

// A Source with Options.Follow is that of an edge. It has no folder: ApplyTree brings it whole generations of the files
// that its authority has accepted, and takes them the way that a look takes the files of a folder, through the same
// decoder, judge, brake and commit. The Sink keeps the bytes in the batch with what they declare, so a restart needs
// nothing else.
//
// A file that this release refuses, such as one with a block of a newer one, keeps its last good state. Its bytes are
// kept as well and tried again with the next change, with Reload, and by another release. Two rules of a folder do not
// hold: nothing waits for a second look, because no file is half-written; and a project that goes while another one
// comes is not held as a possible rename, because the authority has decided that.

// A follower takes the files of an authority. It belongs to the goroutine that looks.
type follower struct {
	*base
	commits *committer
	brake   *brake
}

// received returns the files that one ApplyTree works on: as they were received, or as the Sink has them.
func (e *follower) received(texts map[string][]byte) edits.Stored {
	return edits.Over(texts, e.o.Sink.Text)
}

// applyTree is Source.ApplyTree.
func (e *follower) applyTree(ctx context.Context, c catalog.TreeChange) error {
	start := time.Now()
	texts := map[string][]byte{} // replaced; nil: removed
	change := catalog.Change{Position: &c.Position}
	candidates := map[string]*judge.Candidate{}
	for i := range c.Put {
		f := &c.Put[i]
		content := f.Bytes
		if content == nil { // an empty file, not a removed one
			content = []byte{}
		}
		switch {
		case folder.IsConfigPath(f.Path):
			candidates[f.Path] = receivedFile(f.Path, content)
			candidates[f.Path].Times = f.Times
		default:
			texts[f.Path] = content
			change.Texts = append(change.Texts, catalog.TextChange{Path: f.Path, Bytes: content})
		}
	}
	for _, name := range c.Removed {
		switch {
		case folder.IsConfigPath(name):
			candidates[name] = &judge.Candidate{Path: name, Gone: true}
		default:
			texts[name] = nil
			change.Texts = append(change.Texts, catalog.TextChange{Path: name, Gone: true})
		}
	}
	if err := e.addAffected(texts, candidates, false); err != nil {
		return err
	}
	var err error
	if len(e.Table.Files) == 0 && len(candidates) > chunk {
		err = e.applyFirst(ctx, texts, change, candidates, start)
	} else {
		err = e.applyFiles(ctx, texts, change, sortedCandidates(candidates), start)
	}
	if err == nil && !e.live.Load() {
		e.setLive(true)
	}
	return err
}

// addAffected adds the files that name a changed text, and the refused ones: the change may repair them.
func (e *follower) addAffected(texts map[string][]byte, candidates map[string]*judge.Candidate, all bool) error {
	var err error
	again := func(name string, b []byte) {
		if candidates[name] == nil && b != nil {
			candidates[name] = receivedFile(name, b)
		}
	}
	if all || len(e.Quarantine) > 0 && len(e.Quarantine) <= manyQuarantined {
		err = e.o.Sink.Refused(func(name string, content []byte) bool {
			again(name, content)
			return true
		})
	}
	for text := range texts {
		for _, f := range e.Table.UsersOf(text) {
			b, ferr := e.o.Sink.LastGood(f.Path)
			err = errors.Join(err, ferr)
			again(f.Path, b)
		}
	}
	return err
}

func receivedFile(name string, b []byte) *judge.Candidate {
	return &judge.Candidate{Path: name, Content: judge.Content{Bytes: b}, Stamp: edits.StampOf(b)}
}

func sortedCandidates(by map[string]*judge.Candidate) (all []*judge.Candidate) {
	for _, c := range by {
		all = append(all, c)
	}
	judge.SortByPath(all)
	return all
}

// applyFiles is one look at received files, from top to bottom.
func (e *follower) applyFiles(ctx context.Context, texts map[string][]byte, change catalog.Change,
	candidates []*judge.Candidate, start time.Time) error {
	if err := e.decodeReceived(ctx, texts, candidates); err != nil {
		return err
	}
	j := e.judgeReceived(candidates)
	j.Run()
	loss, _ := j.Loss()
	through, held, err := e.brake.holdBack(candidates, loss, start)
	if held {
		return err
	}
	// ---- Up to here nothing that is served has changed. From here on only the Sink can refuse, and then nothing has
	// changed either. ----
	if err := e.commitReceived(change, candidates, false); err != nil {
		return err
	}
	e.brake.endLook(true, through)
	e.commits.reportSuccess(start, "reloaded")
	return nil
}

// applyFirst is applyFiles for an edge that has nothing yet. It applies the files in chunks, as a first load from a
// folder does, and the position with the last: until then nothing is served, and after a crash the next tree is the
// first.
func (e *follower) applyFirst(ctx context.Context, texts map[string][]byte, change catalog.Change,
	candidates map[string]*judge.Candidate, start time.Time) error {
	if err := e.o.Sink.Fill(&catalog.Change{Texts: change.Texts}); err != nil {
		return fmt.Errorf("store the change: %w", err)
	}
	decode := func(part []*judge.Candidate) []*judge.Candidate {
		_ = e.decodeReceived(ctx, texts, part) // inChunks looks at ctx as well
		return part
	}
	if err := inChunks(ctx, sortedCandidates(candidates), decode, func(part []*judge.Candidate) error {
		e.judgeReceived(part).Run()
		if err := e.commitReceived(catalog.Change{}, part, true); err != nil {
			return err
		}
		for _, c := range part {
			c.Declared, c.Texts = nil, nil // as large as the files
		}
		return nil
	}); err != nil {
		return err
	}
	generation, err := e.o.Sink.Apply(&catalog.Change{Position: change.Position})
	if err != nil {
		return fmt.Errorf("store the change: %w", err)
	}
	e.commits.report.noteGeneration(generation)
	e.commits.reportSuccess(start, "reloaded")
	return nil
}

// decodeReceived decodes candidates on all cores. It does not use the table, which a commit may be changing.
func (e *follower) decodeReceived(ctx context.Context, texts map[string][]byte, candidates []*judge.Candidate) error {
	each(len(candidates), e.live.Load(), func(i int) {
		c := candidates[i]
		if ctx.Err() == nil && !c.Gone {
			c.Decode(c.Path, e.received(texts), e.Rules())
		}
	})
	return ctx.Err()
}

func (e *follower) judgeReceived(candidates []*judge.Candidate) *judge.Case {
	for _, c := range candidates {
		c.Prev = e.Table.Files[c.Path]
	}
	return &judge.Case{
		Table: e.Table, Candidates: candidates, Require: e.Sealed,
		Row:     e.o.Sink.File,
		Display: func(path string) string { return path },
		Locate:  e.LastDecoded,
		Meant:   func(catalog.UUID) bool { return true },
	}
}

// commitReceived commits the accepted candidates, and keeps the bytes of the others.
func (e *follower) commitReceived(change catalog.Change, candidates []*judge.Candidate, fill bool) error {
	var accepted []*judge.Candidate
	for _, c := range candidates {
		refused := e.Quarantine[c.Path] != nil
		switch {
		case c.Rejected && c.Gone:
		case c.Rejected:
			change.Refused = append(change.Refused, catalog.TextChange{Path: c.Path, Bytes: c.Bytes})
		default:
			if refused {
				change.Refused = append(change.Refused, catalog.TextChange{Path: c.Path, Gone: true})
			}
			if !c.Gone || c.Prev != nil {
				accepted = append(accepted, c)
			}
		}
	}
	err := e.commits.commitChange(change, accepted, candidates, fill)
	if err == nil && fill && len(accepted) == 0 && len(change.Refused) > 0 {
		err = e.o.Sink.Fill(&catalog.Change{Refused: change.Refused})
	}
	return err
}

// retryRefused tries the refused files again, finds the warnings of accepted ones, and decodes every file anew after a
// change of the decoder. The position stays.
func (e *follower) retryRefused(ctx context.Context) error {
	candidates := map[string]*judge.Candidate{}
	if err := e.addAffected(nil, candidates, true); err != nil {
		return err
	}
	for name, f := range e.Table.Files {
		if e.redecode || f.Warned { // warnings are only in memory
			b, err := e.o.Sink.LastGood(name)
			if err != nil {
				return err
			}
			if candidates[name] == nil && b != nil {
				candidates[name] = receivedFile(name, b)
			}
		}
	}
	if len(candidates) == 0 {
		return nil
	}
	at := e.o.Sink.Position()
	return e.applyFiles(ctx, nil, catalog.Change{Position: &at}, sortedCandidates(candidates), time.Now())
}

// load is Source.Load for an edge: what the Sink has is served at once. Without a position it has no whole tree, and
// nothing is served before one has come.
func (e *follower) load(ctx context.Context) error {
	err := e.retryRefused(ctx)
	e.setLive(e.o.Sink.Position().Generation > 0)
	switch {
	case errors.Is(err, ErrHeld):
		return nil
	case err != nil:
		return err
	}
	e.redecode = false
	e.commits.reportSuccess(time.Now(), "loaded")
	return e.o.Sink.SetDecoderRevision(e.revision())
}

// run is Source.Run.
func (e *follower) run(ctx context.Context, asked turns) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case t := <-asked:
			t.done <- t.do(ctx)
		}
	}
}
