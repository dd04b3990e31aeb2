package edits

import (
	"slices"

	"fingerpost/configsrc/atomicfile"
	"fingerpost/configsrc/compare"
	"fingerpost/configsrc/hclfile"
	"fingerpost/configsrc/judge"
	"fingerpost/configsrc/names"
	"fingerpost/resolver/catalog"
)

// Admit judges an Update as a look would judge the files.
func (s *Base) Admit(u *Update) error {
	if u.moves != nil && !s.coversLists(u) {
		return atomicfile.ErrChanged
	}
	if u.permit != nil {
		if err := u.permit(); err != nil {
			return err
		}
	}
	if err := s.judgeUpdate(u); err != nil {
		return err
	}
	// A key that is limited to projects may not declare every domain. No other update is committed before this one, so the
	// result stays valid.
	if u.edit.Covers != nil {
		for _, name := range u.domains {
			if err := names.MayClaim(s.Facts, u.edit.Covers, u.project, name); err != nil {
				return err
			}
		}
		if !u.proofsFollow(s.o.Live.Defaults()) {
			return atomicfile.ErrChanged
		}
	}
	return nil
}

// proofsFollow reports whether the proofs of the domains follow from these defaults: they may have changed since the
// edit was made from others.
func (u *Update) proofsFollow(defaults *catalog.Defaults) bool {
	if u.Was.Declared == nil || u.Is == nil || u.Is.Declared == nil {
		return true
	}
	byID := func(d *catalog.Declared) *catalog.ProjectConfig {
		i := slices.IndexFunc(d.Projects, func(p catalog.ProjectConfig) bool { return p.Project.ID == u.project })
		if i < 0 {
			return &catalog.ProjectConfig{}
		}
		return &d.Projects[i]
	}
	is := byID(u.Is.Declared).Domains
	if t := u.edit.Takes; t != nil { // which is proven
		is = slices.DeleteFunc(slices.Clone(is), func(d catalog.Domain) bool { return d.Name == t.Domain })
	}
	return names.MayProveAll(byID(u.Was.Declared).Domains, is, defaults) == nil
}

// judgeUpdate judges an update against the other files.
func (s *Base) judgeUpdate(u *Update) error {
	s.Known.RLock()
	defer s.Known.RUnlock()
	for _, c := range u.Changed {
		c.Prev = s.Table.File(c.Path)
	}
	j := &judge.Case{
		Table: s.Table, Candidates: u.Changed, Require: s.Sealed,
		Row:     s.Facts.File,
		Display: func(path string) string { return path }, // the message goes to the client
		Locate:  s.LastDecoded, Meant: func(project catalog.UUID) bool { return project == u.removes },
	}
	j.Run()
	if refused := slices.IndexFunc(u.Changed, func(c *judge.Candidate) bool { return c.Rejected }); refused >= 0 {
		return s.refusalOf(u, j, u.Changed[refused])
	}
	return nil
}

// refusalOf returns why a judge has rejected refused, a file of u: the CONFLICT with another file, if there is one.
func (s *Base) refusalOf(u *Update, j *judge.Case, refused *judge.Candidate) error {
	if conflict := j.Conflict(u.Is, u.had, u.edit.Covers); conflict != nil {
		return conflict
	}
	return s.invalidFile(append(refused.Diags, refused.Cross...), u.edit.Covers)
}

// coversLists reports whether the update covers all lists that name the slug now.
func (s *Base) coversLists(u *Update) bool {
	for _, path := range s.listFiles(u.moves.from, u.Is.Path) {
		if !slices.Contains(u.moves.files, path) {
			return false
		}
	}
	return true
}

// Describe judges an Update, and describes it instead of making it. t has the files as they are.
func (s *Base) Describe(u *Update, t Contents) error {
	if err := s.Admit(u); err != nil {
		return err
	}
	p := Preview{Problems: hclfile.Diagnostics{}}
	limited := u.edit.Covers != nil
	for _, f := range u.Files {
		bulk := u.edit.Projects != nil
		if limited && !bulk && f.Config != nil && f != u.File {
			continue // with lists that lose the project: that they do is nothing for this one
		}
		file := compare.File{Path: f.Name, Before: f.Had, After: f.Content}
		if f.Removes {
			file.After = nil
		}
		if f.Config != nil && f != u.File {
			was := judge.Content{Bytes: file.Before}
			was.Decode(f.Name, t, hclfile.Rules{})
			p.addDeclared(was.Declared, f.Config.Declared)
			file.Shared = limited && declaresMore(was.Declared)
		}
		if limited && f == u.File {
			file.Shared = declaresMore(u.Was.Declared)
			file.Hidden = u.moves != nil && hasLists(u.Was.Declared) || u.loser != nil
		}
		p.Files = append(p.Files, file)
	}
	p.addDeclared(u.Was.Declared, u.Is.Declared)
	if limited {
		for _, d := range slices.Concat(p.Was, p.Is) {
			d.DropNamed()
		}
		if at := len(p.Is) - 1; u.loser != nil { // what another project loses is nothing for this key
			p.Is[at].Projects[u.loser.at] = p.Was[len(p.Was)-1].Projects[u.loser.at]
		}
	}
	known := map[string]bool{}
	for _, d := range u.Was.Diags {
		known[d.Summary] = true
	}
	for _, d := range slices.Concat(u.Is.Diags, u.Is.Cross) {
		if d.File = u.Is.Path; d.Severity == hclfile.Warning && !known[d.Summary] {
			p.Problems = append(p.Problems, d)
		}
	}
	overlaps, err := names.Foresee(s.Facts, u.Is.Path, u.project, u.domains)
	if err != nil {
		return err
	}
	p.Problems = append(p.Problems, overlaps...)
	*u.Preview = p
	return nil
}
