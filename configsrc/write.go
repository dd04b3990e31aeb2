package configsrc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"fingerpost/configsrc/atomicfile"
	"fingerpost/configsrc/hcledit"
	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// The three writes below change what the files declare, and then the Sink (configsrc/README.md, Write-back). When one
// returns nil, the change is in its file, file and folder are synced, and the Sink serves it. Any error means that
// nothing was changed; errors for the client are *catalog.Error, others are internal or system faults. Run must be
// running. They may be called from any goroutine: writes to different files run concurrently, writes to one file one
// after the other, each on the file's content at that moment.

// UpdateProject applies change to the project with the uuid, as the files declare it now, with its settings in force.
// It returns an error of change as it is. change may run again, on newer content, if there is a save at the same time.
// It must not keep the project.
func (s *base) UpdateProject(ctx context.Context, uuid catalog.UUID,
	change func(p *catalog.ProjectConfig) error) error {
	return s.edit(ctx, uuid, func(e *edit) error {
		have := inForce(e.project, e.defaults)
		want := have
		want.Domains, want.Templates = slices.Clone(have.Domains), slices.Clone(have.Templates)
		if have.SMTP != nil {
			smtp := *have.SMTP
			want.SMTP = &smtp
		}
		if err := change(&want); err != nil {
			return err
		}
		if from, to := have.Project.Slug, want.Project.Slug; from != to {
			e.moves = &slugMove{from: from, to: to}
		}
		if err := s.protect(e, &have, &want); err != nil {
			return err
		}
		e.normalize(&want)
		e.want = &want
		e.draft.BodyFile = func(code, attr, text string) (string, error) { return s.newBody(e, code, attr, text) }
		return e.draft.RewriteProject(&have, &want)
	})
}

// DeleteProject removes the project's block from its file, and the file if it declares nothing else. check may refuse,
// with an error that is returned as it is.
func (s *base) DeleteProject(ctx context.Context, uuid catalog.UUID,
	check func(p *catalog.ProjectConfig) error) error {
	return s.edit(ctx, uuid, func(e *edit) error {
		have := inForce(e.project, e.defaults)
		if err := check(&have); err != nil {
			return err
		}
		e.moves = &slugMove{from: have.Project.Slug}
		return e.draft.RemoveProject(have.Project.Slug)
	})
}

// CreateProject declares a new project in a file of its own, named after the slug. p needs a UUID.
func (s *base) CreateProject(ctx context.Context, p *catalog.Project) error {
	if err := s.place.ready(); err != nil {
		return err
	}
	content, err := hcledit.NewProject(p)
	if err != nil {
		return fmt.Errorf("write project %s: %w", p.Slug, err)
	}
	// A name that is taken by another file is no reason to refuse the slug.
	for n := 1; n <= 100; n++ {
		name := p.Slug + ".hcl"
		if n > 1 {
			name = fmt.Sprintf("%s-%d.hcl", p.Slug, n)
		}
		if s.o.Fanout {
			dir := p.Slug[:min(2, len(p.Slug))]
			drop, err := s.place.makeFolder(dir)
			if err != nil {
				return err
			}
			defer drop() // a refused write and a dry run leave nothing
			name = dir + "/" + name
		}
		err = s.place.patient(ctx, func() error { return s.createOnce(ctx, name, content) })
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
		if broken := s.brokenFile(name, writerOf(ctx).covers); broken != nil {
			return broken
		}
	}
	return err
}

// An edit is a change of one project's block in progress.
type edit struct {
	covers   Coverage
	defaults *catalog.Defaults      // in force
	was      *candidate             // the file's present content
	decoded  *hclfile.Result        // of it
	draft    *hcledit.Draft         // of the new content
	at       int                    // index of the project in the file
	project  *catalog.ProjectConfig // as the file declares it
	want     *catalog.ProjectConfig // the project after the edit; nil if it is removed
	moves    *slugMove              // nil: the slug stays
	created  map[string]*fileSwap   // the new files of bodies, see newBody; nil: none
}

