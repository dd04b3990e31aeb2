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
	"fingerpost/configsrc/watch"
	"fingerpost/resolver/catalog"
)

// chunk is the number of files in one batch of a first load.
const chunk = 1024

// firstLoad fills an empty Sink: nothing is served yet, so files are applied in chunks, in path order, which is also
// the order of precedence when two claim the same.
func (s *Source) firstLoad(ctx context.Context, t *folder.Tree, start time.Time) error {
	var entries []folder.Entry
	list := func() error {
		entries = entries[:0]
		return t.List(s.watching.addFolder, func(e folder.Entry) { entries = append(entries, e) })
	}
	err := list()
	if err == nil && len(s.clearLeftovers(t.Temps())) > 0 {
		err = list()
	}
	if err != nil {
		return s.holdTree(err.Error())
	}
	sort.Slice(entries, func(i, j int) bool { return entries[i].Path < entries[j].Path })
	done, total := 0, len(entries)
	var plain []folder.Entry // files with clear-text secrets
	examine := func(part []folder.Entry) []*judge.Candidate { return s.examineNew(t, part) }
	if err := inChunks(ctx, entries, examine, func(candidates []*judge.Candidate) error {
		found := finding{candidates: candidates}
		s.nameNew(t, found.candidates)
		s.judge(t, found.candidates, start).Run()
		if err := s.commitPart(&found, true); err != nil {
			return err
		}
		s.states.noteSuspects(found.candidates, start)
		if done += len(candidates); s.o.OnProgress != nil {
			s.o.OnProgress(done, total)
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
	if err := s.refusePlain(t, plain); err != nil {
		return err
	}
	gen, err := s.o.Sink.Apply(&catalog.Change{}) // the generation of all chunks together
	if err != nil {
		err = fmt.Errorf("store the change: %w", err)
		s.noteFailure(err)
		return err
	}
	s.noteGeneration(gen)
	if s.o.OnCommit != nil {
		s.o.OnCommit(catalog.TreeChange{Position: s.o.Sink.Position()})
	}
	s.reportSuccess(start, "loaded")
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
func (s *Source) examineNew(t *folder.Tree, part []folder.Entry) []*judge.Candidate {
	cs := make([]*judge.Candidate, len(part))
	each(len(part), s.live.Load(), func(i int) { cs[i] = s.examineOne(t, part[i], nil) })
	return slices.DeleteFunc(cs, func(c *judge.Candidate) bool { return c == nil })
}

// refusePlain removes files with clear-text secrets again if a later file has sealing { require = true }; that may be
// the last file.
func (s *Source) refusePlain(t *folder.Tree, plain []folder.Entry) error {
	if !s.sealed || len(plain) == 0 {
		return nil
	}
	judged := s.examineNew(t, plain)
	j := s.judge(t, judged, time.Now())
	j.Suspicious = nil
	j.Run()
	var gone []*judge.Candidate
	for _, c := range judged {
		if c.Rejected {
			gone = append(gone, &judge.Candidate{Path: c.Path, Gone: true})
		}
	}
	return s.commit(catalog.Change{Texts: s.texts(gone)}, gone, judged, true)
}

// settle is the look of a first load.
func (s *Source) settle(ctx context.Context) error {
	s.confirmed = s.confirmed || s.o.AcceptDeletes
	err := s.lookTwice(ctx, scope{Seen: watch.Seen{All: true}})
	s.setLive(true)
	switch {
	case errors.Is(err, ErrHeld):
		return nil // the Sink serves its present content
	case err != nil:
		return err
	}
	s.redecode = false
	return s.o.Sink.SetDecoderRevision(decoderRevision)
}
