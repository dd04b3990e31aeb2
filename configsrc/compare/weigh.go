package compare

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"slices"

	"fingerpost/configsrc/folder"
	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// A Difference is what somebody proposes: the difference of two states of the config folder.
type Difference struct {
	Files   []catalog.FileEdit // in path order
	Outside bool               // something that is not in the config folder differs, too
	// Before and After read a file of either state, nil if there is none.
	Before, After func(path string) ([]byte, error)
}

// A Weight is what a Difference touches.
type Weight struct {
	Projects []int64 // by id, those that it adds and removes, too
	Rest     bool    // it touches what belongs to no project
	// Was and Is are the declarations of the config files concerned, with the texts that they take from other files.
	Was, Is []*catalog.Declared
	Broken  error // why some of that is not known; Rest is set then
	files   []weighed
	edits   []catalog.FileEdit
	bodies  map[string]bool // files that are nothing but bodies of templates
}

// A weighed is a config file of a Difference, or one that takes a text from a file of it.
type weighed struct {
	path    string
	was, is side
}

// A side is one state of a config file.
type side struct {
	*hclfile.Result
	src  []byte                            // nil: there is no such file
	read func(path string) ([]byte, error) // reads the files of the same state
}

// Weigh compares the models of both states: which projects differ in anything that they declare, bodies by file()
// included, and whether there is more. A key that is limited to projects must not see or apply what is more than its
// projects. usersOf lists the config files that take text from a file.
func Weigh(d *Difference, usersOf func(path string) []string) *Weight {
	w := &Weight{Rest: d.Outside, edits: d.Files, bodies: map[string]bool{}}
	texts := w.read(d, usersOf)
	if w.Broken != nil {
		w.Rest = true
	}
	t := touching{w: w, projects: map[int64]bool{}}
	for i := range w.files {
		f := &w.files[i]
		w.Was, w.Is = append(w.Was, f.was.Declared), append(w.Is, f.is.Declared)
	}
	t.models()
	differs := maps.Clone(t.projects)
	for i := range w.files {
		t.otherwise(&w.files[i], differs)
	}
	for _, text := range texts {
		t.text(text)
	}
	for id := range t.projects {
		w.Projects = append(w.Projects, id)
	}
	slices.Sort(w.Projects)
	return w
}

// read decodes the config files concerned, and returns the paths of the other files.
func (w *Weight) read(d *Difference, usersOf func(path string) []string) (texts []string) {
	edits := slices.Clone(d.Files)
	has := map[string]bool{}
	for _, f := range edits {
		has[f.Path] = true
	}
	for _, f := range d.Files {
		if folder.IsConfigPath(f.Path) {
			continue
		}
		texts = append(texts, f.Path)
		for _, user := range usersOf(f.Path) {
			if has[user] {
				continue
			}
			has[user] = true
			e := catalog.FileEdit{Path: user}
			var err error
			if e.Before, err = d.Before(user); err == nil {
				e.After, err = d.After(user)
			}
			if err != nil {
				w.fail(err)
				continue
			}
			edits = append(edits, e)
		}
	}
	for _, e := range edits {
		if !folder.IsConfigPath(e.Path) {
			continue
		}
		w.files = append(w.files, weighed{e.Path, w.decode(e.Path, e.Before, d.Before), w.decode(e.Path, e.After, d.After)})
	}
	return texts
}

// readerOf makes a file that is not there an error, as it is on disk.
func readerOf(read func(string) ([]byte, error)) func(string) ([]byte, error) {
	return func(p string) ([]byte, error) {
		b, err := read(p)
		if err == nil && b == nil {
			err = fmt.Errorf("there is no such file below the config folder")
		}
		return b, err
	}
}

func (w *Weight) fail(err error) {
	if w.Broken == nil {
		w.Broken = err
	}
}

