package configsrc

import (
	"slices"

	"fingerpost/configsrc/hclfile"
	"fingerpost/configsrc/names"
	"fingerpost/resolver/catalog"
)

// warnings are the warnings about accepted files. A warning is logged once. The goroutine that looks owns them.
type warnings struct {
	*base
	files map[string]hclfile.Diagnostics // of each file alone
	names *names.Warnings                // of files with each other
}

func newWarnings(b *base) *warnings {
	w := &warnings{base: b, files: map[string]hclfile.Diagnostics{}}
	w.names = names.NewWarnings(b.o.Sink, func(what, name string) (path string, hash [32]byte, declared bool) {
		f := b.table.owner(claimOf(what, name))
		if f == nil {
			return "", hash, false
		}
		return f.path, f.stamp.Hash, true
	}, b.display, w.log)
	return w
}

// note takes the warnings of an accepted file.
func (w *warnings) note(c *candidate) {
	diags := append(append(hclfile.Diagnostics{}, c.diags...), c.cross...)
	if len(diags) == 0 || c.gone {
		delete(w.files, c.path)
		return
	}
	diags.Sort()
	if !sameDiagnostics(w.files[c.path], diags) {
		for _, d := range diags {
			w.log(d)
		}
	}
	w.files[c.path] = diags
}

func (w *warnings) log(d hclfile.Diagnostic) {
	w.o.Logger.Warn("config warning", "problem", d.Summary, "hint", d.Detail, "file", d.File, "line", d.Start.Line)
}

// changing lists the accepted files that have other claims than before.
func changing(accepted []*candidate) (paths []string) {
	for _, c := range accepted {
		if !c.touched && (c.gone || c.prev != nil && !slices.Equal(c.claims, c.prev.claims)) {
			paths = append(paths, c.path)
		}
	}
	return paths
}

// committed updates the warnings after a commit to table and Sink. gone are the names that were left by it.
func (w *warnings) committed(accepted []*candidate, gone []string, redecode bool) {
	var changes []names.Change
	for _, c := range accepted {
		// A row from the Sink has no hash if the file had warnings, which must be found again.
		anew := c.prev == nil || redecode || c.prev.stamp.Hash == [32]byte{}
		if c.gone || c.touched || !anew && !w.names.Overlaps(c.path) && slices.Equal(c.claims, c.prev.claims) {
			continue
		}
		var had map[claim]bool
		if !anew {
			had = setOf(c.prev.claims)
		}
		isNew := func(ref catalog.Ref) bool { // it may have been another project's
			return !had[claimOf("domain", ref.Name)] || !had[claimOf("domain uuid", string(ref.UUID[:]))]
		}
		changes = append(changes, names.Change{Path: c.path, Refs: c.refs, Projects: c.counts.projects, New: isNew})
	}
	if touched := w.names.Committed(changes, gone); len(touched) > 0 {
		w.mark(touched)
	}
}

// mark records in the Sink which files have warnings, so that the next start reads them again and restores the
// warnings. If it fails, the next start lacks a warning; the commit is not affected.
func (w *warnings) mark(paths []string) {
	var change catalog.Change
	w.known.Lock()
	for _, path := range paths {
		f := w.table.files[path]
		if f == nil {
			continue
		}
		if warned := len(w.files[path]) > 0 || w.names.Overlaps(path); warned != f.warned {
			f.warned = warned
			change.Files = append(change.Files, catalog.FileChange{Path: path, Row: &catalog.FileRow{Stamp: f.stamp,
				Deps: f.deps, Warned: warned}})
		}
	}
	w.known.Unlock()
	if len(change.Files) > 0 {
		_ = w.o.Sink.Fill(&change)
	}
}

// add adds all warnings to a list.
func (w *warnings) add(list hclfile.Diagnostics) hclfile.Diagnostics {
	for _, diags := range w.files {
		list = append(list, diags...)
	}
	return w.names.All(list)
}
