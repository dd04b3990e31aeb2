package configsrc

import "fingerpost/configsrc/hclfile"

// warnings are the warnings about accepted files: those of a file alone, those about wildcards above names of other
// projects (overlap.go), and those about slugs that no project has (unknownslug.go). A warning is logged once. The
// goroutine that looks owns them.
type warnings struct {
	*base
	files       map[string]hclfile.Diagnostics // of each file alone
	overlaps    map[string]*overlap            // by wildcard
	overlapping map[string]int                 // number of overlaps by file
	unknown     map[string]*unknownSlugs       // by file
}

func newWarnings(b *base) *warnings {
	return &warnings{base: b, files: map[string]hclfile.Diagnostics{}, overlaps: map[string]*overlap{},
		overlapping: map[string]int{}}
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

// add brings the warnings up to date with the Sink, and adds all of them to a list.
func (w *warnings) add(list hclfile.Diagnostics) hclfile.Diagnostics {
	w.noteUnknown()
	for _, diags := range w.files {
		list = append(list, diags...)
	}
	for _, u := range w.unknown {
		list = append(list, u.diags...)
	}
	for _, o := range w.overlaps {
		list = append(list, o.diag)
	}
	return list
}
