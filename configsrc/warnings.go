package configsrc

import (
	"slices"

	"fingerpost/configsrc/hclfile"
	"fingerpost/configsrc/judge"
	"fingerpost/configsrc/names"
	"fingerpost/resolver/catalog"
)

// warnings are the warnings about accepted files. A warning is logged once. The goroutine that looks owns them.
type warnings struct {
	*base
	files map[string]hclfile.Diagnostics // of each file alone
	names *names.Warnings                // of files with each other

	loading bool // a first load is under way: noteLoad finds the warnings of its files with each other at its end
}

func newWarnings(b *base) *warnings {
	w := &warnings{base: b, files: map[string]hclfile.Diagnostics{}}
	w.names = names.NewWarnings(b.o.Sink, func(what, name string) (path string, hash [32]byte, declared bool) {
		f := b.Table.Owner(judge.ClaimOf(what, name))
		if f == nil {
			return "", hash, false
		}
		return f.Path, f.Stamp.Hash, true
	}, b.Display, w.logWarning)
	return w
}

// noteFile takes the warnings of an accepted file.
func (w *warnings) noteFile(c *judge.Candidate) {
	diags := append(append(hclfile.Diagnostics{}, c.Diags...), c.Cross...)
	if len(diags) == 0 || c.Gone {
		delete(w.files, c.Path)
		return
	}
	diags.Sort()
	if !sameDiagnostics(w.files[c.Path], diags) {
		for _, d := range diags {
			w.logWarning(d)
		}
	}
	w.files[c.Path] = diags
}

func (w *warnings) logWarning(d hclfile.Diagnostic) {
	w.o.Logger.Warn("config warning", "problem", d.Summary, "hint", d.Detail, "file", d.File, "line", d.Start.Line)
}

// changing lists the accepted files that have other claims than before.
func changing(accepted []*judge.Candidate) (paths []string) {
	for _, c := range accepted {
		if !c.Touched && (c.Gone || c.Prev != nil && !slices.Equal(c.Claims, c.Prev.Claims)) {
			paths = append(paths, c.Path)
		}
	}
	return paths
}

// noteCommit updates the warnings after a commit to table and Sink. gone are the names that were left by it.
func (w *warnings) noteCommit(accepted []*judge.Candidate, gone []string) {
	if w.loading {
		return
	}
	var changes []names.Change
	for _, c := range accepted {
		// A row from the Sink has no hash if the file had warnings, which must be found again.
		anew := c.Prev == nil || w.redecode || c.Prev.Stamp.Hash == [32]byte{}
		if c.Gone || c.Touched || !anew && !w.names.Overlaps(c.Path) && slices.Equal(c.Claims, c.Prev.Claims) {
			continue
		}
		var had map[judge.Claim]bool
		if !anew {
			had = judge.SetOf(c.Prev.Claims)
		}
		isNew := func(ref catalog.Ref) bool { // it may have been another project's
			return !had[judge.ClaimOf("domain", ref.Name)] || !had[judge.ClaimOf("domain uuid", string(ref.UUID[:]))]
		}
		changes = append(changes, names.Change{Path: c.Path, Refs: c.Refs, Projects: c.Counts.Projects, New: isNew})
	}
	if touched := w.names.Committed(changes, gone); len(touched) > 0 {
		w.markFiles(touched)
	}
}

// noteLoad finds the warnings of all files with each other, at the end of a first load. A load that is cut short has left
// no decoder revision in the Sink, so that the next one decodes every file and finds them.
func (w *warnings) noteLoad() error {
	touched, err := w.names.Loaded()
	if err == nil && len(touched) > 0 {
		w.markFiles(touched)
	}
	return err
}

// markFiles records in the Sink which files have warnings, so that the next start reads them again and restores the
// warnings. If it fails, the next start lacks a warning; the commit is not affected.
func (w *warnings) markFiles(paths []string) {
	var change catalog.Change
	w.Known.Lock()
	for _, path := range paths {
		f := w.Table.Files[path]
		if f == nil {
			continue
		}
		if warned := len(w.files[path]) > 0 || w.names.Overlaps(path); warned != f.Warned {
			f.Warned = warned
			change.Files = append(change.Files, catalog.FileChange{Path: path, Row: &catalog.FileRow{Stamp: f.Stamp,
				Deps: f.Deps, Warned: warned}})
		}
	}
	w.Known.Unlock()
	if len(change.Files) > 0 {
		_ = w.o.Sink.Fill(&change)
	}
}

// appendTo adds all warnings to a list.
func (w *warnings) appendTo(list hclfile.Diagnostics) hclfile.Diagnostics {
	for _, diags := range w.files {
		list = append(list, diags...)
	}
	return w.names.All(list)
}