// decode decodes a file, nil for none.
func (w *Weight) decode(p string, src []byte, read func(string) ([]byte, error)) side {
	if src == nil {
		return side{Result: &hclfile.Result{Declared: new(catalog.Declared)}}
	}
	read = readerOf(read)
	r, diags := hclfile.Decode(p, src, hclfile.Options{ReadFile: read})
	if diags.HasErrors() {
		i := slices.IndexFunc(diags, func(d hclfile.Diagnostic) bool { return d.Severity == hclfile.Error })
		w.fail(fmt.Errorf("%s: %s", p, diags[i].Summary))
	}
	return side{r, src, read}
}

// A touching finds out what differs.
type touching struct {
	w        *Weight
	projects map[int64]bool
}

// models compares the projects of all files, wherever they stand, and the rest file by file.
func (t *touching) models() {
	ends := map[string]bool{} // slugs of projects that go
	for _, c := range catalog.Changes(projectsOf(t.w.Was), projectsOf(t.w.Is)) {
		for _, o := range []*catalog.Object{c.Was, c.Is} {
			if o != nil {
				t.projects[o.ProjectID] = true
			}
		}
		if c.Was != nil && c.Is == nil && c.Was.Kind == catalog.KindProject {
			ends[c.Was.Slug] = true
		}
	}
	for i := range t.w.files { // a list that loses a project which goes is part of its end
		f := &t.w.files[i]
		if !sameRest(without(f.was.Declared, ends), without(f.is.Declared, ends)) {
			t.w.Rest = true
		}
	}
}

// projectsOf returns the projects of all files, and nothing else of them.
func projectsOf(files []*catalog.Declared) *catalog.Declared {
	all := new(catalog.Declared)
	for _, d := range files {
		all.Projects = append(all.Projects, d.Projects...)
	}
	return all
}

// without returns d with lists that do not name some slugs.
func without(d *catalog.Declared, slugs map[string]bool) *catalog.Declared {
	c := *d
	c.Keys, c.Webhooks, c.Logins = slices.Clone(d.Keys), slices.Clone(d.Webhooks), slices.Clone(d.Logins)
	c.Inbounds = slices.Clone(d.Inbounds)
	drop := func(list *[]string) {
		if *list != nil {
			*list = slices.DeleteFunc(slices.Clone(*list), func(slug string) bool { return slugs[slug] })
		}
	}
	for i := range c.Keys {
		drop(&c.Keys[i].Projects)
	}
	for i := range c.Webhooks {
		drop(&c.Webhooks[i].Projects)
	}
	for i := range c.Logins {
		c.Logins[i] = c.Logins[i].Clone()
		for j := range c.Logins[i].Rules {
			drop(&c.Logins[i].Rules[j].Projects)
		}
	}
	for i := range c.Inbounds {
		drop(&c.Inbounds[i].Projects)
	}
	return &c
}

// sameRest reports whether both declare the same outside of projects.
func sameRest(a, b *catalog.Declared) bool {
	was, is := *a, *b
	was.Projects, is.Projects = nil, nil
	return len(catalog.Changes(&was, &is)) == 0
}

// otherwise counts a file that differs, but in nothing that was found to differ, as touching all that it declares: a
// comment, or a block that has moved to another file.
func (t *touching) otherwise(f *weighed, differs map[int64]bool) {
	if bytes.Equal(f.was.src, f.is.src) && (f.was.src == nil) == (f.is.src == nil) ||
		!sameRest(f.was.Declared, f.is.Declared) {
		return
	}
	n := 0
	for _, d := range []*catalog.Declared{f.was.Declared, f.is.Declared} {
		if slices.ContainsFunc(d.Projects, func(p catalog.ProjectConfig) bool { return differs[p.Project.ID] }) {
			return
		}
		n += len(d.Projects)
	}
	t.all(f.was.Declared)
	t.all(f.is.Declared)
	if n == 0 {
		t.w.Rest = true
	}
}

func (t *touching) all(d *catalog.Declared) {
	for i := range d.Projects {
		t.projects[d.Projects[i].Project.ID] = true
	}
	if d.Shared() > 0 {
		t.w.Rest = true
	}
}

