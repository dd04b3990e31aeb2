package configsrc

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

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
func (s *Source) UpdateProject(ctx context.Context, uuid catalog.UUID, change func(p *catalog.ProjectConfig) error) error {
	return s.retried(ctx, func() error {
		return s.edit(ctx, uuid, func(e *edit) error {
			defaults := s.o.Sink.Defaults()
			have := inForce(e.project(), defaults)
			want := have
			want.Domains = slices.Clone(have.Domains)
			ownMail(&want)
			if err := change(&want); err != nil {
				return err
			}
			if from, to := have.Project.Slug, want.Project.Slug; from != to {
				e.moves = &slugMove{from: from, to: to}
			}
			if err := s.protect(e, &have, &want); err != nil {
				return err
			}
			normalize(&want)
			e.normalMail(&want)
			e.want = &want
			e.expect = func(got *catalog.Declared) bool { return e.rest(got) && sayEqual(&got.Projects[e.at], &want, defaults) }
			return e.draft.RewriteProject(&have, &want)
		})
	})
}

// DeleteProject removes the project's block from its file, and the file if it declares nothing else. check may refuse,
// with an error that is returned as it is.
func (s *Source) DeleteProject(ctx context.Context, uuid catalog.UUID, check func(p *catalog.ProjectConfig) error) error {
	return s.retried(ctx, func() error {
		return s.edit(ctx, uuid, func(e *edit) error {
			have := inForce(e.project(), s.o.Sink.Defaults())
			if err := check(&have); err != nil {
				return err
			}
			e.expect, e.removes = e.without, true
			e.moves = &slugMove{from: have.Project.Slug}
			return e.draft.RemoveProject(have.Project.Slug)
		})
	})
}

// CreateProject declares a new project in a file of its own, named after the slug. p needs a UUID.
func (s *Source) CreateProject(ctx context.Context, p *catalog.Project) error {
	if err := s.writable(); err != nil {
		return err
	}
	defer s.beginWrite()()
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
		if err = s.patient(ctx, func() error { return s.create(ctx, name, content) }); !errors.Is(err, fs.ErrExist) {
			return err
		}
		if broken := s.brokenFile(name, coverageOf(ctx)); broken != nil {
			return broken
		}
	}
	return err
}

// retried repeats a write once if it lost against a save at the same time (configsrc/README.md, Write-back).
func (s *Source) retried(ctx context.Context, write func() error) error {
	if err := s.writable(); err != nil {
		return err
	}
	defer s.beginWrite()()
	err := s.patient(ctx, write)
	if errors.Is(err, atomicfile.ErrChanged) {
		err = s.patient(ctx, write)
	}
	if errors.Is(err, atomicfile.ErrChanged) {
		return &catalog.Error{Code: catalog.CodeFileChanged, Message: err.Error()}
	}
	return err
}

// beginWrite counts a running write.
func (s *Source) beginWrite() (end func()) {
	s.writing.Add(1)
	return func() { s.writing.Add(-1) }
}

func (s *Source) writable() error {
	if s.o.ReadOnly {
		return &catalog.Error{Code: catalog.CodeReadOnly, Message: "this node never writes into the config folder (serve --read-only)"}
	}
	return s.checkRoom()
}

// An edit is a change of one project's block in progress.
type edit struct {
	covers       Coverage
	path, target string
	src          []byte
	stamp        catalog.Stamp          // of src
	info         fs.FileInfo            // info of src's file
	deps         []catalog.Dep          // of src
	declared     *catalog.Declared      // by src
	draft        *hcledit.Draft         // of src
	decoded      *hclfile.Result        // src
	at           int                    // index of the project in it
	want         *catalog.ProjectConfig // the project after the edit; nil if it is removed
	expect       func(got *catalog.Declared) bool
	removes      bool      // the project is removed
	moves        *slugMove // nil: the slug stays
}

func (e *edit) project() *catalog.ProjectConfig { return &e.declared.Projects[e.at] }

// edit rewrites the file of a project by rewrite, which makes the edits in e.draft and sets e.expect. If the write
// turns out to need more files, it restarts with locks on all of them: locks are taken together, in order.
func (s *Source) edit(ctx context.Context, uuid catalog.UUID, rewrite func(e *edit) error) error {
	var more moreFilesError
	for range 3 {
		err := s.editLocked(ctx, uuid, more.paths, rewrite)
		var needs *moreFilesError
		if !errors.As(err, &needs) {
			return err
		}
		more = *needs
	}
	return busy("the files with keys keep changing")
}

