package edits

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"fingerpost/configsrc/compare"
	"fingerpost/configsrc/folder"
	"fingerpost/configsrc/hclfile"
	"fingerpost/configsrc/judge"
	"fingerpost/configsrc/names"
	"fingerpost/resolver/catalog"
)

// JudgeDifference returns why a Difference of that weight cannot be put in place now, for keys with these coverages,
// that of the caller first. It adds the warnings that it would bring to brings, unless that is nil. The owner of the
// Base calls it.
func (s *Base) JudgeDifference(d *compare.Difference, w *compare.Weight, limits []catalog.Coverage,
	brings *hclfile.Diagnostics) error {
	t, err := s.OpenTree()
	if err != nil {
		return WriteFault("open the config folder", err)
	}
	defer t.Close()
	plain := func(path string) string { return path } // the message goes to the client
	j := &judge.Case{Table: s.Table, Require: s.Sealed, Row: s.o.Live.File, Display: plain,
		Locate: func(p string) (*hclfile.Result, error) { return Locate(t, s.Display(p), p) }}
	in := changedContents{t, map[string][]byte{}}
	for _, f := range d.Files {
		in.files[f.Path] = f.After
	}
	if j.Candidates, err = s.candidatesOf(d, in); err != nil {
		return err
	}
	j.Run()
	var covers catalog.Coverage
	if len(limits) > 0 {
		covers = limits[0]
	}
	if i := slices.IndexFunc(j.Candidates, func(c *judge.Candidate) bool { return c.Rejected }); i >= 0 {
		return s.staleRefusal(j, j.Candidates[i], covers)
	}
	if err := s.listsStay(j, covers); err != nil {
		return err
	}
	for _, limit := range limits {
		if err := s.mayMakeChange(w, limit); err != nil {
			return err
		}
	}
	if brings != nil {
		*brings, err = s.foreseenWarnings(j, t, covers)
	}
	return err
}

// foreseenWarnings returns the warnings that the candidates of a judge would bring, with paths below the config folder.
// t has the files as they are now. A key that is limited to projects learns nothing of names of others.
func (s *Base) foreseenWarnings(j *judge.Case, t Contents, covers catalog.Coverage) (list hclfile.Diagnostics,
	err error) {
	for _, c := range j.Candidates {
		if c.Declared == nil {
			continue
		}
		known, err := s.warningsOf(c.Path, t)
		if err != nil {
			return nil, err
		}
		for _, d := range slices.Concat(c.Diags, c.Cross) {
			if d.File = c.Path; d.Severity == hclfile.Warning && !known[d.Summary] {
				list = append(list, d)
			}
		}
		for i := 0; covers == nil && i < len(c.Declared.Projects); i++ {
			p := &c.Declared.Projects[i]
			added := s.newDomains(p)
			if len(added) == 0 {
				continue
			}
			overlaps, err := names.Foresee(s.o.Live, c.Path, p.Project.ID, added)
			if err != nil {
				return nil, err
			}
			list = append(list, overlaps...)
		}
	}
	return list, nil
}

// warningsOf returns the warnings about the accepted content of a file, none for a file that is not accepted.
func (s *Base) warningsOf(path string, t Contents) (map[string]bool, error) {
	known := map[string]bool{}
	if s.FileAt(path) == nil {
		return known, nil
	}
	b, err := s.Facts.LastGood(path)
	if err != nil {
		return nil, err
	}
	was := judge.Content{Bytes: b}
	was.Decode(path, t, s.Rules())
	for _, d := range was.Diags {
		known[d.Summary] = true
	}
	return known, nil
}

// newDomains lists the domains of a project that are not its own yet.
func (s *Base) newDomains(p *catalog.ProjectConfig) (list []string) {
	for i := range p.Domains {
		name := p.Domains[i].Name
		if d, err := s.o.Live.DomainNamed(name); err != nil || d.ProjectID != p.Project.ID {
			list = append(list, name)
		}
	}
	return list
}

// candidatesOf decodes the config files that differ, and those that take text from other files that do. in has the
// files after the Difference.
func (s *Base) candidatesOf(d *compare.Difference, in Contents) (list []*judge.Candidate, err error) {
	differs := map[string]bool{}
	for _, f := range d.Files {
		differs[f.Path] = true
	}
	add := func(path string, b []byte) {
		c := &judge.Candidate{Path: path, Prev: s.FileAt(path), Content: judge.Content{Bytes: b}, Gone: b == nil}
		if !c.Gone {
			c.Decode(path, in, s.Rules())
		}
		if !c.Gone || c.Prev != nil {
			list = append(list, c)
		}
	}
	users := map[string]bool{}
	for _, f := range d.Files {
		if folder.IsConfigPath(f.Path) {
			add(f.Path, f.After)
			continue
		}
		for _, user := range s.UsersOf(f.Path) {
			if !differs[user] {
				users[user] = true
			}
		}
	}
	for path := range users {
		b, _, err := in.Read(path, folder.MaxFileBytes)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it is in no commit yet, or has just gone
		}
		if err != nil {
			return nil, WriteFault("read "+path, err)
		}
		add(path, b)
	}
	judge.SortByPath(list)
	return list, nil
}

