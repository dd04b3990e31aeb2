package configsrc

import (
	"errors"
	"fmt"
	"time"

	"fingerpost/configsrc/hclfile"
	"fingerpost/configsrc/judge"
	"fingerpost/resolver/catalog"
)

// A committer makes what a look or a round of writes has accepted part of the Sink, and of the base.
type committer struct {
	*base
	report   *reporter
	warnings *warnings
}

// commitFound commits the accepted candidates. partial: it is a part of a first load.
func (m *committer) commitFound(found *finding, partial bool) error {
	accepted := found.touched
	for _, c := range found.candidates {
		switch {
		case c.Rejected && !c.Suspect && !m.live.Load():
			if old := m.lastGood(c); old != nil {
				accepted = append(accepted, old)
			}
		case c.Out(), c.Gone && c.Prev == nil:
		default:
			accepted = append(accepted, c)
		}
	}
	c := catalog.Change{Texts: m.textsOf(accepted), Recording: found.recording}
	return m.commitChange(c, accepted, found.candidates, partial ||
		len(accepted) == len(found.touched))
}

// commitChange adds accepted candidates to a change and applies it to the Sink, updates the table, and records the
// problems of all that were judged. fill: no answer changes, because a first load is under way, or only stamps differ.
func (m *committer) commitChange(change catalog.Change, accepted, judged []*judge.Candidate, fill bool) error {
	for _, c := range accepted {
		f := catalog.FileChange{Path: c.Path}
		switch {
		case c.Gone:
		case c.Touched:
			f.Row = &catalog.FileRow{Stamp: c.Stamp, Deps: c.Deps, Warned: c.Prev.Warned}
		default:
			warned := len(c.Diags)+len(c.Cross) > 0 || m.warnings.names.Overlaps(c.Path)
			f.Row = &catalog.FileRow{Stamp: c.Stamp, Deps: c.Deps, Warned: warned}
			f.Declared, f.Bytes, f.Times = c.Declared, c.Bytes, c.Times
		}
		f.By, f.Others, f.Waits = c.By, c.Others, c.By != nil
		if f.By == nil && !c.Touched {
			f.By = m.broughtBy(c)
		}
		change.Files = append(change.Files, f)
	}
	gone := m.warnings.names.Leaving(changing(accepted))
	err := m.serveChange(&change, accepted, judged, fill)
	if errors.Is(err, catalog.ErrUnaudited) {
		return err // the caller takes the files back
	}
	if err != nil {
		err = fmt.Errorf("store the change: %w", err)
		m.report.noteFailure(err)
		return err
	}
	for i, c := range accepted {
		if !c.Touched {
			m.report.noteChanged(c.Path, change.Files[i].By)
		}
	}
	m.warnings.noteCommit(accepted, gone)
	return nil
}

// serveChange applies a change to the Sink, and then to the table.
func (m *committer) serveChange(change *catalog.Change, accepted, judged []*judge.Candidate, fill bool) (err error) {
	m.Committing.Lock()
	defer m.Committing.Unlock()
	switch {
	case len(accepted) == 0 && change.Position == nil:
	case fill:
		err = m.o.Sink.Fill(change)
	default:
		var generation uint64
		if generation, err = m.o.Sink.Apply(change); err == nil {
			m.report.noteGeneration(generation)
		}
	}
	if err != nil {
		return err
	}
	// ---- From here on nothing can fail. ----
	if m.o.OnCommit != nil && !fill {
		m.o.OnCommit(m.treeChange(change))
	}
	now := time.Now()
	m.Known.Lock()
	for i, c := range accepted {
		row := change.Files[i].Row
		if row == nil {
			m.Table.Drop(c.Path)
			continue
		}
		f := &judge.File{Path: c.Path, Stamp: row.Stamp, Deps: row.Deps, Warned: row.Warned,
			Claims: c.Claims, Objects: len(c.Refs), Counts: c.Counts}
		if c.Touched {
			f.Claims, f.Objects, f.Counts = c.Prev.Claims, c.Prev.Objects, c.Prev.Counts
		}
		f.Racy.Store(age(row.Stamp, now) < racyFor)
		m.Table.Put(f)
		if c.Declared != nil && c.Declared.Sealing != nil {
			m.Sealed = c.Declared.Sealing.Require
		}
	}
	if len(accepted) > 0 && m.Sealed && m.Table.Owner(judge.ClaimOf(string(catalog.KindSealing), "")) == nil {
		m.Sealed = false
	}
	for _, c := range judged {
		switch {
		case c.Suspect:
		case c.Rejected:
			m.quarantineFile(c)
		default:
			m.acceptFile(c)
			m.warnings.noteFile(c)
		}
	}
	m.Known.Unlock()
	return nil
}

// loadTable loads the Sink's file table, so that unchanged files need not be parsed.
func (m *committer) loadTable() error {
	m.Known.Lock()
	defer m.Known.Unlock()
	m.Table = judge.NewTable()
	m.report.noteGeneration(m.o.Sink.Generation())
	revision, err := m.o.Sink.DecoderRevision()
	if err != nil {
		return fmt.Errorf("read the decoder revision: %w", err)
	}
	m.redecode = revision != m.revision()
	now := time.Now()
	err = m.o.Sink.Files(func(path string, row *catalog.FileRow) bool {
		m.Table.Put(judge.NewFile(path, row, m.redecode || row.Warned || age(row.Stamp, now) < racyFor))
		return true
	})
	if err != nil {
		return fmt.Errorf("read the file table: %w", err)
	}
	if sealing := m.o.Sink.Sealing(); sealing != nil {
		m.Sealed = sealing.Require
	}
	return nil
}

// forgetFiles clears what is known of files outside the table.
func (m *committer) forgetFiles() {
	m.Known.Lock()
	defer m.Known.Unlock()
	m.Quarantine, m.warnings = map[string]*judge.Quarantined{}, newWarnings(m.base)
}

// reportSuccess says how it is after a look that succeeded.
func (m *committer) reportSuccess(start time.Time, word string) {
	var problems hclfile.Diagnostics
	for _, q := range m.Quarantine {
		problems = append(problems, q.Diags...)
	}
	m.report.noteSuccess(start, word, len(m.Table.Files), m.Table.Total, len(m.Quarantine), m.warnings.appendTo(problems))
}
