package configsrc

import (
	"slices"
	"strings"

	"fingerpost/configsrc/hclfile"
	"fingerpost/configsrc/names"
	"fingerpost/resolver/catalog"
)

// A wildcard of one project may be declared above names of others (api/README.md, Keys), but is reported by a warning,
// because mostly it is a mistake. There is one warning per wildcard, in its file, which lists the names of others below
// it. The warnings are updated after each commit, at a cost in proportion to the names that the commit has changed.

// An overlap is the warning about a wildcard.
type overlap struct {
	path    string           // of the file that declares the wildcard
	project int64            // of the wildcard
	lower   map[string]int64 // the names below it that other projects have, with their projects
	diag    hclfile.Diagnostic
}

// An overlapLook updates the warnings for the names that a commit has changed.
type overlapLook struct {
	*warnings
	stale   map[string]bool // wildcards that may have another line, project, or none any more: search below them
	changed map[string]bool // wildcards whose list of names may have changed
	touched map[string]bool // files that gained or lost such a warning
	path    string          // path of the last decoded file, for positions
	decoded *hclfile.Result
}

// goneNames lists the domains that files have until the commit of accepted, if it changes their claims.
func (w *warnings) goneNames(accepted []*candidate) (gone []string) {
	if len(w.overlaps) == 0 {
		return nil
	}
	for _, c := range accepted {
		if c.touched || !c.gone && (c.prev == nil || slices.Equal(c.claims, c.prev.claims)) {
			continue
		}
		if row, err := w.o.Sink.File(c.path); err == nil {
			for _, ref := range row.Refs {
				if ref.Kind == catalog.KindDomain {
					gone = append(gone, ref.Name)
				}
			}
		}
	}
	return gone
}

// noteOverlaps updates the warnings after a commit to table and Sink. gone is the result of goneNames before it.
func (w *warnings) noteOverlaps(accepted []*candidate, gone []string, redecode bool) {
	l := overlapLook{warnings: w, stale: map[string]bool{}, changed: map[string]bool{}, touched: map[string]bool{}}
	some := len(w.overlaps) > 0
	for _, name := range gone { // before what the files have now: a name may have moved
		if _, known := w.overlaps[name]; known {
			l.stale[name] = true
		}
		for wildcard := range names.Above(name) {
			if o, known := w.overlaps[wildcard]; known {
				delete(o.lower, name)
				l.changed[wildcard] = true
			}
		}
	}
	for _, c := range accepted {
		// A row from the Sink has no hash if the file had warnings, which must be found again.
		anew := c.prev == nil || redecode || c.prev.stamp.Hash == [32]byte{}
		if c.gone || c.touched || !anew && w.overlapping[c.path] == 0 && slices.Equal(c.claims, c.prev.claims) {
			continue
		}
		var had map[claim]bool
		if !anew {
			had = setOf(c.prev.claims)
		}
		for _, ref := range c.refs {
			if ref.Kind != catalog.KindDomain {
				continue
			}
			// or another project's
			isNew := !had[claimOf("domain", ref.Name)] || !had[claimOf("domain uuid", string(ref.UUID[:]))]
			if isNew || some {
				l.above(c, ref)
			}
			if _, known := w.overlaps[ref.Name]; known || isNew && strings.HasPrefix(ref.Name, "*.") {
				l.stale[ref.Name] = true
			}
		}
	}
	for wildcard := range l.stale {
		l.lookBelow(wildcard)
	}
	for wildcard := range l.changed {
		l.warn(wildcard)
	}
	if len(l.touched) > 0 {
		l.mark()
	}
}

// above checks the wildcards above a name that a file declares.
func (l *overlapLook) above(c *candidate, ref catalog.Ref) {
	for wildcard := range names.Above(ref.Name) {
		owner := l.table.owner(claimOf("domain", wildcard))
		if owner == nil {
			continue
		}
		o, known := l.overlaps[wildcard]
		if !known {
			if owner.path == c.path && c.counts.projects == 1 {
				continue
			}
			upper, err := l.o.Sink.DomainNamed(wildcard)
			if err != nil || upper.ProjectID == ref.ProjectID {
				continue
			}
			o = &overlap{project: upper.ProjectID, lower: map[string]int64{}}
			l.overlaps[wildcard] = o
		}
		delete(o.lower, ref.Name)
		if ref.ProjectID != o.project {
			o.lower[ref.Name] = ref.ProjectID
		}
		l.changed[wildcard] = true
	}
}

// lookBelow searches below a wildcard for the names of other projects.
func (l *overlapLook) lookBelow(wildcard string) {
	now := &overlap{lower: map[string]int64{}}
	if was, known := l.overlaps[wildcard]; known {
		now.path, now.diag = was.path, was.diag
	}
	if upper, err := l.o.Sink.DomainNamed(wildcard); err == nil {
		now.project = upper.ProjectID
		_ = l.o.Sink.DomainsBelow(strings.TrimPrefix(wildcard, "*."), func(d *catalog.Domain) bool {
			if d.ProjectID != upper.ProjectID {
				now.lower[strings.Clone(d.Name)] = d.ProjectID
			}
			return true
		})
	}
	l.overlaps[wildcard] = now
	l.changed[wildcard] = true
}

// warn writes the warning about a wildcard, or takes it back.
func (l *overlapLook) warn(wildcard string) {
	o := l.overlaps[wildcard]
	if o.path != "" {
		if l.overlapping[o.path]--; l.overlapping[o.path] == 0 {
			delete(l.overlapping, o.path)
		}
		l.touched[o.path] = true
	}
	var lower []names.Lower
	for name, project := range o.lower {
		there := l.table.owner(claimOf("domain", name))
		if p, err := l.o.Sink.ProjectByID(project); err == nil && there != nil {
			lower = append(lower, names.Lower{Name: name, Slug: p.Slug, File: l.display(there.path)})
		}
	}
	at := l.table.owner(claimOf("domain", wildcard))
	if len(lower) == 0 || at == nil || !l.decode(at.path) {
		delete(l.overlaps, wildcard)
		return
	}
	was := o.diag.Summary
	o.path, o.diag = at.path, names.Overlap(l.decoded, wildcard, o.project, lower)
	l.overlapping[o.path]++
	l.touched[o.path] = true
	if o.diag.Summary != was {
		l.log(o.diag)
	}
}

// decode reads the last good bytes of a file into l.decoded.
func (l *overlapLook) decode(path string) bool {
	if l.path != path {
		content, err := l.o.Sink.LastGood(path)
		if err != nil {
			return false
		}
		l.path = path
		l.decoded = positions(l.display(path), content)
	}
	return true
}

// mark records in the Sink which files have warnings, so that the next start reads them again and restores the
// warnings. If it fails, the next start lacks a warning; the commit is not affected.
func (l *overlapLook) mark() {
	var change catalog.Change
	l.known.Lock()
	for path := range l.touched {
		f := l.table.files[path]
		if f == nil {
			continue
		}
		if warned := len(l.files[path]) > 0 || l.overlapping[path] > 0; warned != f.warned {
			f.warned = warned
			change.Files = append(change.Files, catalog.FileChange{Path: path, Row: &catalog.FileRow{Stamp: f.stamp,
				Deps: f.deps, Warned: warned}})
		}
	}
	l.known.Unlock()
	if len(change.Files) > 0 {
		_ = l.o.Sink.Fill(&change)
	}
}
