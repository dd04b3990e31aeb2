package configsrc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"

	"fingerpost/configsrc/folder"
	"fingerpost/configsrc/judge"
	"fingerpost/resolver/catalog"
)

// chunk is the number of files in one batch of a first load.
const chunk = 1024

// load brings the Sink in step with the folder for the first time.
func (l *looker) load(ctx context.Context) error {
	l.brake.confirmed = l.brake.confirmed || l.o.AcceptDeletes
	first := l.loadAll
	if len(l.Table.Files) > 0 {
		first = func(ctx context.Context) error { return l.lookAt(ctx, scope{Seen: folder.Seen{All: true}}) }
	}
	err := l.lookUntilSettled(ctx, first)
	l.setLive(true)
	switch {
	case errors.Is(err, ErrHeld):
		return nil // the Sink serves its present content
	case err != nil:
		return err
	}
	l.redecode = false
	return l.o.Sink.SetDecoderRevision(l.revision())
}

// loadAll fills an empty Sink: nothing is served yet, so files are applied in chunks, in path order, which is also the
// order of precedence when two claim the same.
func (l *looker) loadAll(ctx context.Context) error {
	start := time.Now()
	t, err := l.OpenTree()
	if err != nil {
		return l.brake.holdFolder(err)
	}
	defer t.Close()
	var entries []folder.Entry
	list := func() error {
		entries = entries[:0]
		return t.List(l.find.beforeList, func(e folder.Entry) { entries = append(entries, e) })
	}
	err = list()
	if err == nil && len(l.amends.clearLeftovers(t.Temps())) > 0 {
		err = list()
	}
	if err != nil {
		return l.brake.holdTree(err.Error())
	}
	sort.Slice(entries, func(i, j int) bool { return entries[i].Path < entries[j].Path })
	l.commits.warnings.loading = true
	defer func() { l.commits.warnings.loading = false }()
	done, total := 0, len(entries)
	var plain []folder.Entry // files with clear-text secrets
	examine := func(part []folder.Entry) []*judge.Candidate { return l.examineNew(t, part) }
	if err := inChunks(ctx, entries, examine, func(candidates []*judge.Candidate) error {
		found := finding{candidates: candidates}
		l.amends.nameNew(t, found.candidates)
		l.caseOf(t, found.candidates, start).Run()
		if err := l.commits.commitFound(&found, true); err != nil {
			return err
		}
		l.find.states.noteSuspects(found.candidates, start)
		if done += len(candidates); l.o.OnProgress != nil {
			l.o.OnProgress(done, total)
		}
		for _, c := range candidates {
			if c.Plain && !c.Out() {
				plain = append(plain, folder.Entry{Path: c.Path})
			}
		}
		return nil
	}); err != nil {
		return err
	}
	if err := l.refusePlain(t, plain); err != nil {
		return err
	}
	if err := l.commits.warnings.noteLoad(); err != nil {
		return err
	}
	gen, err := l.o.Sink.Apply(&catalog.Change{}) // the generation of all chunks together
	if err != nil {
		err = fmt.Errorf("store the change: %w", err)
		l.commits.report.noteFailure(err)
		return err
	}
	l.commits.report.noteGeneration(gen)
	if l.o.OnCommit != nil {
		l.o.OnCommit(catalog.TreeChange{Position: l.o.Sink.Position()})
	}
	l.commits.reportSuccess(start, "loaded")
	return nil
}

// inChunks decodes the files of a first load and commits them, in order. While one chunk is stored, the next is
// decoded.
func inChunks[F any](ctx context.Context, files []F, decode func([]F) []*judge.Candidate,
	commit func([]*judge.Candidate) error) error {
	decoding, cancel := context.WithCancel(ctx)
	chunks := make(chan []*judge.Candidate)
	defer func() {
		cancel()
		for range chunks { // the decoder has ended then
		}
	}()
	go func() {
		defer close(chunks)
		for part := range slices.Chunk(files, chunk) {
			if decoding.Err() != nil {
				return
			}
			select {
			case chunks <- decode(part):
			case <-decoding.Done():
			}
		}
	}()
	for candidates := range chunks {
		if err := ctx.Err(); err != nil {
			return err // decode may have left files out
		}
		if err := commit(candidates); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// examineNew decodes files that were never accepted, on all cores.
func (l *looker) examineNew(t *folder.Tree, part []folder.Entry) []*judge.Candidate {
	cs := make([]*judge.Candidate, len(part))
	each(len(part), l.live.Load(), func(i int) { cs[i] = l.find.examineOne(t, part[i], nil) })
	return slices.DeleteFunc(cs, func(c *judge.Candidate) bool { return c == nil })
}

// refusePlain removes files with clear-text secrets again if a later file has sealing { require = true }; that may be
// the last file.
func (l *looker) refusePlain(t *folder.Tree, plain []folder.Entry) error {
	if !l.Sealed || len(plain) == 0 {
		return nil
	}
	judged := l.examineNew(t, plain)
	j := l.caseOf(t, judged, time.Now())
	j.Suspicious = nil
	j.Run()
	var gone []*judge.Candidate
	for _, c := range judged {
		if c.Rejected {
			gone = append(gone, &judge.Candidate{Path: c.Path, Gone: true})
		}
	}
	return l.commits.commitChange(catalog.Change{Texts: l.textsOf(gone)}, gone, judged, true)
}
