package names

import (
	"maps"
	"slices"
	"strings"

	"fingerpost/configsrc/hclfile"
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

// A Change is a file that a commit has accepted.
type Change struct {
	Path     string
	Refs     []catalog.Ref
	Projects int                    // among Refs
	New      func(catalog.Ref) bool // whether the file did not declare a domain before
}

// An overlapLook updates the warnings for the names that a commit has changed.
type overlapLook struct {
	*Warnings
	stale   map[string]bool // wildcards that may have another line, project, or none any more: search below them
	changed map[string]bool // wildcards whose list of names may have changed
	touched map[string]bool // files that gained or lost such a warning
	path    string          // path of the last decoded file, for positions
	decoded *hclfile.Result
}

// Leaving lists the domains that files have until a commit, for Committed after it.
func (w *Warnings) Leaving(paths []string) (gone []string) {
	if len(w.overlaps) == 0 {
		return nil
	}
	for _, path := range paths {
		if row, err := w.store.File(path); err == nil {
			for _, ref := range row.Refs {
				if ref.Kind == catalog.KindDomain {
					gone = append(gone, ref.Name)
				}
			}
		}
	}
	return gone
}

// Loaded finds the warnings about wildcards after a first load, and returns the files that have one. One pass over all
// names takes the place of a search below each wildcard, which Committed makes.
func (w *Warnings) Loaded() (warned []string, err error) {
	l := overlapLook{Warnings: w, touched: map[string]bool{}}
	type wildcard struct {
		name, below string // below is what names below it end in
		project     int64
	}
	var above []wildcard // those that cover the present name, the longest last
	err = w.store.DomainsBelow("", func(d *catalog.Domain) bool {
		for len(above) > 0 && !strings.HasSuffix(d.Name, above[len(above)-1].below) {
			above = above[:len(above)-1]
		}
		for _, upper := range above {
			if d.ProjectID == upper.project {
				continue
			}
			o, known := w.overlaps[upper.name]
			if !known {
				o = &overlap{project: upper.project, lower: map[string]int64{}}
				w.overlaps[upper.name] = o
			}
			o.lower[strings.Clone(d.Name)] = d.ProjectID
		}
		if below, is := strings.CutPrefix(d.Name, "*"); is {
			name := strings.Clone(d.Name)
			above = append(above, wildcard{name: name, below: name[len(name)-len(below):], project: d.ProjectID})
		}
		return true
	})
	for _, name := range slices.Collect(maps.Keys(w.overlaps)) {
		l.warn(name)
	}
	return slices.Collect(maps.Keys(l.touched)), err
}

// Committed updates the warnings about wildcards after a commit, and returns the files that gained or lost one.
func (w *Warnings) Committed(changes []Change, gone []string) (touched []string) {
	l := overlapLook{Warnings: w, stale: map[string]bool{}, changed: map[string]bool{}, touched: map[string]bool{}}
	some := len(w.overlaps) > 0
	for _, name := range gone { // before what the files have now: a name may have moved
		if _, known := w.overlaps[name]; known {
			l.stale[name] = true
		}
		for wildcard := range Above(name) {
			if o, known := w.overlaps[wildcard]; known {
				delete(o.lower, name)
				l.changed[wildcard] = true
			}
		}
	}
	for i := range changes {
		c := &changes[i]
		for _, ref := range c.Refs {
			if ref.Kind != catalog.KindDomain {
				continue
			}
			isNew := c.New(ref)
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
	return slices.Collect(maps.Keys(l.touched))
}

// above checks the wildcards above a name that a file declares.
func (l *overlapLook) above(c *Change, ref catalog.Ref) {
	for wildcard := range Above(ref.Name) {
		owner, _, declared := l.owner("domain", wildcard)
		if !declared {
			continue
		}
		o, known := l.overlaps[wildcard]
		if !known {
			if owner == c.Path && c.Projects == 1 {
				continue
			}
			upper, err := l.store.DomainNamed(wildcard)
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
	if upper, err := l.store.DomainNamed(wildcard); err == nil {
		now.project = upper.ProjectID
		_ = l.store.DomainsBelow(strings.TrimPrefix(wildcard, "*."), func(d *catalog.Domain) bool {
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
	var lower []Lower
	for name, project := range o.lower {
		there, _, declared := l.owner("domain", name)
		if p, err := l.store.ProjectByID(project); err == nil && declared {
			lower = append(lower, Lower{Name: name, Slug: p.Slug, File: l.display(there)})
		}
	}
	at, _, declared := l.owner("domain", wildcard)
	if len(lower) == 0 || !declared || !l.decode(at) {
		delete(l.overlaps, wildcard)
		return
	}
	was := o.diag.Summary
	o.path, o.diag = at, Overlap(l.decoded, wildcard, o.project, lower)
	l.overlapping[o.path]++
	l.touched[o.path] = true
	if o.diag.Summary != was {
		l.log(o.diag)
	}
}

// decode reads the last good bytes of a file into l.decoded.
func (l *overlapLook) decode(path string) bool {
	if l.path != path {
		content, err := l.store.LastGood(path)
		if err != nil {
			return false
		}
		l.path = path
		l.decoded, _ = hclfile.Decode(l.display(path), content, hclfile.Options{})
	}
	return true
}
