package configsrc

import (
	"fmt"
	"slices"
	"strings"

	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// A wildcard of one project may be declared above a name of another (api/README.md, Keys), but is reported by a
// warning, because mostly it is a mistake. There is one warning per wildcard, in its file, which shows one of the names
// below it. The warnings are updated after each commit, at a cost in proportion to the names that the commit has
// changed.

// An overlap is the warning about a wildcard.
type overlap struct {
	path  string // of the file that declares the wildcard
	lower claim  // the name shown by the warning
	diag  hclfile.Diagnostic
}

// An overlapLook updates the warnings for the names that a commit has changed.
type overlapLook struct {
	s       *Source
	stale   map[string]bool // wildcards to check again
	touched map[string]bool // files that gained or lost such a warning
	path    string          // path of the last decoded file, for positions
	decoded *hclfile.Result
}

// goneNames lists the domains that files have until the commit of accepted, if it changes their claims.
func (s *Source) goneNames(accepted []*candidate) (names []string) {
	if len(s.overlaps) == 0 {
		return nil
	}
	for _, c := range accepted {
		if c.touched || !c.gone && (c.prev == nil || slices.Equal(c.claims, c.prev.claims)) {
			continue
		}
		if row, err := s.o.Sink.File(c.path); err == nil {
			for _, ref := range row.Refs {
				if ref.Kind == catalog.KindDomain {
					names = append(names, ref.Name)
				}
			}
		}
	}
	return names
}

// noteOverlaps updates the warnings after a commit to table and Sink. gone is the result of goneNames before it.
func (s *Source) noteOverlaps(accepted []*candidate, gone []string) {
	l := overlapLook{s: s, stale: map[string]bool{}, touched: map[string]bool{}}
	for _, c := range accepted {
		// A row from the Sink has no hash if the file had warnings, which must be found again.
		anew := c.prev == nil || s.redecode || c.prev.stamp.Hash == [32]byte{}
		if c.gone || c.touched || !anew && s.overlapping[c.path] == 0 && slices.Equal(c.claims, c.prev.claims) {
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
			if isNew || len(s.overlaps) > 0 {
				l.above(c, ref)
			}
			if _, known := s.overlaps[ref.Name]; known || isNew && strings.HasPrefix(ref.Name, "*.") {
				l.stale[ref.Name] = true // the line of a known name may have changed
			}
		}
	}
	for _, name := range gone {
		if _, known := s.overlaps[name]; known {
			l.stale[name] = true
		}
		for wildcard := range wildcardsAbove(name) {
			if o, known := s.overlaps[wildcard]; known && o.lower == claimOf("domain", name) {
				l.stale[wildcard] = true
			}
		}
	}
	for wildcard := range l.stale {
		l.lookBelow(wildcard)
	}
	if len(l.touched) > 0 {
		l.mark()
	}
}

// above checks the wildcards above a name that a file declares.
func (l *overlapLook) above(c *candidate, ref catalog.Ref) {
	s := l.s
	for wildcard := range wildcardsAbove(ref.Name) {
		owner := s.table.owner(claimOf("domain", wildcard))
		if owner == nil {
			continue
		}
		o, known := s.overlaps[wildcard]
		switch {
		case known && o.lower == claimOf("domain", ref.Name):
			l.stale[wildcard] = true // it may have another project or slug now
		case known, owner.path == c.path && c.counts.projects == 1:
		default:
			if upper, err := s.o.Sink.DomainNamed(wildcard); err == nil && upper.ProjectID != ref.ProjectID {
				l.warn(upper, ref.Name, ref.ProjectID)
			}
		}
	}
}

// lookBelow searches below a wildcard for a name of another project.
func (l *overlapLook) lookBelow(wildcard string) {
	upper, err := l.s.o.Sink.DomainNamed(wildcard)
	if err == nil {
		var lower string
		var project int64
		err = l.s.o.Sink.DomainsBelow(strings.TrimPrefix(wildcard, "*."), func(d *catalog.Domain) bool {
			if d.ProjectID != upper.ProjectID {
				lower, project = strings.Clone(d.Name), d.ProjectID
			}
			return lower == ""
		})
		if err == nil && lower != "" {
			l.warn(upper, lower, project)
			return
		}
	}
	l.forget(wildcard)
}

// forget removes a warning.
func (l *overlapLook) forget(wildcard string) {
	if o, known := l.s.overlaps[wildcard]; known {
		delete(l.s.overlaps, wildcard)
		if l.s.overlapping[o.path]--; l.s.overlapping[o.path] == 0 {
			delete(l.s.overlapping, o.path)
		}
		l.touched[o.path] = true
	}
}

// warn records that a wildcard is above a name of another project.
func (l *overlapLook) warn(upper *catalog.Domain, lower string, project int64) {
	s := l.s
	at, there := s.table.owner(claimOf("domain", upper.Name)), s.table.owner(claimOf("domain", lower))
	p, err := s.o.Sink.ProjectByID(project)
	if at == nil || there == nil || err != nil {
		return
	}
	if l.path != at.path {
		content, err := s.o.Sink.LastGood(at.path)
		if err != nil {
			return
		}
		l.path = at.path
		l.decoded, _ = hclfile.Decode(s.display(at.path), content, hclfile.Options{})
	}
	was := s.overlaps[upper.Name]
	now := overlap{at.path, claimOf("domain", lower), overlapWarning(l.decoded, upper, lower, p.Slug,
		s.display(there.path))}
	l.forget(upper.Name)
	s.overlaps[upper.Name] = now
	s.overlapping[now.path]++
	l.touched[now.path] = true
	if now.diag.Summary != was.diag.Summary {
		s.o.Logger.Warn("config warning", "problem", now.diag.Summary, "hint", now.diag.Detail, "file", now.diag.File, "line",
			now.diag.Start.Line)
	}
}

// overlapWarning makes the warning in the wildcard's file.
func overlapWarning(in *hclfile.Result, upper *catalog.Domain, lower, slug, file string) hclfile.Diagnostic {
	return in.Diagnose(catalog.Ref{Kind: catalog.KindDomain, Name: upper.Name, ProjectID: upper.ProjectID},
		hclfile.Warning,
		fmt.Sprintf("wildcard %q lies above %q of project %q, in %s", upper.Name, lower, slug, file),
		"the longer name answers for its own project; if that is not meant, take one of the two out")
}

// mark records in the Sink which files have warnings, so that the next start reads them again and restores the
// warnings. If it fails, the next start lacks a warning; the commit is not affected.
func (l *overlapLook) mark() {
	var change catalog.Change
	l.s.known.Lock()
	for path := range l.touched {
		f := l.s.table.files[path]
		if f == nil {
			continue
		}
		if warned := len(l.s.warnings[path]) > 0 || l.s.overlapping[path] > 0; warned != f.warned {
			f.warned = warned
			change.Files = append(change.Files, catalog.FileChange{Path: path, Row: &catalog.FileRow{Stamp: f.stamp,
				Deps: f.deps, Warned: warned}})
		}
	}
	l.s.known.Unlock()
	if len(change.Files) > 0 {
		_ = l.s.o.Sink.Fill(&change)
	}
}

// warnOfOverlaps does the work of noteOverlaps when all files are known.
func warnOfOverlaps(files []CheckedFile) (ds hclfile.Diagnostics) {
	type declared struct {
		file   *CheckedFile
		slug   string
		domain *catalog.Domain
	}
	domains := map[string]declared{}
	for i := range files {
		for j := range files[i].Declared.Projects {
			p := &files[i].Declared.Projects[j]
			for k := range p.Domains {
				domains[p.Domains[k].Name] = declared{&files[i], p.Project.Slug, &p.Domains[k]}
			}
		}
	}
	shown := map[string]string{} // the first name below each wildcard
	for name, lower := range domains {
		for wildcard := range wildcardsAbove(name) {
			upper, found := domains[wildcard]
			if !found || upper.domain.ProjectID == lower.domain.ProjectID {
				continue
			}
			if first, known := shown[wildcard]; !known || name < first {
				shown[wildcard] = name
			}
		}
	}
	for wildcard, name := range shown {
		upper, lower := domains[wildcard], domains[name]
		r, _ := hclfile.Decode(upper.file.Display, upper.file.source, hclfile.Options{})
		ds = append(ds, overlapWarning(r, upper.domain, name, lower.slug, lower.file.Display))
	}
	return ds
}
