package configsrc

import (
	"crypto/sha256"
	"errors"
	"io/fs"
	"slices"

	"fingerpost/configsrc/atomicfile"
	"fingerpost/configsrc/compare"
	"fingerpost/configsrc/hclfile"
	"fingerpost/configsrc/judge"
	"fingerpost/configsrc/names"
	"fingerpost/resolver/catalog"
)

// A Preview is what a write would change. Its contents must not be changed; Before and After contain the files' secrets
// as they stand there, Diff does not.
type Preview struct {
	Files []compare.File // in the order in which the write would put them in place; empty: nothing changes
	// Was and Is are the declarations of the config files concerned, before and after. A key that is limited to projects
	// does not get the keys and edges among them.
	Was, Is []*catalog.Declared
	// not nil: the warnings that the change would bring, with paths relative to the config folder
	Problems hclfile.Diagnostics
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
		bulk := u.edit.Projects != nil
		if limited && !bulk && f.c != nil && f != u.file {
			continue // with keys that lose the project: that they do is nothing for this one
		}
		file := compare.File{Path: f.Name, Before: f.had, After: f.Content}
		if f.Removes {
			file.After = nil
		}
		if f.c != nil && f != u.file {
			was := judge.Content{Bytes: file.Before}
			was.Decode(f.Name, t, "")
			p.add(was.Declared, f.c.Declared)
			file.Shared = limited && declaresMore(was.Declared)
		}
		if limited && f == u.file {
			file.Shared = declaresMore(u.was.Declared)
			file.Hidden = u.moves != nil && len(u.was.Declared.Keys) > 0 || u.loser != nil
		}
		p.Files = append(p.Files, file)
	}
	p.add(u.was.Declared, u.c.Declared)
	if limited {
		for _, d := range slices.Concat(p.Was, p.Is) {
			d.Keys, d.Edges = nil, nil
		}
		if at := len(p.Is) - 1; u.loser != nil { // what another project loses is nothing for this key
			p.Is[at].Projects[u.loser.at] = p.Was[len(p.Was)-1].Projects[u.loser.at]
		}
	}
	known := map[string]bool{}
	for _, d := range u.was.Diags {
		known[d.Summary] = true
	}
	for _, d := range slices.Concat(u.c.Diags, u.c.Cross) {
		if d.File = u.c.Path; d.Severity == hclfile.Warning && !known[d.Summary] {
			p.Problems = append(p.Problems, d)
		}
	}
	overlaps, err := names.Foresee(s.facts, u.c.Path, u.project, u.domains)
	if err != nil {
		return err
	}
	p.Problems = append(p.Problems, overlaps...)
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

// Diff returns the change as a unified diff, with paths relative to the config folder, "" if nothing changes. A sealed
// secret is shown as sealed("…"), any other secret and a key's hash as (redacted). A key that is limited to projects
// sees no line that belongs to another one.
func (p *Preview) Diff() string { return compare.Diff(p.Files) }