// edit changes the file of a project. rewrite makes the edits in e.draft, and sets e.want and e.moves. A write that
// lost against a save at the same time is repeated once (configsrc/README.md, Write-back). A write that turns out to
// need more files starts again with locks on all of them.
func (s *base) edit(ctx context.Context, uuid catalog.UUID, rewrite func(e *edit) error) error {
	if err := s.place.ready(); err != nil {
		return err
	}
	var others []string
	for lost, grown := 0, 0; ; {
		var more []string
		err := s.place.patient(ctx, func() (err error) {
			more, err = s.editOnce(ctx, uuid, others, rewrite)
			return err
		})
		switch {
		case errors.Is(err, atomicfile.ErrChanged), errors.Is(err, fs.ErrExist): // a body's new file has got its name
			if lost++; lost == 2 {
				return &catalog.Error{Code: catalog.CodeFileChanged, Message: err.Error()}
			}
		case len(more) > 0:
			if grown++; grown == 3 {
				return busy("the files with keys keep changing")
			}
			others = more
		default:
			return err
		}
	}
}

// editOnce makes the edit under locks on the project's file and on others. If it needs locks on more files, it has
// changed nothing and returns them.
func (s *base) editOnce(ctx context.Context, uuid catalog.UUID, others []string,
	rewrite func(e *edit) error) (more []string, err error) {
	path, ok := s.fileOf(projectClaim(uuid))
	if !ok {
		return nil, &catalog.Error{Code: catalog.CodeNotFound, Message: "no such project"}
	}
	defer s.writers.lock(append(slices.Clone(others), path)...)()
	t, err := s.place.open()
	if err != nil {
		return nil, writeFault("edit "+path, err)
	}
	defer t.close()
	// Read the project as it is on disk now.
	e := &edit{covers: writerOf(ctx).covers, defaults: s.facts.Defaults()}
	file, was, decoded, err := s.openFile(t, path, e.covers)
	if err != nil {
		return nil, err
	}
	e.was, e.decoded, e.draft = was, decoded, hcledit.NewDraft(decoded)
	e.at = slices.IndexFunc(was.declared.Projects, func(p catalog.ProjectConfig) bool { return p.Project.UUID == uuid })
	if e.at < 0 {
		return nil, &catalog.Error{Code: catalog.CodeFileChanged,
			Message: "the project is no longer in " + path + ", where it was; try again when the files have been reloaded"}
	}
	e.project = &was.declared.Projects[e.at]
	// Note the edits of the block, of key lists that name its slug, and of mail bodies in files of their own.
	if err := rewrite(e); errors.Is(err, hcledit.ErrLimit) {
		return nil, &catalog.Error{Code: catalog.CodeFileInvalid, Message: path + ": " + tooMuch}
	} else if err != nil {
		return nil, err
	}
	u := &update{file: file, was: was, moves: e.moves, project: e.project.Project.ID, done: make(chan error, 1)}
	if u.files, err = s.bodySwaps(t, e); err != nil {
		return nil, err
	}
	bodies := make(map[string][]byte, len(u.files))
	for _, f := range u.files {
		bodies[f.Name] = f.Content
	}
	if e.moves != nil {
		e.moves.files = s.keyFiles(e.moves.from, path)
		if slices.ContainsFunc(e.moves.files, func(p string) bool { return !slices.Contains(others, p) }) {
			return e.moves.files, nil
		}
		keys, err := s.moveKeys(t, e)
		if err != nil {
			return nil, err
		}
		u.files = append(u.files, keys...)
	}
	out, err := e.draft.Bytes()
	if err != nil {
		return nil, fmt.Errorf("edit %s: %w", path, err)
	}
	u.stays = bytes.Equal(out, was.bytes)
	if u.stays && len(u.files) == 0 {
		return nil, nil
	}
	// Decode the result as a reload does, and prove that it contains the intended change and nothing else.
	c := &candidate{path: path, bytes: out, stamp: was.stamp, bodies: bodies}
	c.decode(s.display(path), t)
	switch {
	case c.fault != nil:
		return nil, c.fault
	case c.declared == nil:
		if err := e.clash(); err != nil {
			return nil, err
		}
		return nil, s.wouldBreak(c.diags, e.covers)
	case !e.proves(c.declared):
		return nil, fmt.Errorf("edit %s: %w", path, hcledit.ErrVerify)
	}
	if e.want == nil {
		u.removes = e.project.Project.UUID
	}
	if len(c.refs) == 0 && !s.place.isLink(path) { // the target of a link stays, with its comments: the link is a person's
		c = &candidate{path: path, gone: true}
		file.Removes, file.Like = true, nil
	}
	u.c, file.c, file.Content = c, c, c.bytes
	if !u.stays {
		u.files = append(u.files, file)
	}
	return nil, s.place.submit(ctx, u)
}