func (s *Source) editLocked(ctx context.Context, uuid catalog.UUID, others []string, rewrite func(e *edit) error) error {
	path, ok := s.fileOf(projectClaim(uuid))
	if !ok {
		return &catalog.Error{Code: catalog.CodeNotFound, Message: "no such project"}
	}
	defer s.writers.lock(append(slices.Clone(others), path)...)()
	t := lateTree(s.o.Dir)
	defer t.Close()
	e, u, err := s.openEdit(t, path, uuid, coverageOf(ctx))
	if err != nil {
		return err
	}
	if err := rewrite(e); errors.Is(err, hcledit.ErrLimit) {
		return &catalog.Error{Code: catalog.CodeFileInvalid, Message: path + ": " + tooMuch}
	} else if err != nil {
		return err
	}
	keySwaps, err := s.moveKeys(t, e, others)
	if err != nil {
		return err
	}
	out, err := e.draft.Bytes()
	if err != nil {
		return fmt.Errorf("edit %s: %w", path, err)
	}
	if bytes.Equal(out, e.src) && len(e.draft.Bodies()) == 0 {
		return nil
	}
	if err := s.fill(u, t, out, e, keySwaps); err != nil {
		return err
	}
	return s.submit(ctx, u)
}

// openEdit reads the file that declares a project.
func (s *Source) openEdit(t *tree, path string, uuid catalog.UUID, covers Coverage) (*edit, *update, error) {
	target, src, stamp, info, err := s.readTarget(t, path)
	if err != nil {
		return nil, nil, err
	}
	now := &candidate{path: path, bytes: src, stamp: stamp}
	decoded := now.decode(s.display(path), t)
	switch {
	case now.fault != nil:
		return nil, nil, now.fault
	case now.declared == nil:
		return nil, nil, s.invalidFile(now.diags, covers)
	}
	at := slices.IndexFunc(now.declared.Projects, func(p catalog.ProjectConfig) bool { return p.Project.UUID == uuid })
	if at < 0 {
		return nil, nil, &catalog.Error{Code: catalog.CodeFileChanged,
			Message: "the project is no longer in " + path + ", where it was; try again when the files have been reloaded"}
	}
	had := make(map[claim]bool, len(now.claims))
	for _, c := range now.claims {
		had[c] = true
	}
	u := &update{file: atomicfile.Swap{Folder: &s.folder, Name: path, Target: target, Old: stamp.Hash}, had: had,
		counted: now.claims[:now.counts.projects+now.counts.domains], done: make(chan error, 1)}
	return &edit{covers: covers, path: path, target: target, src: src, stamp: stamp, info: info, deps: now.deps, declared: now.declared,
		draft: hcledit.NewDraft(decoded), decoded: decoded, at: at}, u, nil
}

// readTarget reads a file that will be replaced. target is its path without links.
func (s *Source) readTarget(t *tree, path string) (target string, src []byte, stamp catalog.Stamp, info fs.FileInfo, err error) {
	if target, err = atomicfile.Target(s.o.Dir, path); err != nil {
		return "", nil, stamp, nil, writeFault("edit "+path, err)
	}
	if src, stamp, err = t.read(path, MaxFileBytes); err != nil {
		return "", nil, stamp, nil, writeFault("read "+path, err)
	}
	if info, err = s.o.Disk.Stat(target); err != nil {
		return "", nil, stamp, nil, writeFault("edit "+path, err)
	}
	return target, src, stamp, info, nil
}

// fill decodes the new content as a reload does, checks that it contains the intended change and nothing else, and
// writes it to a temporary file.
func (s *Source) fill(u *update, t *tree, out []byte, e *edit, keySwaps []*bodySwap) error {
	swaps, err := s.bodySwaps(t, e)
	if err != nil {
		return err
	}
	c := &candidate{path: e.path, bytes: out, stamp: e.stamp, bodies: contents(swaps)}
	c.decode(s.display(e.path), t)
	switch {
	case c.fault != nil:
		return c.fault
	case c.declared == nil:
		if err := e.clash(); err != nil {
			return err
		}
		return s.wouldBreak(c.diags, e.covers)
	}
	if !e.expect(c.declared) {
		return fmt.Errorf("edit %s: %w", e.path, hcledit.ErrVerify)
	}
	u.c, u.bodies, u.stays, u.moves = c, append(swaps, keySwaps...), bytes.Equal(out, e.src), e.moves
	u.project = e.project().Project.ID
	if e.removes {
		u.removes = e.project().Project.UUID
	}
	if len(c.refs) == 0 && !s.isLink(e.path) { // the target of a link stays, with its comments: the link is a person's
		*c = candidate{path: e.path, gone: true}
		u.file.Removes = true
		return u.stage()
	}
	u.file.Content, u.file.Like = out, e.info
	return u.stage()
}