// staleRefusal says why a file of a Difference was rejected.
func (s *Base) staleRefusal(j *judge.Case, c *judge.Candidate, covers catalog.Coverage) error {
	if conflict := j.Conflict(c, nil, covers); conflict != nil {
		conflict.Message = "the proposal does not fit any more: " + conflict.Message
		return conflict
	}
	e := &catalog.Error{Code: catalog.CodeFileInvalid, Message: "the proposal would break the file " + c.Path}
	for _, d := range slices.Concat(c.Diags, c.Cross) {
		if d.Severity == hclfile.Error && covers == nil {
			e.Message += ": " + d.Summary
			break
		}
	}
	return e
}

// listsStay refuses a change after which a list of projects would name a slug that no project has, or that another
// project has than before: these lists follow their projects (api/README.md, Keys), and a proposal knows only the lists
// that were there when it was made.
func (s *Base) listsStay(j *judge.Case, covers catalog.Coverage) error {
	is, was := map[string]catalog.UUID{}, map[string]catalog.UUID{}
	lists := map[catalog.ListHolder][]string{} // slugs, as the files that change will have them
	for _, c := range j.Candidates {
		if c.Declared != nil {
			for i := range c.Declared.Projects {
				is[c.Declared.Projects[i].Project.Slug] = c.Declared.Projects[i].Project.UUID
			}
			maps.Insert(lists, c.Declared.Lists())
		}
		if c.Prev == nil {
			continue
		}
		row, err := s.o.Live.File(c.Path)
		if err != nil {
			return err
		}
		for _, ref := range row.Refs {
			if ref.Kind == catalog.KindProject {
				was[ref.Name] = ref.UUID
			}
		}
	}
	for slug, uuid := range was {
		if is[slug] == uuid {
			continue
		}
		for _, holder := range s.o.Live.ListsNaming(slug) {
			owner := s.Table.Owner(judge.HolderClaim(holder))
			changes := owner != nil && j.Candidate(owner.Path) != nil
			if !changes || slices.Contains(lists[holder], slug) {
				return listConflict(holder, slug, covers)
			}
		}
	}
	known := s.o.Live.UnknownSlugs()
	for holder, slugs := range lists {
		for _, slug := range slugs {
			_, there := is[slug]
			if _, gone := was[slug]; there || !gone && s.Table.Owner(judge.ClaimOf("slug", slug)) != nil ||
				slices.Contains(known, catalog.UnknownSlug{ListHolder: holder, Slug: slug}) {
				continue
			}
			return listConflict(holder, slug, covers)
		}
	}
	return nil
}

func listConflict(holder catalog.ListHolder, slug string, covers catalog.Coverage) error {
	e := &catalog.Error{Code: catalog.CodeConflict,
		Message: "the proposal does not fit the keys any more: a key names a project that it renames or removes"}
	if covers == nil {
		e.Message = fmt.Sprintf("the proposal does not fit the %ss any more: %s %q names the project %q, "+
			"which would not be there, or be another one", holder.Kind, holder.Kind, holder.Name, slug)
	}
	return e
}

// mayMakeChange reports whether a key may make the change that a Difference is now, over the API (api/README.md, Keys).
// nil is a key for every project, which may.
func (s *Base) mayMakeChange(w *compare.Weight, covers catalog.Coverage) error {
	if covers == nil {
		return nil
	}
	refuse := func(why string) *catalog.Error {
		return &catalog.Error{Code: catalog.CodeConflict,
			Message: "the proposal was made, or is applied, by a key that may not make this change any more: " + why}
	}
	if !w.Within(covers) {
		return refuse("it changes more than the key's projects")
	}
	for _, d := range w.Is {
		for i := range d.Projects {
			p := &d.Projects[i]
			if !slices.Contains(w.Projects, p.Project.ID) {
				continue
			}
			live, err := s.o.Live.ProjectByID(p.Project.ID)
			switch {
			case catalog.IsNotFound(err):
				return refuse("it makes a project")
			case err != nil:
				return err
			case live.Slug != p.Project.Slug:
				return refuse("it gives a project another slug")
			}
			if err := s.mayClaimAll(p, covers); err != nil {
				if e, is := errors.AsType[*catalog.Error](err); is {
					stale := refuse("a domain is not allowed to it")
					stale.Problems = e.Problems
					return stale
				}
				return err
			}
		}
	}
	return nil
}

// mayClaimAll is MayClaim for the domains of a project that it does not have yet, and MayProve for all.
func (s *Base) mayClaimAll(p *catalog.ProjectConfig, covers catalog.Coverage) error {
	for i := range p.Domains {
		name := p.Domains[i].Name
		live, err := s.o.Live.DomainNamed(name)
		if err != nil || live.ProjectID != p.Project.ID {
			live = nil
		}
		if err := names.MayProve(live, &p.Domains[i], s.o.Live.Defaults()); err != nil {
			return err
		}
		if live != nil {
			continue
		}
		if err := names.MayClaim(s.o.Live, covers, p.Project.ID, name); err != nil {
			return err
		}
	}
	return nil
}