// openFile reads and decodes a config file that will be replaced, see openSwap.
func (s *base) openFile(t contents, path string, covers Coverage) (f *fileSwap, was *candidate, decoded *hclfile.Result,
	err error) {
	f, src, err := s.place.swap(t, path)
	if err != nil {
		return nil, nil, nil, err
	}
	was = &candidate{path: path, bytes: src, stamp: f.stamp}
	decoded = was.decode(s.display(path), t)
	switch {
	case was.fault != nil:
		return nil, nil, nil, was.fault
	case was.declared == nil:
		return nil, nil, nil, s.invalidFile(was.diags, covers)
	}
	return f, was, decoded, nil
}

// swap implements place.
func (s *Source) swap(t contents, path string) (f *fileSwap, src []byte, err error) {
	target, err := atomicfile.Target(s.folder.Dir, path)
	if err != nil {
		return nil, nil, writeFault("edit "+path, err)
	}
	src, stamp, err := t.read(path, MaxFileBytes)
	if err != nil {
		return nil, nil, writeFault("read "+path, err)
	}
	info, err := s.o.Disk.Stat(target)
	if err != nil {
		return nil, nil, writeFault("edit "+path, err)
	}
	return &fileSwap{stamp: stamp, had: src, Swap: atomicfile.Swap{Folder: &s.folder, Name: path, Target: target,
		Like: info, Old: stamp.Hash}}, src, nil
}

// proves reports whether got is the file's present content with the intended edit and no other change.
func (e *edit) proves(got *catalog.Declared) bool {
	want, is := *e.was.declared, *got
	if e.moves != nil {
		want.Keys = e.moves.keys(want.Keys)
	}
	want.Projects = slices.Delete(slices.Clone(want.Projects), e.at, e.at+1)
	if e.want != nil {
		if e.at >= len(is.Projects) || !sayEqual(inForce(&is.Projects[e.at], e.defaults), e.want) {
			return false
		}
		is.Projects = slices.Delete(slices.Clone(is.Projects), e.at, e.at+1)
	}
	if len(want.Projects) == 0 && len(is.Projects) == 0 {
		want.Projects, is.Projects = nil, nil
	}
	return reflect.DeepEqual(want, is)
}

// sayEqual reports whether a decoded project equals want; the settings of both are those in force. The order of domains
// and templates does not count, and a new domain in want has no id yet.
func sayEqual(got catalog.ProjectConfig, want *catalog.ProjectConfig) bool {
	if !reflect.DeepEqual(got.Project, want.Project) || !got.Service.Same(&want.Service) || !got.Auth.Same(&want.Auth) ||
		!reflect.DeepEqual(got.SMTP, want.SMTP) || len(got.Domains) != len(want.Domains) ||
		len(got.Templates) != len(want.Templates) {
		return false
	}
	domains := make(map[catalog.UUID]catalog.Domain, len(got.Domains))
	for _, d := range got.Domains {
		domains[d.UUID] = d
	}
	for _, d := range want.Domains {
		have, ok := domains[d.UUID]
		if !ok || have.Name != d.Name || !catalog.SameFields(have.Fields(), d.Fields()) || d.ID != 0 && have.ID != d.ID {
			return false
		}
		delete(domains, d.UUID)
	}
	templates := make(map[string]catalog.Template, len(got.Templates))
	for _, t := range got.Templates {
		templates[t.Code] = t
	}
	for _, t := range want.Templates {
		if have, ok := templates[t.Code]; !ok || have != t {
			return false
		}
		delete(templates, t.Code)
	}
	return true
}

