package configsrc

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"time"

	"fingerpost/resolver/catalog"
)

// chunk is the number of files in one batch of a first load.
const chunk = 1024

// firstLoad fills an empty Sink: nothing is served yet, so files are applied in chunks, in path order, which is also
// the order of precedence when two claim the same. While one chunk is stored, the next is decoded.
func (s *Source) firstLoad(ctx context.Context, t *tree, start time.Time) error {
	var entries []entry
	list := func() error {
		entries = entries[:0]
		return t.list(s.watchFolder, func(e entry) { entries = append(entries, e) })
	}
	err := list()
	if err == nil && len(s.clearLeftovers(t.temps())) > 0 {
		err = list()
	}
	if err != nil {
		return s.holdTree(err.Error())
	}
	sort.Slice(entries, func(i, j int) bool { return entries[i].path < entries[j].path })
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done, total := 0, len(entries)
	chunks := make(chan []*candidate)
	go func() {
		defer close(chunks)
		for len(entries) > 0 && ctx.Err() == nil {
			part := entries[:min(chunk, len(entries))]
			entries = entries[len(part):]
			select {
			case chunks <- s.examineNew(t, part):
			case <-ctx.Done():
			}
		}
	}()
	var plain []entry // files with clear-text secrets
	for candidates := range chunks {
		found := finding{candidates: candidates}
		s.nameNew(t, found.candidates)
		s.judge(t, found.candidates, start).run()
		if err := s.commitPart(&found, true); err != nil {
			return err
		}
		s.noteSuspects(&found, start)
		if done += len(candidates); s.o.OnProgress != nil {
			s.o.OnProgress(done, total)
		}
		for _, c := range candidates {
			if c.plain && !c.out() {
				plain = append(plain, entry{path: c.path})
			}
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.refusePlain(t, plain); err != nil {
		return err
	}
	gen, err := s.o.Sink.Apply(&catalog.Change{}) // the generation of all chunks together
	if err != nil {
		err = fmt.Errorf("store the change: %w", err)
		s.fail(err)
		return err
	}
	s.setGeneration(gen)
	if s.o.OnCommit != nil {
		s.o.OnCommit(catalog.TreeChange{Position: s.o.Sink.Position()})
	}
	s.report(start, "loaded")
	return nil
}

// examineNew decodes files that were never accepted, on all cores.
func (s *Source) examineNew(t *tree, part []entry) []*candidate {
	cs := make([]*candidate, len(part))
	s.parallel(len(part), func(i int) { cs[i] = s.examineOne(t, part[i], nil) })
	return slices.DeleteFunc(cs, func(c *candidate) bool { return c == nil })
}

// refusePlain removes files with clear-text secrets again if a later file has sealing { require = true }; that may be
// the last file.
func (s *Source) refusePlain(t *tree, plain []entry) error {
	if !s.sealed || len(plain) == 0 {
		return nil
	}
	judged := s.examineNew(t, plain)
	j := s.judge(t, judged, time.Now())
	j.suspicious = nil
	j.run()
	var gone []*candidate
	for _, c := range judged {
		if c.rejected {
			gone = append(gone, &candidate{path: c.path, gone: true})
		}
	}
	return s.commit(catalog.Change{Texts: s.texts(gone)}, gone, judged, true)
}