func (s *Source) isLink(path string) bool {
	info, err := os.Lstat(filepath.Join(s.o.Dir, filepath.FromSlash(path)))
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// create writes a file that does not exist yet.
func (s *Source) create(ctx context.Context, name string, content []byte) error {
	defer s.writers.lock(name)()
	if _, err := os.Lstat(filepath.Join(s.o.Dir, name)); err == nil {
		return fs.ErrExist
	}
	t, err := openTree(s.o.Dir)
	if err != nil {
		return writeFault("open the config folder", err)
	}
	defer t.Close()
	root, err := filepath.EvalSymlinks(s.o.Dir)
	if err != nil {
		return writeFault("open the config folder", err)
	}
	c := &candidate{path: name, bytes: content}
	if c.decode(s.display(name), t); c.declared == nil {
		return fmt.Errorf("write %s: the new content is invalid: %s", name, c.diags[0].Summary)
	}
	u := &update{c: c, done: make(chan error, 1), file: atomicfile.Swap{Folder: &s.folder, Name: name, Target: filepath.Join(root, name), Content: content, Creates: true}}
	if err := u.stage(); err != nil {
		return err
	}
	return s.submit(ctx, u)
}

// fileOf returns the file that declares the object of the claim.
func (s *Source) fileOf(c claim) (path string, ok bool) {
	s.known.RLock()
	defer s.known.RUnlock()
	f := s.table.owner(c)
	if f == nil {
		return "", false
	}
	return f.path, true
}

// brokenFile returns why no file of this name can be created: a quarantined file has it.
func (s *Source) brokenFile(path string, covers Coverage) error {
	s.known.RLock()
	defer s.known.RUnlock()
	if bad := s.quarantine[path]; bad != nil {
		return s.invalidFile(bad.diags, covers)
	}
	return nil
}

// tooMuch is the advice for a text that a config file cannot hold (hcledit.ErrLimit).
const tooMuch = "the file has at most 1 MiB, and this change has more than there is room for once it is written with its escapes: " +
	`give long mail bodies files of their own, as in body_html = file("mail/welcome.html"), and save them again`

// writeFault returns the client's error for a failed system call. The original files are unchanged.
func writeFault(step string, err error) error {
	var unfit *atomicfile.UnfitError
	switch {
	case errors.As(err, &unfit):
		return &catalog.Error{Code: catalog.CodeReadOnly, Message: unfit.Path + " cannot be written: " + unfit.Why}
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		return &catalog.Error{Code: catalog.CodeReadOnly, Message: step + ": the config folder cannot be written: " + atomicfile.Cause(err).Error()}
	case atomicfile.IsDiskFault(err):
		return &catalog.Error{Code: catalog.CodeUnavailable, Message: step + ": " + atomicfile.Cause(err).Error()}
	case errors.Is(err, errKeepsChanging):
		return &catalog.Error{Code: catalog.CodeFileChanged, Message: step + ": the file " + err.Error() + "; try again in a moment"}
	case errors.Is(err, fs.ErrNotExist):
		return &catalog.Error{Code: catalog.CodeFileChanged, Message: step + ": the file is gone; try again when the files have been reloaded"}
	case errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EISDIR), errors.Is(err, errLeadsOut):
		return &catalog.Error{Code: catalog.CodeFileChanged, Message: step + ": something else has taken the file's place; try again when the files have been reloaded"}
	}
	return fmt.Errorf("%s: %w", step, err)
}

// inForce returns a project with its settings as they are served.
func inForce(p *catalog.ProjectConfig, defaults *catalog.Defaults) catalog.ProjectConfig {
	out := *p
	if defaults != nil {
		out.Service, out.Auth = p.Service.Over(defaults.Service), p.Auth.Over(defaults.Auth)
	}
	return out
}

// digest returns the hash that identifies a content in the Sink and the table.
func digest(b []byte) [sha256.Size]byte { return sha256.Sum256(b) }