// text finds the projects that name a file which is no config file, on either side. One that no project names touches
// the rest.
func (t *touching) text(p string) {
	named, body := false, true
	for i := range t.w.files {
		f := &t.w.files[i]
		for _, side := range []side{f.was, f.is} {
			for j := range side.Declared.Projects {
				if namesFile(&side.Declared.Projects[j], p) {
					t.projects[side.Declared.Projects[j].Project.ID], named, body = true, true, false
				}
			}
			if slices.Contains(side.Deps, p) && t.bodies(f.path, side, p) {
				named = true
			}
		}
	}
	t.w.Rest = t.w.Rest || !named
	t.w.bodies[p] = named && body
}

// namesFile reports whether a project names a file for anything but a body.
func namesFile(project *catalog.ProjectConfig, p string) bool {
	is := func(s catalog.Secret) bool { return s.Source == catalog.SecretFile && path.Clean(s.Ref) == p }
	names := func(key string) bool { file, is := catalog.FilePath(key); return is && path.Clean(file) == p }
	if is(project.Auth.Token.JWTSecret) || slices.ContainsFunc(project.Auth.Rules.Keys, names) {
		return true
	}
	c := project.SMTP
	return c != nil && (is(c.Password) || is(c.OAuth.Secret) || c.CAFile != "" && path.Clean(c.CAFile) == p)
}

// bodies finds the templates of a file whose bodies are in the file p: they change with its content.
func (t *touching) bodies(name string, in side, p string) (named bool) {
	with := func(text string) *catalog.Declared {
		r, _ := hclfile.Decode(name, in.src, hclfile.Options{ReadFile: func(q string) ([]byte, error) {
			if q == p {
				return []byte(text), nil
			}
			return in.read(q)
		}})
		return r.Declared
	}
	a, b := with("one text"), with("another text")
	for i := range a.Projects {
		if i < len(b.Projects) && len(catalog.ProjectChanges(&a.Projects[i], &b.Projects[i])) > 0 {
			t.projects[a.Projects[i].Project.ID], named = true, true
		}
	}
	if !sameRest(a, b) {
		t.w.Rest, named = true, true
	}
	return named
}

// Within reports whether a key that is limited to projects covers all that a Difference touches.
func (w *Weight) Within(covers catalog.Coverage) bool {
	return covers == nil || !w.Rest && !slices.ContainsFunc(w.Projects, func(id int64) bool { return !covers(id) })
}

// Diff returns the files' change as a unified diff, without secrets, see Diff. A key that is limited to
// projects sees no line of a file that declares more than its projects, and nobody sees one of a file that is neither a
// config file nor a body: it may be a secret.
func (w *Weight) Diff(covers catalog.Coverage) string {
	var files []File
	for _, f := range w.edits {
		if lines, name := w.shows(&f, covers); name {
			files = append(files, File{Path: f.Path, Before: f.Before, After: f.After, Hidden: !lines})
		}
	}
	return Diff(files)
}

// shows reports whether a key sees the changed lines of a file, and its name: not that of a file with none of the key's
// projects, such as one with keys that lose a project.
func (w *Weight) shows(f *catalog.FileEdit, covers catalog.Coverage) (lines, name bool) {
	if !folder.IsConfigPath(f.Path) {
		return w.bodies[f.Path], true
	}
	all := touching{w: new(Weight), projects: map[int64]bool{}}
	for _, src := range [][]byte{f.Before, f.After} {
		r, diags := hclfile.Decode(f.Path, src, hclfile.Options{})
		if diags.HasErrors() && src != nil && covers != nil {
			return false, true
		}
		all.all(r.Declared)
	}
	for id := range all.projects {
		all.w.Projects = append(all.w.Projects, id)
		name = name || covers != nil && covers(id)
	}
	lines = all.w.Within(covers)
	return lines, lines || name
}
