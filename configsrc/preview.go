package configsrc

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"fingerpost/configsrc/atomicfile"
	"fingerpost/configsrc/folder"
	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// A Preview is what a write would change. Its contents must not be changed; Before and After contain the files' secrets
// as they stand there, Diff does not.
type Preview struct {
	Files []PreviewedFile // in the order in which the write would put them in place; empty: nothing changes
	// Was and Is are the declarations of the config files concerned, before and after. A key that is limited to projects
	// does not get the keys and edges among them.
	Was, Is []*catalog.Declared
	// not nil: the warnings that the change would bring, with paths relative to the config folder
	Problems hclfile.Diagnostics
}

// A PreviewedFile is a file that a write would create, replace or remove.
type PreviewedFile struct {
	Path          string // slash-separated below the config folder
	Before, After []byte // nil: there is no such file
	// shared: the file declares more than the writer's key covers, so Diff shows changed lines only. hidden: some changed
	// lines belong to others, and Diff shows none.
	shared, hidden bool
}

// previewed answers an update that is a dry run, unless somebody has saved a file of it meanwhile.
func (s *Source) previewed(u *submission) error {
	for _, f := range u.files {
		if f.Creates {
			continue
		}
		switch now, err := s.o.Disk.ReadFile(f.Target); {
		case errors.Is(err, fs.ErrNotExist), err == nil && sha256.Sum256(now) != f.Old:
			return atomicfile.ErrChanged
		case err != nil:
			return writeFault("read "+f.Name, err)
		}
	}
	return s.preview(u)
}

// preview judges an update, and describes it instead of making it.
func (s *base) preview(u *submission) error {
	if err := s.admit(u); err != nil {
		return err
	}
	t, err := s.ws.open()
	if err != nil {
		return writeFault("open the config folder", err)
	}
	defer t.Close()
	p := Preview{Problems: hclfile.Diagnostics{}}
	limited := u.edit.Covers != nil
	for _, f := range u.files {
		if limited && f.c != nil && f != u.file {
			continue // with keys that lose the project: that they do is nothing for this one
		}
		file := PreviewedFile{Path: f.Name, Before: f.had, After: f.Content}
		if f.Removes {
			file.After = nil
		}
		if f.c != nil && f != u.file {
			was := content{bytes: file.Before}
			was.decode(f.Name, t)
			p.add(was.declared, f.c.declared)
		}
		if limited && f == u.file {
			file.shared = declaresMore(u.was.declared)
			file.hidden = u.moves != nil && len(u.was.declared.Keys) > 0
		}
		p.Files = append(p.Files, file)
	}
	p.add(u.was.declared, u.c.declared)
	if limited {
		for _, d := range slices.Concat(p.Was, p.Is) {
			d.Keys, d.Edges = nil, nil
		}
	}
	known := map[string]bool{}
	for _, d := range u.was.diags {
		known[d.Summary] = true
	}
	for _, d := range slices.Concat(u.c.diags, u.c.cross) {
		if d.File = u.c.path; d.Severity == hclfile.Warning && !known[d.Summary] {
			p.Problems = append(p.Problems, d)
		}
	}
	if p.Problems, err = s.foreseeOverlaps(u, p.Problems); err != nil {
		return err
	}
	*u.dry = p
	return nil
}

// add notes a file's declarations, as copies.
func (p *Preview) add(was, is *catalog.Declared) {
	if was != nil {
		p.Was = append(p.Was, was.Clone())
	}
	if is != nil {
		p.Is = append(p.Is, is.Clone())
	}
}

// declaresMore reports whether a file declares anything next to one project.
func declaresMore(d *catalog.Declared) bool {
	return d != nil && len(d.Projects)+len(d.Templates)+len(d.Keys)+len(d.Edges) > 1 || d != nil && (d.Defaults != nil ||
		d.Sealing != nil)
}

// foreseeOverlaps adds the warnings about wildcards and names of different projects that the new domains would bring.
func (s *base) foreseeOverlaps(u *submission, ds hclfile.Diagnostics) (hclfile.Diagnostics, error) {
	warn := func(wildcard, lower string) {
		ds = append(ds, hclfile.Diagnostic{Severity: hclfile.Warning, File: u.c.path,
			Summary: fmt.Sprintf("wildcard %q would lie above %q of another project", wildcard, lower),
			Detail:  "the longer name answers for its own project; if that is not meant, choose another name"})
	}
	for _, name := range u.domains {
		for wildcard := range wildcardsAbove(name) {
			if upper, err := s.facts.DomainNamed(wildcard); err == nil && upper.ProjectID != u.project {
				warn(wildcard, name)
			}
		}
		suffix, wildcard := strings.CutPrefix(name, "*.")
		if !wildcard {
			continue
		}
		lower := ""
		err := s.facts.DomainsBelow(suffix, func(d *catalog.Domain) bool {
			if d.ProjectID != u.project {
				lower = strings.Clone(d.Name)
			}
			return lower == ""
		})
		if err != nil {
			return nil, err
		}
		if lower != "" {
			warn(name, lower)
		}
	}
	return ds, nil
}

