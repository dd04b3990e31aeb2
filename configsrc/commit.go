package configsrc

import (
	"errors"
	"fmt"
	"time"

	"fingerpost/configsrc/hclfile"
	"fingerpost/configsrc/judge"
	"fingerpost/resolver/catalog"
)

// commitPart commits the accepted candidates. partial: it is a part of a first load.
func (s *Source) commitPart(found *finding, partial bool) error {
	accepted := found.touched
	for _, c := range found.candidates {
		switch {
		case c.Rejected && !c.Suspect && !s.live.Load():
			if old := s.lastGood(c); old != nil {
				accepted = append(accepted, old)
			}
		case c.Out(), c.Gone && c.Prev == nil:
		default:
			accepted = append(accepted, c)
		}
	}
	c := catalog.Change{Texts: s.texts(accepted), Recording: found.recording}
	return s.commit(c, accepted, found.candidates, partial ||
		len(accepted) == len(found.touched))
}

// commit adds accepted candidates to a change and applies it to the Sink, updates the table, and records the problems
// of all that were judged. fill: no answer changes, because a first load is under way, or only stamps differ.
func (s *Source) commit(change catalog.Change, accepted, judged []*judge.Candidate, fill bool) error {
	for _, c := range accepted {
		f := catalog.FileChange{Path: c.Path}
		switch {
		case c.Gone:
		case c.Touched:
			f.Row = &catalog.FileRow{Stamp: c.Stamp, Deps: c.Deps, Warned: c.Prev.Warned}
		default:
			warned := len(c.Diags)+len(c.Cross) > 0 || s.warnings.names.Overlaps(c.Path)
			f.Row = &catalog.FileRow{Stamp: c.Stamp, Deps: c.Deps, Warned: warned}
			f.Declared, f.Bytes, f.Times = c.Declared, c.Bytes, c.Times
		}
		f.By, f.Others, f.Waits = c.By, c.Others, c.By != nil
		if f.By == nil && !c.Touched {
			f.By = s.broughtBy(c)
		}
		change.Files = append(change.Files, f)
	}
	gone := s.warnings.names.Leaving(changing(accepted))
	err := s.serve(&change, accepted, judged, fill)
	if errors.Is(err, catalog.ErrUnaudited) {
		return err // the caller takes the files back
	}
	if err != nil {
		err = fmt.Errorf("store the change: %w", err)
		s.noteFailure(err)
		return err
	}
	for i, c := range accepted {
		if !c.Touched {
			s.changed.addFile(c.Path, change.Files[i].By)
		}
	}
	s.warnings.noteCommit(accepted, gone)
	return nil
}

// serve applies a change to the Sink, and then to the table.
func (s *Source) serve(change *catalog.Change, accepted, judged []*judge.Candidate, fill bool) (err error) {
	s.committing.Lock()
	defer s.committing.Unlock()
	switch {
	case len(accepted) == 0 && change.Position == nil:
	case fill:
		err = s.o.Sink.Fill(change)
	default:
		var generation uint64
		if generation, err = s.o.Sink.Apply(change); err == nil {
			s.noteGeneration(generation)
		}
	}
	if err != nil {
		return err
	}
	// ---- From here on nothing can fail. ----
	if s.o.OnCommit != nil && !fill {
		s.o.OnCommit(s.committed(change))
	}
	now := time.Now()
	s.known.Lock()
	for i, c := range accepted {
		row := change.Files[i].Row
		if row == nil {
			s.table.Drop(c.Path)
			continue
		}
		f := &judge.File{Path: c.Path, Stamp: row.Stamp, Deps: row.Deps, Warned: row.Warned, Seen: s.lookNo,
			Claims: c.Claims, Objects: len(c.Refs), Counts: c.Counts}
		if c.Touched {
			f.Claims, f.Objects, f.Counts = c.Prev.Claims, c.Prev.Objects, c.Prev.Counts
		}
		f.Racy.Store(age(row.Stamp, now) < racyFor)
		s.table.Put(f)
		if c.Declared != nil && c.Declared.Sealing != nil {
			s.sealed = c.Declared.Sealing.Require
		}
	}
	if len(accepted) > 0 && s.sealed && s.table.Owner(judge.ClaimOf(string(catalog.KindSealing), "")) == nil {
		s.sealed = false
	}
	for _, c := range judged {
		switch {
		case c.Suspect:
		case c.Rejected:
			s.noteQuarantined(c)
		default:
			s.endQuarantine(c)
			s.warnings.noteFile(c)
		}
	}
	s.known.Unlock()
	return nil
}

// loadTable loads the Sink's file table, so that unchanged files need not be parsed.
func (s *Source) loadTable() error {
	s.known.Lock()
	defer s.known.Unlock()
	s.table = judge.NewTable()
	s.noteGeneration(s.o.Sink.Generation())
	revision, err := s.o.Sink.DecoderRevision()
	if err != nil {
		return fmt.Errorf("read the decoder revision: %w", err)
	}
	s.redecode = revision != decoderRevision
	now := time.Now()
	err = s.o.Sink.Files(func(path string, row *catalog.FileRow) bool {
		s.table.Put(judge.NewFile(path, row, s.redecode || row.Warned || age(row.Stamp, now) < racyFor))
		return true
	})
	if err != nil {
		return fmt.Errorf("read the file table: %w", err)
	}
	if err := s.loadNote(); err != nil {
		return err
	}
	if sealing := s.o.Sink.Sealing(); sealing != nil {
		s.sealed = sealing.Require
	}
	return nil
}

// forget clears all state about files outside the table.
func (s *Source) forget() {
	s.known.Lock()
	defer s.known.Unlock()
	s.quarantine, s.states.suspects, s.warnings = map[string]*judge.Quarantined{}, map[string]suspect{}, newWarnings(s.base)
}

// reportSuccess says how it is after a look that succeeded.
func (s *Source) reportSuccess(start time.Time, word string) {
	var problems hclfile.Diagnostics
	for _, q := range s.quarantine {
		problems = append(problems, q.Diags...)
	}
	s.noteSuccess(start, word, len(s.table.Files), s.table.Total, len(s.quarantine), s.warnings.addTo(problems))
}