// create implements place.
func (s *Source) create(path string) (*fileSwap, error) {
	name := filepath.FromSlash(path)
	if _, err := os.Lstat(filepath.Join(s.folder.Dir, name)); err == nil {
		return nil, fs.ErrExist
	}
	root, err := s.realDir()
	if err != nil {
		return nil, writeFault("open the config folder", err)
	}
	return &fileSwap{Swap: atomicfile.Swap{Folder: &s.folder, Name: path, Target: filepath.Join(root, name),
		Creates: true}}, nil
}

// isLink implements place.
func (s *Source) isLink(path string) bool {
	info, err := os.Lstat(filepath.Join(s.folder.Dir, filepath.FromSlash(path)))
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// createOnce writes a file that does not exist yet.
func (s *base) createOnce(ctx context.Context, name string, content []byte) error {
	defer s.writers.lock(name)()
	t, err := s.place.open()
	if err != nil {
		return writeFault("open the config folder", err)
	}
	defer t.close()
	file, err := s.place.create(name)
	if err != nil {
		return err
	}
	c := &candidate{path: name, bytes: content}
	if c.decode(s.display(name), t); c.declared == nil {
		return fmt.Errorf("write %s: the new content is invalid: %s", name, c.diags[0].Summary)
	}
	file.c, file.Content = c, content
	u := &update{c: c, was: new(candidate), file: file, files: []*fileSwap{file}, done: make(chan error, 1)}
	return s.place.submit(ctx, u)
}

// makeFolder implements place, durably.
func (s *Source) makeFolder(name string) (drop func(), err error) {
	drop = func() {
		if root, err := s.o.Clone.open(s.o.Dir); err == nil {
			_ = atomicfile.RemoveFolder(root, name)
			root.Close()
		}
	}
	root, err := s.o.Clone.open(s.o.Dir)
	if err != nil {
		return nil, writeFault("open the config folder", err)
	}
	defer root.Close()
	switch err := root.Mkdir(name, 0o777); {
	case errors.Is(err, fs.ErrExist):
		return drop, nil
	case err != nil:
		return nil, writeFault("make the folder "+name, err)
	}
	return drop, atomicfile.SyncFolder(s.o.Disk, s.folder.Dir)
}

// fileOf returns the file that declares the object of the claim.
func (s *base) fileOf(c claim) (path string, ok bool) {
	if path, ok = s.ownerOf(c); ok {
		return path, true
	}
	s.committing.RLock() // it may be served already, and not be in the table yet
	defer s.committing.RUnlock()
	return s.ownerOf(c)
}

func (s *base) ownerOf(c claim) (path string, ok bool) {
	s.known.RLock()
	defer s.known.RUnlock()
	f := s.table.owner(c)
	if f == nil {
		return "", false
	}
	return f.path, true
}

// brokenFile returns why no file of this name can be created: a quarantined file has it.
func (s *base) brokenFile(path string, covers Coverage) error {
	s.known.RLock()
	defer s.known.RUnlock()
	if bad := s.quarantine[path]; bad != nil {
		return s.invalidFile(bad.diags, covers)
	}
	return nil
}

// inForce returns a project with its settings as they are served.
func inForce(p *catalog.ProjectConfig, defaults *catalog.Defaults) catalog.ProjectConfig {
	out := *p
	if defaults != nil {
		out.Service, out.Auth = p.Service.Over(defaults.Service), p.Auth.Over(defaults.Auth)
	}
	return out
}