// Diff returns the change as a unified diff, with paths relative to the config folder, "" if nothing changes. A sealed
// secret is shown as sealed("…"), any other secret and a key's hash as (redacted). A key that is limited to projects
// sees no line that belongs to another one.
func (p *Preview) Diff() string {
	var out strings.Builder
	for i := range p.Files {
		p.Files[i].diff(&out)
	}
	return out.String()
}

// diff compares the true contents, so that a changed secret shows up, and prints the lines without secrets.
func (f *PreviewedFile) diff(out *strings.Builder) {
	from, to := "a/"+f.Path, "b/"+f.Path
	if f.Before == nil {
		from = "/dev/null"
	}
	if f.After == nil {
		to = "/dev/null"
	}
	raw := diff.Diff(from, f.Before, to, f.After)
	if raw == nil {
		return
	}
	fmt.Fprintf(out, "--- %s\n+++ %s\n", from, to)
	if f.hidden {
		return
	}
	before, after := f.lines(f.Before), f.lines(f.After)
	var h hunk
	for line := range bytes.Lines(raw) {
		switch {
		case bytes.HasPrefix(line, []byte("@@ ")):
			h.flush(out)
			_, _ = fmt.Sscanf(string(line), "@@ -%d,%d +%d,%d @@", &h.old, &h.oldLines, &h.new, &h.newLines)
			h.atOld, h.atNew = max(h.old, 1), max(h.new, 1)
		case h.oldLines+h.newLines == 0, line[0] == '\\': // the header; the note about a missing line end comes with its line
			if line[0] == '\\' {
				h.text = append(h.text, string(line))
			}
		case line[0] == '-':
			h.text = append(h.text, "-"+before[h.atOld-1])
			h.atOld++
		case line[0] == '+':
			h.text = append(h.text, "+"+after[h.atNew-1])
			h.atNew++
		default:
			if f.shared {
				h.cut(out)
			} else {
				h.text = append(h.text, " "+after[h.atNew-1])
			}
			h.atOld, h.atNew = h.atOld+1, h.atNew+1
		}
	}
	h.flush(out)
}

// lines returns a file's lines with their line ends and without its secrets. A last line without a line end gets one.
func (f *PreviewedFile) lines(src []byte) (lines []string) {
	if folder.IsConfigName(f.Path[strings.LastIndexByte(f.Path, '/')+1:]) {
		src = hclfile.Masked(src)
	}
	for line := range strings.Lines(string(src)) {
		if !strings.HasSuffix(line, "\n") {
			line += "\n"
		}
		lines = append(lines, line)
	}
	return lines
}

// A hunk is a part of a diff that is not printed yet.
type hunk struct {
	old, oldLines, new, newLines int // from its header
	atOld, atNew                 int // of the next line
	text                         []string
}

// flush prints the hunk.
func (h *hunk) flush(out *strings.Builder) {
	if len(h.text) > 0 {
		fmt.Fprintf(out, "@@ -%s +%s @@\n%s", lineRange(h.old, h.oldLines), lineRange(h.new, h.newLines), strings.Join(h.text,
			""))
	}
	*h = hunk{}
}

// cut prints the changed lines before a line that is not shown, as a hunk of its own.
func (h *hunk) cut(out *strings.Builder) {
	next := *h
	next.text = nil
	if len(h.text) > 0 {
		h.oldLines, h.newLines = 0, 0
		for _, line := range h.text {
			switch line[0] {
			case '-':
				h.oldLines++
			case '+':
				h.newLines++
			}
		}
		h.old, h.new = h.atOld-h.oldLines, h.atNew-h.newLines
		if h.oldLines == 0 { // a range without lines is named by the line before it
			h.old--
		}
		if h.newLines == 0 {
			h.new--
		}
		h.flush(out)
	}
	*h = next
}

func lineRange(at, lines int) string {
	if lines == 1 {
		return strconv.Itoa(at)
	}
	return strconv.Itoa(at) + "," + strconv.Itoa(lines)
}
