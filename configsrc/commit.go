package configsrc

import (
	"crypto/sha256"
	"fmt"
	"time"

	"fingerpost/resolver/catalog"
)

// commit hands the accepted candidates to the Sink. Everything that can fail has been done; here is the line.
func (s *Source) commit(found *finding, j *judge, start time.Time, all bool) error {
	j.holders = holders{} // as large as the change, and done with
	if err := s.commitPart(found, false); err != nil {
		return err
	}
	if !j.anySuspect() {
		s.removalsDone()
	}
	s.release(all && !j.anySuspect())
	s.noteSuspects(found, start)
	s.report(start, "reloaded")
	return nil
}

// A commitment is a change on its way to the Sink.
type commitment struct {
	change catalog.Change
	of     []*candidate // of each file of the change: what the table is going to say
	rows   []catalog.FileRow
}

// row keeps a row, in one piece of memory with the others.
func (m *commitment) row(c *candidate, warned bool) *catalog.FileRow {
	m.rows = append(m.rows, catalog.FileRow{Stamp: c.stamp, Deps: c.deps, Warned: warned})
	return &m.rows[len(m.rows)-1]
}

func (m *commitment) add(c *candidate, f catalog.FileChange) {
	m.change.Files, m.of = append(m.change.Files, f), append(m.of, c)
}

// commitPart hands over one change and follows it.
func (s *Source) commitPart(found *finding, partial bool) error {
	n := len(found.touched) + len(found.candidates)
	m := &commitment{of: make([]*candidate, 0, n), rows: make([]catalog.FileRow, 0, n)}
	change := &m.change
	change.Files = make([]catalog.FileChange, 0, n)
	for _, c := range found.touched {
		m.add(c, catalog.FileChange{Path: c.path, Row: m.row(c, c.prev.warned)})
	}
	for _, c := range found.candidates {
		switch {
		case c.rejected && !c.suspect && !s.live.Load():
			if old := s.lastGood(c); old != nil {
				m.add(old, catalog.FileChange{Path: old.path, Row: m.row(old, old.warned()), Declared: old.declared, Bytes: old.bytes})
			}
		case c.out():
		case c.gone && c.prev == nil:
		case c.gone:
			m.add(c, catalog.FileChange{Path: c.path})
		default:
			m.add(c, catalog.FileChange{Path: c.path, Row: m.row(c, c.warned() || s.overlapping[c.path] > 0), Declared: c.declared, Bytes: c.bytes})
		}
	}
	var gone []string
	if len(change.Files) > 0 {
		gone = s.goneNames(m)
		var gen uint64
		var err error
		if partial || len(change.Files) == len(found.touched) { // nothing changes for those who are served
			err = s.o.Sink.Fill(change)
		} else if gen, err = s.o.Sink.Apply(change); err == nil {
			s.setGeneration(gen)
		}
		if err != nil {
			err = fmt.Errorf("store the change: %w", err)
			s.fail(err)
			return err
		}
	}
	s.known.Lock()
	s.follow(m, found)
	s.known.Unlock()
	s.noteOverlaps(m, gone)
	return nil
}

// lastGood takes up what a quarantined file declared last, where the Sink does not have it in the form that it needs:
// after a change of the decoder, or while a lost store is filled anew. What others claim meanwhile is theirs.
func (s *Source) lastGood(c *candidate) *candidate {
	if c.prev != nil && !s.redecode {
		return nil
	}
	b, err := s.o.Sink.LastGood(c.path)
	if err != nil || b == nil {
		return nil
	}
	t, err := openTree(s.o.Dir)
	if err != nil {
		return nil
	}
	defer t.Close()
	old := &candidate{path: c.path, prev: c.prev, bytes: b, stamp: catalog.Stamp{Hash: sha256.Sum256(b)}}
	if old.decode(s.display(c.path), t); old.declared == nil {
		return nil
	}
	for _, cl := range old.claims {
		if owner := s.table.owner(cl); owner != nil && owner.path != c.path {
			return nil
		}
	}
	return old
}

// follow brings the table in step with what the Sink has committed.
func (s *Source) follow(m *commitment, found *finding) {
	change := &m.change
	now := time.Now()
	for i := range change.Files {
		f := &change.Files[i]
		if f.Row == nil {
			s.table.drop(f.Path)
			continue
		}
		is := m.of[i].accepted(f.Row, now)
		is.seen = s.lookNo
		s.table.put(is)
		if f.Declared != nil && f.Declared.Sealing != nil {
			s.sealed = f.Declared.Sealing.Require
		}
	}
	if len(change.Files) > 0 && s.sealed && s.table.owner(claimOf(string(catalog.KindSealing))) == nil {
		s.sealed = false
	}
	for _, c := range found.candidates {
		switch {
		case c.suspect:
		case c.rejected:
			s.noteQuarantined(c)
		default:
			s.accept(c)
		}
	}
}
